// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"sync"
	"time"
)

// policyLines are the places in Caddyfiles that name policies, from when this process
// adapts a Caddyfile until it provisions the handler: the JSON in between has no lines.
var policyLines lines

// lines are places by policy. Those of a Caddyfile that was adapted and not loaded are
// forgotten, as they would be wrong for the next configuration.
type lines struct {
	mu      sync.Mutex
	places  map[string]string
	touched time.Time
}

const lineLifetime = time.Minute

func (l *lines) set(policy, place string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.places == nil || time.Since(l.touched) > lineLifetime {
		l.places = map[string]string{}
	}
	l.places[policy], l.touched = place, time.Now()
}

// take returns a policy's place once, or "".
func (l *lines) take(policy string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.touched) > lineLifetime {
		l.places = nil
	}
	place := l.places[policy]
	delete(l.places, policy)
	return place
}
