// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

type source struct {
	name string // as the configuration calls it, made absolute
	key  string // equal for sources that always have the same text, if instance is equal too; empty: nothing is saved
	// instance tells storages without a description apart. It means nothing to another
	// process, so what is saved goes by the key alone.
	instance string
	// read returns the text. Given the validator of an earlier read it may return
	// errUnchanged instead. Any other error means that there is no text now.
	read func(ctx context.Context, last any) (content, error)

	interval, minInterval time.Duration // between reads
	// settle is the time that a new text must stay the same before it is loaded, because a
	// program may still be writing it. It is 0 for sources that change at once.
	settle time.Duration
	remote bool // set if reading goes over a network: a failure then says nothing about the policy
	// startsFromLastGood is set if a last good policy is enough until the configuration
	// runs, so that starting does not wait for the network.
	startsFromLastGood bool
	stored             *storedPolicy // nil: it is not in a storage
}

// shareKey is equal for sources that always have the same text.
func (src *source) shareKey() string { return src.key + src.instance }

type content struct {
	data      []byte
	validator any // lets the source tell later whether anything has changed
}

var errUnchanged = errors.New("unchanged")

const readTimeout = 10 * time.Second

// state identifies a state of the source. Network errors can differ each time, by
// ports and request IDs, and count as one state.
func (src *source) state(found content, err error) string {
	switch {
	case err == nil:
		return sumOf(found.data)
	case src.remote:
		return "error"
	}
	return "error: " + err.Error()
}

// readPolicy reads a policy, but of one that is too large only enough to show that.
func readPolicy(r io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, policyfile.MaxSize+1))
}

// bounded returns from a read after readTimeout, even if the read itself does not: a file on a dead network mount can
// block for ever, and some storages ignore their context. While such a read is still running, no other one begins, so
// it costs one goroutine.
func bounded(read func(context.Context, any) (content, error)) func(context.Context, any) (content, error) {
	running := semaphore.NewWeighted(1)
	return func(ctx context.Context, last any) (content, error) {
		return within(ctx, readTimeout, "reading", func(ctx context.Context) (content, error) {
			if err := running.Acquire(ctx, 1); err != nil {
				return content{}, err
			}
			defer running.Release(1)
			return read(ctx, last)
		})
	}
}

// within waits for f until the limit has passed or ctx ends, as f may ignore its context. A panic in f is an error.
func within[T any](ctx context.Context, limit time.Duration, what string, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
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
