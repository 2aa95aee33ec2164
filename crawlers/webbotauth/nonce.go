// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"crypto/sha256"
	"errors"
	"sync"
	"time"
)

// maxNonces bounds the memory for nonces. Only valid signatures bring any.
const maxNonces = 100_000

var errFull = errors.New("too many nonces are in use to tell whether this one is new")

// nonces remembers which were used, until their signatures expire. When it is full
// it takes no more, so that nobody can push one out to use it again.
type nonces struct {
	mu    sync.Mutex
	used  map[[16]byte]time.Time
	swept time.Time
}

// use notes a nonce of a signature that holds until a time. The error is
// ErrReplayed for one that was used.
func (n *nonces) use(nonce string, now, until time.Time) error {
	sum := sha256.Sum256([]byte(nonce))
	key := [16]byte(sum[:])
	n.mu.Lock()
	defer n.mu.Unlock()
	if t, ok := n.used[key]; ok && now.Before(t) {
		return ErrReplayed
	}
	if n.used == nil {
		n.used = map[[16]byte]time.Time{}
	}
	if now.Sub(n.swept) >= time.Minute {
		n.swept = now
		for k, t := range n.used {
			if !now.Before(t) {
				delete(n.used, k)
			}
		}
	}
	if len(n.used) >= maxNonces {
		return errFull
	}
	n.used[key] = until
	return nil
}
