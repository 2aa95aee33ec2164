// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/robotspolicy/caddy-robots-policy/internal/policyname"
)

// hostSource is the file of a host.
type hostSource struct {
	fileSource
	template *policyname.HostTemplate
	file     string // below the directory of the template
}

func (h *hostSource) keeps() keepPlace { return keepNowhere }

type rootKey struct{}

// read reads the file without leaving the directory of the template, whatever
// symbolic links there are in it.
func (h *hostSource) read(ctx context.Context, last any) (reading, error) {
	root, ok := ctx.Value(rootKey{}).(*os.Root)
	if !ok {
		var err error
		if root, err = os.OpenRoot(h.template.Dir()); err != nil {
			return reading{}, fmt.Errorf("the directory of the policy files: %w", dirError{err})
		}
		defer root.Close()
	}
	info, err := root.Stat(h.file)
	if err != nil {
		return reading{}, err
	}
	if err := plain(h.path, info); err != nil {
		return reading{}, err
	}
	if m, ok := last.(fileMark); ok && m.same(info) {
		return reading{}, errUnchanged
	}
	file, err := root.OpenFile(h.file, openRead, 0)
	if err != nil {
		return reading{}, err
	}
	defer file.Close()
	return readOpen(file)
}

// dirError is an error of the directory of all files.
type dirError struct{ error }

func (e dirError) Unwrap() error { return e.error }

// isMissing reports whether an error means that a host has no file: there can be
// none of a name that is too long, nor below another file.
func isMissing(err error) bool {
	return (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)) && !isOfDirectory(err)
}

// isOfDirectory reports whether an error is of the directory of all files.
func isOfDirectory(err error) bool {
	_, is := errors.AsType[dirError](err)
	return is
}
