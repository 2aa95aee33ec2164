// SPDX-License-Identifier: Apache-2.0

// Package labels limits the number and length of the values of metric labels.
package labels

import (
	"strings"
	"sync"
)

// Other is the label for all names that exceed the limit of a Set.
const Other = "other"

// Set maps a limited number of names to labels. It is safe for concurrent use.
type Set struct {
	limit  int
	bytes  int
	mu     sync.RWMutex
	labels map[string]string // labels by name
}

// NewSet returns an empty set for at most limit names. A label has at most the given number of bytes.
func NewSet(limit, bytes int) *Set {
	return &Set{limit: limit, bytes: bytes, labels: map[string]string{}}
}

// Label returns the label of a name. It returns Other for a new name if the set is full.
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
	name = strings.Clone(name)                                  // name may refer to a request's memory
	l = strings.ToValidUTF8(name[:min(len(name), s.bytes)], "") // counters panic on invalid UTF-8
	s.labels[name] = l
	return l
}

// SetLimit changes the limit. It does not remove names.
func (s *Set) SetLimit(limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = limit
}
