// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// storageSource is a policy in the storage that Caddy shares with the other
// machines of a fleet, where `caddy robots-policy publish` puts it.
type storageSource struct {
	storage certmagic.Storage
	at      string // the key in the storage
}

const storageInterval = 5 * time.Second

func (s *storageSource) name() string { return StoragePrefix + s.at }

// key identifies a storage by its description, as each configuration has an
// instance of its own for the same storage.
func (s *storageSource) key() string {
	where := fmt.Sprintf("%T", s.storage)
	if n, ok := s.storage.(fmt.Stringer); ok {
		where = n.String()
	}
	return "storage " + where + " " + s.at
}

func (s *storageSource) pace() (usual, least time.Duration) {
	return storageInterval, 100 * time.Millisecond
}

func (s *storageSource) settle() time.Duration { return 0 }

func (s *storageSource) remote() bool { return true }

func (s *storageSource) startsFromLastGood() bool { return false }

func (s *storageSource) place() lastGoodPlace { return savedLocally }

func (s *storageSource) read(ctx context.Context, _ any) (content, error) {
	data, err := s.storage.Load(ctx, s.at)
	if errors.Is(err, fs.ErrNotExist) {
		return content{}, fmt.Errorf("nothing is published at %s: %w", s.name(), err)
	}
	return content{data: data[:min(len(data), policyfile.MaxSize+1)]}, err
}
