// SPDX-License-Identifier: Apache-2.0

// Package labels bounds the values of metric labels: how many there are, and how long.
package labels

import (
	"strings"
	"sync"
)

// Other stands for the names past the bound of a Set.
const Other = "other"

// Set is the labels of a bounded number of names. It is safe for concurrent use.
type Set struct {
	limit  int
	bytes  int
	mu     sync.RWMutex
	labels map[string]string // by name
}

// NewSet returns an empty set, for at most limit names. A label has at most the given number of bytes.
func NewSet(limit, bytes int) *Set {
	return &Set{limit: limit, bytes: bytes, labels: map[string]string{}}
}

// Label returns the label of a name, Other if there are too many already.
func (s *Set) Label(name string) string {
	s.mu.RLock()
	l, ok := s.labels[name]
	s.mu.RUnlock()
	if ok {
		return l
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.labels[name]; ok {
		return l
	}
	if len(s.labels) >= s.limit {
		return Other
	}
	name = strings.Clone(name)                                  // it may be part of a request
	l = strings.ToValidUTF8(name[:min(len(name), s.bytes)], "") // counters panic on invalid UTF-8
	s.labels[name] = l
	return l
}

// SetLimit changes how many names there may be. Those that are there stay.
func (s *Set) SetLimit(limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = limit
}
