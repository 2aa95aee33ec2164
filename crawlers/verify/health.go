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

// probes are addresses whose names have not changed in years, with the ends of those names.
var probes = []struct{ addr, suffix string }{
	{"8.8.8.8", ".google"},
	{"1.1.1.1", ".one.one.one"},
	{"9.9.9.9", ".quad9.net"},
}

// health tracks whether a resolver answers correctly. Some resolvers answer "not found", or the
// same name, to everything, at least for a while. So a negative answer is used only after a
// later probe was answered correctly, and never if a probe failed around it.
type health struct {
	resolver Resolver

	mu      sync.Mutex
	probing bool
	waiting bool      // for the next probe
	began   time.Time // of the last probe
	correct time.Time // when the last probe began that was answered correctly
	failing bool      // the last probe was not
	period  int       // counts the probes that were not
}

// now is the time and the period of an answer that has just come; working is false while probes fail.
func (h *health) now() (at time.Time, period int, working bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now(), h.period, !h.failing
}

// believes reports whether a negative answer of a time and its period counts. It is dropped if that will never be so.
func (h *health) believes(at time.Time, period int) (believed, dropped bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.period == period && !h.failing && !h.correct.Before(at), h.period != period
}

// probe looks up well-known addresses; a little later in the background, if that was begun lately.
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

// answers reports whether the resolver knows the name of one of the probes, and that this resolves back.
func (h *health) answers(ctx context.Context) bool {
	for _, p := range probes {
		if found, _, _ := confirm(ctx, h.resolver, []string{p.suffix}, netip.MustParseAddr(p.addr)); found == yes {
			return true
		}
	}
	return false
}
