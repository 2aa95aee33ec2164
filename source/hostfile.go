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

// rootKey is the context key of the *os.Root of the directory.
type rootKey struct{}

// newHostDocument returns the document of a file below the directory of h, which reading it does
// not leave, whatever symbolic links there are.
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

// isMissing reports whether an error means that there is no such file. There is none
// either if its name is too long, or it would be below another file.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}
