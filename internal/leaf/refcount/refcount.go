// SPDX-License-Identifier: Apache-2.0

// Package refcount shares values between those who use them at the same time.
package refcount

import "sync"

// Pool holds values by key while they are in use. The zero value is ready to use.
type Pool[T any] struct {
	mu   sync.Mutex
	used map[string]*counted[T]
}

type counted[T any] struct {
	value T
	users int
}

// Acquire returns the value of a key, which create makes if it is not in use yet. Release it when done.
func (p *Pool[T]) Acquire(key string, create func() T) T {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.used[key]
	if c == nil {
		c = &counted[T]{value: create()}
		if p.used == nil {
			p.used = map[string]*counted[T]{}
		}
		p.used[key] = c
	}
	c.users++
	return c.value
}

// Release ends one use of a key. It reports whether that was the last one, after which the pool forgets the value.
func (p *Pool[T]) Release(key string) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.used[key]
	if c.users--; c.users > 0 {
		return false
	}
	delete(p.used, key)
	return true
}

// All returns the values in use, in no order.
func (p *Pool[T]) All() []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]T, 0, len(p.used))
	for _, c := range p.used {
		all = append(all, c.value)
	}
	return all
}
