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

// probes are well-known addresses and the suffixes of their host names. These host names have not changed for years.
var probes = []struct{ addr, suffix string }{
	{"8.8.8.8", ".google"},
	{"1.1.1.1", ".one.one.one"},
	{"9.9.9.9", ".quad9.net"},
}

// health tracks whether a resolver answers correctly. Some resolvers wrongly answer "not found" or always give the same
// name, at least for a while. A probe looks up addresses with well-known answers, to find out whether the resolver is
// correct. A negative answer is used only after a probe that began later has received the correct answer. A negative
// answer is never used if the previous probe failed, or if a probe has failed since the answer arrived.
type health struct {
	resolver Resolver

	mu      sync.Mutex
	probing bool
	waiting bool      // true if a probe is scheduled
	began   time.Time // when the last probe began
	correct time.Time // when the last probe with a correct answer began
	failing bool      // true if the last probe did not receive a correct answer
	period  int       // number of probes that did not receive a correct answer
}

// now returns the current time, and the number of probes that have failed so far (the period). Callers store the time
// and the number with an answer that has just arrived. working is false if the last probe failed.
func (h *health) now() (at time.Time, period int, working bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now(), h.period, !h.failing
}

// believes reports whether a negative answer may be used. at and period are the values that h.now returned when the
// answer arrived. dropped is true if the answer must be discarded, because a probe has failed since then.
func (h *health) believes(at time.Time, period int) (believed, dropped bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.period == period && !h.failing && !h.correct.Before(at), h.period != period
}

// probe looks up well-known addresses. If a probe is in progress, or began less than probeInterval ago, probe returns
// at once, and the next probe begins in the background after probeInterval.
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

// answers reports whether the resolver works for at least one of the addresses in probes. It works if it finds a host
// name with the expected suffix for the address, and the address for that host name.
func (h *health) answers(ctx context.Context) bool {
	for _, p := range probes {
		if found, _, _ := confirm(ctx, h.resolver, []string{p.suffix}, netip.MustParseAddr(p.addr)); found == yes {
			return true
		}
	}
	return false
}
