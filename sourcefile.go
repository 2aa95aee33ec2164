// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// fileSource is a policy in a file. It is always found anew by its path, so that
// it does not matter whether an editor writes into the file or puts another in
// its place, or whether a symbolic link on the way to it is turned.
type fileSource struct {
	path string // absolute
}

// fileMark is what tells whether a file has changed since it was read.
type fileMark struct {
	info os.FileInfo
	read time.Time
}

const (
	fileInterval = 2 * time.Second
	fileSettle   = 250 * time.Millisecond

	// The clock of a file system may stand still for a while, two seconds on the
	// coarsest. Within it a file can change and have the same date and size.
	coarseClock = 3 * time.Second
	// Dates can be set, and networks' caches of them can be stale: now and then
	// the file is read however it looks.
	rereadFile = time.Minute
)

func (f *fileSource) name() string { return f.path }

func (f *fileSource) key() string { return "file " + f.path }

func (f *fileSource) pace() (usual, least time.Duration) {
	return fileInterval, 50 * time.Millisecond
}

func (f *fileSource) settle() time.Duration { return fileSettle }

func (f *fileSource) remote() bool { return false }

func (f *fileSource) late() bool { return false }

func (f *fileSource) keeps() keepPlace { return keepLocally }

func (f *fileSource) read(_ context.Context, last any) (reading, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return reading{}, err
	}
	if err := plain(f.path, info); err != nil {
		return reading{}, err
	}
	if m, ok := last.(fileMark); ok && m.same(info) {
		return reading{}, errUnchanged
	}
	file, err := os.OpenFile(f.path, openRead, 0)
	if err != nil {
		return reading{}, err
	}
	defer file.Close()
	return readOpen(file)
}

// openRead opens a file without waiting: since it was looked at it may have become
// a pipe.
const openRead = os.O_RDONLY | syscall.O_NONBLOCK

// plain returns an error unless a file is a plain one: reading a pipe or a device
// can take for ever.
func plain(name string, info os.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no plain file but %s", name, kindOf(info.Mode()))
	}
	return nil
}

func kindOf(mode os.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&os.ModeNamedPipe != 0:
		return "a pipe"
	case mode&os.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

// same reports whether a file is surely the one that was read.
func (m fileMark) same(info os.FileInfo) bool {
	return os.SameFile(m.info, info) && m.info.Size() == info.Size() && m.info.ModTime().Equal(info.ModTime()) &&
		m.read.Sub(info.ModTime()) > coarseClock && time.Since(m.read) < rereadFile
}

// readOpen reads a file that is open.
func readOpen(file *os.File) (reading, error) {
	now := time.Now()
	info, err := file.Stat()
	if err != nil {
		return reading{}, err
	}
	if err := plain(file.Name(), info); err != nil {
		return reading{}, err
	}
	data, err := readAll(file)
	if err != nil {
		return reading{}, fmt.Errorf("reading %s: %w", file.Name(), err)
	}
	return reading{data: data, mark: fileMark{info: info, read: now}}, nil
}

// readAll reads a policy, but no more of it than tells that it is too large.
func readAll(r io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, policyfile.MaxSize+1))
}
