// SPDX-License-Identifier: Apache-2.0

// Package logsample limits the number of log lines that requests can cause. It also limits the memory that it needs for
// this.
package logsample

import (
	"sync"
	"time"
)

// In each window of time, a Sampler logs the first lines of each kind. The constant first is their number. After these,
// it logs only one of every "then" lines.
const (
	window  = time.Minute
	first   = 10
	then    = 100
	maxKeys = 1000
)

// Sampler decides which lines of each kind are logged. Values of K identify kinds. If a window of time has more than
// maxKeys kinds, all further kinds share one count, whose key is the zero value of K.
type Sampler[K comparable] struct {
	mu     sync.Mutex
	since  time.Time
	counts map[K]*count
}

type count struct{ seen, skipped int }

// Sample reports whether to log a line. skipped is the number of lines of the same kind that were not logged since the
// last logged one.
func (s *Sampler[K]) Sample(key K, now time.Time) (ok bool, skipped int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil || now.Sub(s.since) >= window || now.Before(s.since) {
		s.startWindow(now)
	}
	c := s.countOf(key)
	c.seen++
	if c.seen > first && (c.seen-first)%then != 0 {
		c.skipped++
		return false, 0
	}
	skipped, c.skipped = c.skipped, 0
	return true, skipped
}

// startWindow resets the counts. It keeps the numbers of skipped lines that have not been reported yet.
func (s *Sampler[K]) startWindow(now time.Time) {
	fresh := map[K]*count{}
	for k, c := range s.counts {
		if c.skipped > 0 {
			fresh[k] = &count{skipped: c.skipped}
		}
	}
	if len(fresh) >= maxKeys {
		clear(fresh)
	}
	s.since, s.counts = now, fresh
}

func (s *Sampler[K]) countOf(key K) *count {
	c := s.counts[key]
	if c == nil && len(s.counts) >= maxKeys {
		var rest K
		key = rest
		c = s.counts[key]
	}
	if c == nil {
		c = new(count)
		s.counts[key] = c
	}
	return c
}

// maxOnce limits the number of messages that a Once remembers.
const maxOnce = 100

// Once allows each message to be logged once. After maxOnce different messages, it does not allow any further messages.
type Once struct {
	mu   sync.Mutex
	seen map[string]bool
}

// First reports whether to log a message. It returns false if the same message was logged before, or if maxOnce
// different messages were logged before.
func (o *Once) First(message string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[message] || len(o.seen) >= maxOnce {
		return false
	}
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	o.seen[message] = true
	return true
}
