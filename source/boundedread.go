// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// boundedRead returns from a read when its context ends, even if the read itself
// does not: a file on a dead network mount can block for ever, and some storage
// modules ignore their context. While such a read is still running, no other one
// begins, so it costs one goroutine.
type boundedRead struct{ running *semaphore.Weighted }

func newBoundedRead() boundedRead { return boundedRead{semaphore.NewWeighted(1)} }

// do returns what read returns, or an error if ctx ends first. A panic in read, such
// as in a storage module, is an error too.
func (b boundedRead) do(ctx context.Context, read func(context.Context) (content, error)) (content, error) {
	timeout := func() (content, error) {
		return content{}, fmt.Errorf("reading takes too long: %w", context.Cause(ctx))
	}
	if b.running.Acquire(ctx, 1) != nil {
		return timeout()
	}
	type result struct {
		found content
		err   error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("panic while reading: %v", p)
			}
			b.running.Release(1)
			done <- r
		}()
		r.found, r.err = read(ctx)
	}()
	select {
	case r := <-done:
		return r.found, r.err
	case <-ctx.Done():
		return timeout()
	}
}

// within waits for f until ctx ends, as f may ignore a context, or not take one. A panic
// in f is an error.
func within(ctx context.Context, what string, f func() error) error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("%s: panic: %v", what, p)
			}
		}()
		done <- f()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s takes too long: %w", what, ctx.Err())
	}
}
