// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// fileValidator identifies the version of a file.
type fileValidator struct {
	info os.FileInfo
	read time.Time
}

const (
	fileInterval = 2 * time.Second
	fileSettle   = 250 * time.Millisecond

	// coarseClock is longer than the precision of a file system's clock, which may be two seconds. Within this time, a
	// file can change without a new date or size.
	coarseClock = 3 * time.Second
	// rereadFile is the time after which a file is read again, even if its date has not changed. This is needed because
	// users can set dates, and network file systems cache them.
	rereadFile = time.Minute
)

// newFileSource returns the source for a file with an absolute path. The path is resolved for each read, so that
// editors may replace the file, and symbolic links may change.
func newFileSource(path string) *source {
	return &source{
		name: path, key: "file " + path, interval: fileInterval, minInterval: 50 * time.Millisecond, settle: fileSettle,
		read: bounded(func(_ context.Context, last any) (content, error) {
			found, err := readFile(path, path, os.Stat, os.OpenFile, last)
			return found, withRemedy(err)
		}),
	}
}

// readFile reads a file with the functions of package os or of an os.Root. name is the file's name in messages.
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

// withRemedy adds advice to an error from opening a file.
func withRemedy(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w; check the name: unless it starts with /, it is relative to the directory in which the server runs", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; make the file and its directories readable for the user that runs the server", err)
	}
	return err
}

// openRead contains the flags to open a file without blocking. They are needed because the file may have become a pipe
// since stat was called.
const openRead = os.O_RDONLY | syscall.O_NONBLOCK

// checkRegular returns an error unless the file is a regular file. Reading a pipe or a device may never end.
func checkRegular(name string, info os.FileInfo) error {
	switch {
	case info.IsDir():
		return fmt.Errorf("%s is a directory; write the path of the policy file in it, such as %s", name, filepath.Join(name, "site-policy.yaml"))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is a pipe or device; write the path of a regular file", name)
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
	data, err := io.ReadAll(io.LimitReader(file, policyfile.MaxSize+1)) // more than the limit, to detect files that are too large
	if err != nil {
		return content{}, fmt.Errorf("reading %s: %w", file.Name(), err)
	}
	return content{data: data, validator: fileValidator{info: info, read: now}}, nil
}
