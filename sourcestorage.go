// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// storageSource is a policy in the storage that Caddy shares with the other
// machines of a fleet, where `caddy robots-policy publish` puts it.
type storageSource struct {
	storage certmagic.Storage
	at      string

	mu      sync.Mutex
	pending chan stored // of a storage that has not answered yet
}

// stored is the answer of a storage.
type stored struct {
	data []byte
	err  error
}

const (
	storagePrefix   = "storage:"
	storageInterval = 5 * time.Second
)

// storageKey returns the key that a policy's name gives.
func storageKey(name string) (string, error) {
	key := strings.TrimPrefix(name, storagePrefix)
	if !fs.ValidPath(key) || key == "." || strings.ContainsAny(key, "\\\x00") {
		return "", fmt.Errorf("%q is no key for a policy: it is a path such as robots_policy/site.yaml, without dots between its slashes", key)
	}
	first, _, _ := strings.Cut(key, "/")
	if slices.Contains(caddysOwn, first) || strings.HasPrefix(key, keepDir) {
		return "", fmt.Errorf("%q is where Caddy keeps other things; use a key such as robots_policy/site.yaml", key)
	}
	return key, nil
}

// caddysOwn is what Caddy and CertMagic keep at the top of a storage.
var caddysOwn = []string{"acme", "certificates", "ech", "instance.uuid", "keys", "last_clean.json", "locks", "ocsp", "pki", "rate_limit"}

func (s *storageSource) name() string { return storagePrefix + s.at }

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

// read waits for the storage only as long as ctx lasts: not every storage heeds
// it. While one does not answer it is not asked again.
func (s *storageSource) read(ctx context.Context, _ any) (reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		pending := make(chan stored, 1)
		s.pending = pending
		go func() {
			data, err := s.storage.Load(ctx, s.at)
			pending <- stored{data, err}
		}()
	}
	select {
	case <-ctx.Done():
		return reading{}, fmt.Errorf("the storage does not answer: %w", ctx.Err())
	case a := <-s.pending:
		s.pending = nil
		if errors.Is(a.err, fs.ErrNotExist) {
			return reading{}, fmt.Errorf("nothing is published at %s: %w", s.name(), a.err)
		}
		return reading{data: a.data[:min(len(a.data), policyfile.MaxSize+1)]}, a.err
	}
}
