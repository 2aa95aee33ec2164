// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"slices"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// policyLines are the places in Caddyfiles that name policies, from when this process
// adapts a Caddyfile until it provisions the handler: the JSON in between has no lines.
var policyLines lines

// lines are places by policy. Those of a Caddyfile that was adapted and not loaded are
// forgotten, as they would be wrong for the next configuration.
type lines struct {
	mu      sync.Mutex
	places  map[string][]string
	taken   map[string]int
	touched time.Time
}

const lineLifetime = time.Minute

func (l *lines) set(policy, place string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.places == nil || time.Since(l.touched) > lineLifetime {
		l.places, l.taken = map[string][]string{}, map[string]int{}
	}
	l.places[policy], l.touched = append(l.places[policy], place), time.Now()
}

// take returns a policy's places as text, or "", as often as there are places: each
// handler takes them once, and which of them is its own it does not know.
func (l *lines) take(policy string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.touched) > lineLifetime {
		l.places = nil
	}
	places := l.places[policy]
	if len(places) == 0 {
		return ""
	}
	if l.taken[policy]++; l.taken[policy] == len(places) {
		delete(l.places, policy)
		delete(l.taken, policy)
	}
	return english.Some(slices.Compact(slices.Clone(places)), 3)
}
