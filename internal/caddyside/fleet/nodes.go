// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/certmagic"
)

// Node is a server of a fleet according to its last message in the storage.
type Node struct {
	Name     string
	Policies map[string]string // the SHA-256 of each policy that the server serves, by name
	Wrote    time.Time         // time of the message by the storage's clock, or zero
}

// Nodes returns the servers that exchange messages through a storage, or none if fleet is off. It leaves out
// messages that cannot be read.
func Nodes(ctx context.Context, storage certmagic.Storage) ([]Node, error) {
	keys, err := storage.List(ctx, strings.TrimSuffix(prefix, "/"), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []Node
	for _, k := range keys {
		name, ok := strings.CutSuffix(path.Base(k), ".json.gz")
		if !ok {
			continue
		}
		data, err := storage.Load(ctx, key(name))
		if err != nil {
			continue
		}
		m, err := decode(data)
		if err != nil {
			continue
		}
		n := Node{Name: name, Policies: m.Policies}
		if info, err := storage.Stat(ctx, key(name)); err == nil {
			n.Wrote = info.Modified
		}
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}
