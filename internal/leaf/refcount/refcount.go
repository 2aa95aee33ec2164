// SPDX-License-Identifier: Apache-2.0

// Package refcount shares values between several users, and drops a value after its last use.
package refcount

import "sync"

// Pool holds values by key while they are used. The zero value is ready to use.
type Pool[T any] struct {
	mu   sync.Mutex
	used map[string]*counted[T]
}

type counted[T any] struct {
	value T
	users int
}

// Acquire returns the value of a key. If the key is not in use yet, Acquire calls create to make the value. For each
// call of Acquire, call Release once.
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

// Release ends one use of a key. last reports whether that was the last use. In this case, the pool drops the value.
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

// All returns the values in use, in no particular order.
func (p *Pool[T]) All() []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]T, 0, len(p.used))
	for _, c := range p.used {
		all = append(all, c.value)
	}
	return all
}
