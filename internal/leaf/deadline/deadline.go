// SPDX-License-Identifier: Apache-2.0

// Package deadline limits the time of functions that may block forever, for example because a network file system does
// not answer.
package deadline

import (
	"context"
	"fmt"
)

// Do calls f, and returns when f returns or ctx ends. It works even if f ignores its context. If f panics, Do returns
// an error. what is the name of the work in errors.
func Do[T any](ctx context.Context, what string, f func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("%s: panic: %v", what, p)
			}
			done <- r
		}()
		r.value, r.err = f(ctx)
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("%s takes too long: %w", what, ctx.Err())
	}
}
