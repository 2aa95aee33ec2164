// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// fileValidator identifies the version of a file that was read.
type fileValidator struct {
	info os.FileInfo
	read time.Time
}

const (
	fileInterval = 2 * time.Second
	fileSettle   = 250 * time.Millisecond

	// The clock of a file system may be coarse, two seconds at worst. Within that
	// time a file can change and keep its date and size.
	coarseClock = 3 * time.Second
	// Dates can be set by hand, and network file systems cache them: once in a while
	// the file is read whatever its date says.
	rereadFile = time.Minute
)

// newFileSource returns the source of an absolute path. The path is resolved on every read, so it does not matter
// whether an editor writes into the file or replaces it, or whether a symbolic link on the way changes.
func newFileSource(path string) *source {
	return &source{
		name: path, key: "file " + path, interval: fileInterval, minInterval: 50 * time.Millisecond, settle: fileSettle,
		read: bounded(func(_ context.Context, last any) (content, error) {
			found, err := readFile(path, path, os.Stat, os.OpenFile, last)
			return found, withRemedy(err)
		}),
	}
}

// readFile reads a file with the functions of package os, or of an os.Root. name is its name in messages.
func readFile(name, path string, stat func(string) (os.FileInfo, error), open func(string, int, os.FileMode) (*os.File, error), last any) (content, error) {
	info, err := stat(path)
	if err != nil {
		return content{}, err
	}
	if err := checkRegular(name, info); err != nil {
		return content{}, err
	}
	if v, ok := last.(fileValidator); ok && v.matches(info) {
		return content{}, errUnchanged
	}
	file, err := open(path, openRead, 0)
	if err != nil {
		return content{}, err
	}
	defer file.Close()
	return readOpen(file)
}

// withRemedy adds to an error of opening a file what the operator can do about it.
func withRemedy(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w; check the name, which is relative to the directory in which the server runs unless it starts with /", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; make the file and its directories readable for the user that runs the server", err)
	}
	return err
}

// openRead opens without blocking: the file may have become a pipe since os.Stat.
const openRead = os.O_RDONLY | syscall.O_NONBLOCK

// checkRegular returns an error unless a file is a regular one. Reading a pipe or a device may never end.
func checkRegular(name string, info os.FileInfo) error {
	switch {
	case info.IsDir():
		return fmt.Errorf("%s is a directory; name the policy file in it, such as %s", name, filepath.Join(name, "site-policy.yaml"))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is a pipe, a device or the like, and not a file", name)
	}
	return nil
}

func (v fileValidator) matches(info os.FileInfo) bool {
	return os.SameFile(v.info, info) && v.info.Size() == info.Size() && v.info.ModTime().Equal(info.ModTime()) &&
		v.read.Sub(info.ModTime()) > coarseClock && time.Since(v.read) < rereadFile
}

func readOpen(file *os.File) (content, error) {
	now := time.Now()
	info, err := file.Stat()
	if err != nil {
		return content{}, err
	}
	if err := checkRegular(file.Name(), info); err != nil {
		return content{}, err
	}
	data, err := readPolicy(file)
	if err != nil {
		return content{}, fmt.Errorf("reading %s: %w", file.Name(), err)
	}
	return content{data: data, validator: fileValidator{info: info, read: now}}, nil
}
