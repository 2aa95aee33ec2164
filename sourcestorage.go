// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/robotspolicy/caddy-robots-policy/internal/policyname"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// storageSource is a policy in the storage that Caddy shares with the other
// machines of a fleet, where `caddy robots-policy publish` puts it.
type storageSource struct {
	storage certmagic.Storage
	at      string
}

const storageInterval = 5 * time.Second

func (s *storageSource) name() string { return policyname.StoragePrefix + s.at }

// key tells storages apart by what they say of themselves, as each configuration
// has its own instance of the same storage.
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

func (s *storageSource) late() bool { return false }

func (s *storageSource) keeps() keepPlace { return keepLocally }

func (s *storageSource) read(ctx context.Context, _ any) (reading, error) {
	data, err := s.storage.Load(ctx, s.at)
	if errors.Is(err, fs.ErrNotExist) {
		return reading{}, fmt.Errorf("nothing is published at %s: %w", s.name(), err)
	}
	return reading{data: data[:min(len(data), policyfile.MaxSize+1)]}, err
}
