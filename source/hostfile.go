// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/robotspolicy/caddy-robots-policy/site"
)

// rootKey is the context key for the opened directory of a Hosts, an *os.Root.
type rootKey struct{}

// newHostDocument returns the document for a file in the directory of h. Reading the file never leaves the
// directory, whatever symbolic links exist.
func newHostDocument(h *Hosts, name string) *Document {
	d := newDocument(h.template.dir + name)
	d.memory = site.NewMemory(true)
	d.counts = &h.counts
	d.file = &source{name: d.Name, settle: fileSettle, read: func(ctx context.Context, last any) (content, error) {
		root := ctx.Value(rootKey{}).(*os.Root)
		return readFile(d.Name, name, root.Stat, root.OpenFile, last)
	}}
	return d
}

// isMissing reports whether an error means that the file does not exist. This includes a name that is too long, and
// a path in which a file is used like a directory.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}
