// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxNonces limits the total number of nonces of all signers. That many nonces use about 30 MB of memory.
const maxNonces = 400_000

// nonces remembers used nonces until their signatures expire. When it is full, it forgets the oldest nonces of the
// signer with the most nonces. From then on, signatures of that signer are rejected if they are not newer than the
// forgotten nonces. So an attacker who makes a signer sign many requests cannot use a nonce twice, and cannot stop new
// signatures of any signer from being accepted.
type nonces struct {
	mu      sync.Mutex
	signers map[string]*signerNonces // keyed by key directory
	count   int
	swept   time.Time
	max     int
	// forgot, if not nil, is called when nonces of a signer are forgotten.
	forgot func(signer string)
}

// signerNonces are the nonces of one signer.
type signerNonces struct {
	used map[[16]byte]nonceTimes
	// forgotten is a time in Unix seconds. A signature created at or before this time is rejected, because its nonce
	// may have been forgotten.
	forgotten int64
}

// nonceTimes holds the times of a signature in Unix seconds.
type nonceTimes struct{ created, expires int64 }

// use records the nonce of a valid signature. It returns errReplayed if the nonce was used before. It returns
// errForgotten if this nonce may be one of the used nonces that have been forgotten.
func (n *nonces) use(signer, nonce string, now, created, expires time.Time) error {
	sum := sha256.Sum256([]byte(nonce))
	key := [16]byte(sum[:])
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sweep(now)
	s := n.signers[signer]
	if s == nil {
		if n.signers == nil {
			n.signers = map[string]*signerNonces{}
		}
		s = &signerNonces{used: map[[16]byte]nonceTimes{}}
		n.signers[signer] = s
	}
	if t, ok := s.used[key]; ok && now.Unix() < t.expires {
		return errReplayed
	}
	if created.Unix() <= s.forgotten {
		return errForgotten
	}
	if n.count >= n.max {
		n.forget()
	}
	if _, ok := s.used[key]; !ok {
		n.count++
	}
	s.used[key] = nonceTimes{created.Unix(), expires.Unix()}
	return nil
}

// sweep removes expired nonces, at most once a minute. It keeps signers without nonces, because the number of signers
// is limited by the number of known directories.
func (n *nonces) sweep(now time.Time) {
	if now.Sub(n.swept) < time.Minute {
		return
	}
	n.swept = now
	for _, s := range n.signers {
		n.remove(s, func(t nonceTimes) bool { return now.Unix() >= t.expires })
	}
}

func (n *nonces) remove(s *signerNonces, which func(nonceTimes) bool) {
	n.count -= len(s.used)
	maps.DeleteFunc(s.used, func(_ [16]byte, t nonceTimes) bool { return which(t) })
	n.count += len(s.used)
}

// forget removes at least the oldest eighth of the nonces of the signer with the most nonces.
func (n *nonces) forget() {
	var signer string
	var largest *signerNonces
	for name, s := range n.signers {
		if largest == nil || len(s.used) > len(largest.used) {
			signer, largest = name, s
		}
	}
	created := make([]int64, 0, len(largest.used))
	for _, t := range largest.used {
		created = append(created, t.created)
	}
	slices.Sort(created)
	largest.forgotten = max(largest.forgotten, created[len(created)/8])
	n.remove(largest, func(t nonceTimes) bool { return t.created <= largest.forgotten })
	if n.forgot != nil {
		n.forgot(signer)
	}
}
