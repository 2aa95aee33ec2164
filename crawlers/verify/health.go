// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"strings"
	"sync"
	"time"
)

// trustFor is how long a correct answer shows that a resolver works. Negative answers
// count only then: some resolvers answer "not found", or the same name, to everything.
const (
	trustFor      = time.Hour
	probeInterval = time.Minute
)

// probes are addresses whose names have not changed in years, with the ends of those
// names.
var probes = []struct{ addr, suffix string }{
	{"8.8.8.8", "dns.google"},
	{"1.1.1.1", "one.one.one.one"},
	{"9.9.9.9", ".quad9.net"},
}

// health tracks whether a resolver answers reverse lookups correctly.
type health struct {
	resolver Resolver

	mu      sync.Mutex
	correct time.Time // of the last correct answer
	probed  time.Time
}

// confirm records a correct answer: a crawler's name that resolves back to its
// address.
func (h *health) confirm() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.correct = time.Now()
}

// trusted reports whether a negative answer of a time counts.
func (h *health) trusted(at time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.correct.IsZero() && h.correct.After(at.Add(-trustFor))
}

// probe looks up well-known addresses, at most once a minute, unless the resolver was
// correct within half of trustFor.
func (h *health) probe(ctx context.Context) {
	h.mu.Lock()
	now := time.Now()
	skip := !h.correct.IsZero() && now.Sub(h.correct) < trustFor/2 || !h.probed.IsZero() && now.Sub(h.probed) < probeInterval
	if !skip {
		h.probed = now
	}
	h.mu.Unlock()
	if skip {
		return
	}
	defer func() { _ = recover() }() // as in names.confirm: the resolver stays untrusted
	for _, p := range probes {
		names, err := h.resolver.LookupAddr(ctx, p.addr)
		for _, name := range names {
			if err == nil && strings.HasSuffix(strings.ToLower(strings.TrimSuffix(name, ".")), p.suffix) {
				h.confirm()
				return
			}
		}
	}
}
