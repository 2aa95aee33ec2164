// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"fmt"
	"sync"
)

// turn is a lock for which nobody has to wait longer than a context lasts.
type turn struct {
	once  sync.Once
	taken chan struct{}
}

// take takes the lock, unless ctx ends first.
func (t *turn) take(ctx context.Context) error {
	t.once.Do(func() { t.taken = make(chan struct{}, 1) })
	select {
	case t.taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pass lets the next one take the lock.
func (t *turn) pass() { <-t.taken }

// patience waits for a reading no longer than a context lasts: a file of a network
// that is away can hang for ever, and not every storage heeds its context. While
// one is out, no other is begun, so that what hangs is one goroutine.
type patience struct{ out turn }

// read returns what f does, or the error that it took too long. A panic of f, as
// of a storage module, is an error too.
func (p *patience) read(ctx context.Context, f func(context.Context) (reading, error)) (reading, error) {
	late := func() (reading, error) {
		return reading{}, fmt.Errorf("it does not answer: %w", context.Cause(ctx))
	}
	if p.out.take(ctx) != nil {
		return late()
	}
	type answer struct {
		found reading
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if fault := recover(); fault != nil {
				a.err = fmt.Errorf("a fault while reading: %v", fault)
			}
			p.out.pass()
			answered <- a
		}()
		a.found, a.err = f(ctx)
	}()
	select {
	case a := <-answered:
		return a.found, a.err
	case <-ctx.Done():
		return late()
	}
}
