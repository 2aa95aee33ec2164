// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"sync"

	"github.com/robotspolicy/caddy-robots-policy/handler"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// running are the handlers of the configurations that are loaded. Caddy gives the admin
// API no other way to them.
var running handlers

type handlers struct {
	mu  sync.Mutex
	all map[*handler.Handler]bool
}

func (s *handlers) add(h *handler.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*handler.Handler]bool{}
	}
	s.all[h] = true
}

// remove removes a handler, if it was added.
func (s *handlers) remove(h *handler.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[h] {
		delete(s.all, h)
		h.SetOverride(policy.ModeUnset)
	}
}

// override limits what all handlers enforce, until a new configuration is loaded.
// ModeUnset lifts the limit. It returns how many handlers there are.
func (s *handlers) override(m policy.Mode) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.all {
		h.SetOverride(m)
	}
	return len(s.all)
}
