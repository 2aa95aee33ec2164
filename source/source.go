// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/deadline"
)

type source struct {
	name string // the name in the configuration, with an absolute path
	key  string // identifies the source, together with instance; if empty, versions are not saved
	// instance distinguishes storages that do not implement fmt.Stringer. It is only valid in this process, so the
	// names of saved files use only key.
	instance string
	// read returns the text and a validator, which the next read gets as last. For the first read, last is nil. If the
	// text has not changed since the previous read, read may return errUnchanged. Any other error means that the text
	// is not available.
	read func(ctx context.Context, last any) (content, error)

	interval, minInterval time.Duration // the default and the shortest allowed time between reads
	// settle is the time during which a new text must not change before it is loaded, because a program may still
	// be writing it. It is 0 for sources whose text changes in a single step.
	settle time.Duration
	remote bool // reading uses a network, so a failure does not mean that the policy is gone
	// startsFromLastGood means that the server starts with the last good policy, so that the start does not wait for
	// the network.
	startsFromLastGood bool
	stored             *storedPolicy // nil if the source is not a storage
}

// shareKey returns a key that is equal for sources that always have the same text.
func (src *source) shareKey() string { return src.key + src.instance }

type content struct {
	data      []byte
	validator any // lets the next read detect whether the text has changed
}

var errUnchanged = errors.New("unchanged")

const readTimeout = 10 * time.Second

// state returns a string that identifies a state of the source: its text or an error. All errors of a remote source
// have the same string, because the texts of network errors may contain different ports and request IDs each time.
func (src *source) state(found content, err error) string {
	switch {
	case err == nil:
		return sumOf(found.data)
	case src.remote:
		return "error"
	}
	return "error: " + err.Error()
}

// bounded returns a function that calls read, but returns after readTimeout, even if read does not. For example,
// reading a file on a dead network mount can block forever, and some storages ignore their context. While a blocked
// read is running, bounded does not start another one, so at most one goroutine is blocked for each source.
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

// within calls f, and returns when f returns, when the limit has passed, or when ctx ends. It returns in time even if f
// ignores its context. If f panics, within returns an error. what describes the work of f in errors.
func within[T any](ctx context.Context, limit time.Duration, what string, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return deadline.Do(ctx, what, f)
}
