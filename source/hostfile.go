// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

type hostFile struct {
	*Document
	file    string // relative to the directory of the template
	src     *source
	ready   chan struct{} // closed when loadErr is set and, if the file exists, its policy
	loadErr error
	used    atomic.Int64 // when it was last used, in Unix seconds
}

func newHostFile(h *Hosts, file string) *hostFile {
	src := newHostSource(h.template.dir, file)
	d := newDocument(src.name)
	d.perHost, d.counts = true, &h.counts
	return &hostFile{Document: d, file: file, src: src, ready: make(chan struct{})}
}

func (f *hostFile) use(now time.Time) {
	if sec := now.Unix(); f.used.Load() != sec {
		f.used.Store(sec)
	}
}

func (f *hostFile) wait(ctx context.Context) error {
	if f.isReady() {
		return f.loadErr
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	select {
	case <-f.ready:
		return f.loadErr
	case <-ctx.Done():
		return fmt.Errorf("loading the policy of this host: %w", ctx.Err())
	}
}

func (f *hostFile) isReady() bool {
	select {
	case <-f.ready:
		return true
	default:
		return false
	}
}

func (f *hostFile) broken() bool {
	if !f.isReady() {
		return false
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.err != nil
}

type hostMiss struct {
	since time.Time
	used  atomic.Bool // since it was last looked up
}

func (m *hostMiss) use() {
	if !m.used.Load() {
		m.used.Store(true)
	}
}

// rootKey is the context key of an *os.Root of the directory, if it is open already.
type rootKey struct{}

// newHostSource returns the source of a file below a directory, which reading it does
// not leave, whatever symbolic links there are. Hosts bounds its reads.
func newHostSource(dir, file string) *source {
	path := dir + file
	read := func(ctx context.Context, last any) (content, error) {
		root, ok := ctx.Value(rootKey{}).(*os.Root)
		if !ok {
			var err error
			if root, err = os.OpenRoot(dir); err != nil {
				return content{}, fmt.Errorf("the directory of the policy files: %w", dirError{err})
			}
			defer root.Close()
		}
		return readFile(path, file, root.Stat, root.OpenFile, last)
	}
	return &source{name: path, settle: fileSettle, read: read}
}

// dirError is an error of the directory itself.
type dirError struct{ error }

// isMissing reports whether an error means that there is no such file. There is none
// either if its name is too long, or it would be below another file.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}
