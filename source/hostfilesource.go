// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// hostFileSource is a file below the directory of a template.
type hostFileSource struct {
	fileSource
	template *HostTemplate
	file     string // relative to the directory
}

func (h *hostFileSource) place() lastGoodPlace { return notSaved }

// rootKey is the context key of an *os.Root of the directory, if it is open already.
type rootKey struct{}

// read reads the file without leaving the directory, whatever symbolic links there
// are.
func (h *hostFileSource) read(ctx context.Context, last any) (content, error) {
	root, ok := ctx.Value(rootKey{}).(*os.Root)
	if !ok {
		var err error
		if root, err = os.OpenRoot(h.template.Dir()); err != nil {
			return content{}, fmt.Errorf("the directory of the policy files: %w", dirError{err})
		}
		defer root.Close()
	}
	info, err := root.Stat(h.file)
	if err != nil {
		return content{}, err
	}
	if err := checkRegular(h.path, info); err != nil {
		return content{}, err
	}
	if v, ok := last.(fileValidator); ok && v.matches(info) {
		return content{}, errUnchanged
	}
	file, err := root.OpenFile(h.file, openRead, 0)
	if err != nil {
		return content{}, err
	}
	defer file.Close()
	return readFile(file)
}

// dirError is an error of the directory itself.
type dirError struct{ error }

func (e dirError) Unwrap() error { return e.error }

// isMissing reports whether an error means that there is no such file. There is none
// either if its name is too long, or it would be below another file.
func isMissing(err error) bool {
	return (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)) && !isDirError(err)
}

// isDirError reports whether an error is that of the directory itself.
func isDirError(err error) bool {
	_, is := errors.AsType[dirError](err)
	return is
}
