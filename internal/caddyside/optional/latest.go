// SPDX-License-Identifier: Apache-2.0

package optional

import (
	"slices"
	"sync"
)

// Latest holds the settings of all started configurations, in the order in which they started. While one configuration
// replaces another, Latest holds the settings of both. If the newer configuration fails to start, its settings are
// removed, and the settings of the older configuration apply again. The zero value is ready to use.
type Latest[T any] struct {
	mu  sync.Mutex
	all []*T
}

// Add adds v as the newest settings.
func (l *Latest[T]) Add(v *T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, v)
}

// Remove removes v, if it was added.
func (l *Latest[T]) Remove(v *T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(o *T) bool { return o == v })
}

// Get returns the newest settings, or nil if there are none.
func (l *Latest[T]) Get() *T {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return nil
	}
	return l.all[len(l.all)-1]
}
