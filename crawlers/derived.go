// SPDX-License-Identifier: Apache-2.0

package crawlers

import "sync"

// Derived is something that is derived from the catalogue in use, once for all who need
// it. The zero value is ready to use.
type Derived[T any] struct {
	mu    sync.Mutex
	of    *Catalogue
	value T
}

// Get returns what derive makes of c. ok is false if c is not the catalogue in use: the
// caller derives its own value then.
func (d *Derived[T]) Get(c *Catalogue, derive func() T) (value T, ok bool) {
	if current, err := Default(); err != nil || current != c {
		return value, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of != c {
		d.of, d.value = c, derive()
	}
	return d.value, true
}
