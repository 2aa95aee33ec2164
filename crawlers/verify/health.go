// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"net/netip"
	"sync"
	"time"
)

// probeInterval is the shortest time between two probes of a resolver.
const probeInterval = time.Second

// probes are addresses whose host names have not changed in years, with the suffixes of these names.
var probes = []struct{ addr, suffix string }{
	{"8.8.8.8", ".google"},
	{"1.1.1.1", ".one.one.one"},
	{"9.9.9.9", ".quad9.net"},
}

// health tracks whether a resolver answers correctly. Some resolvers answer "not found", or always the same name,
// at least for a while. So a negative answer is used only after a later probe got the correct answer. It is never
// used if a probe failed around the same time.
type health struct {
	resolver Resolver

	mu      sync.Mutex
	probing bool
	waiting bool      // a probe will begin soon
	began   time.Time // when the last probe began
	correct time.Time // when the last probe with a correct answer began
	failing bool      // the last probe got no correct answer
	period  int       // number of probes without a correct answer
}

// now returns the time and the period for an answer that has just arrived. working is false while probes fail.
func (h *health) now() (at time.Time, period int, working bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now(), h.period, !h.failing
}

// believes reports whether a negative answer with this time and period may be used. dropped reports whether it
// never may.
func (h *health) believes(at time.Time, period int) (believed, dropped bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.period == period && !h.failing && !h.correct.Before(at), h.period != period
}

// probe looks up well-known addresses. If the last probe was a short time ago, it waits a little in the background
// first.
func (h *health) probe(ctx context.Context) {
	h.mu.Lock()
	began := time.Now()
	if h.probing || !h.began.IsZero() && began.Sub(h.began) < probeInterval {
		if !h.waiting {
			h.waiting = true
			time.AfterFunc(probeInterval, h.probeLater)
		}
		h.mu.Unlock()
		return
	}
	h.probing, h.began = true, began
	h.mu.Unlock()
	ok := h.answers(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.probing, h.failing = false, !ok; ok {
		h.correct = began
	} else {
		h.period++
	}
}

func (h *health) probeLater() {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	h.mu.Lock()
	h.waiting = false
	h.mu.Unlock()
	h.probe(ctx)
}

// answers reports whether the resolver finds the host name of one of the probes, and the address for that name.
func (h *health) answers(ctx context.Context) bool {
	for _, p := range probes {
		if found, _, _ := confirm(ctx, h.resolver, []string{p.suffix}, netip.MustParseAddr(p.addr)); found == yes {
			return true
		}
	}
	return false
}
