// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"math/rand/v2"
	"time"
)

// watch calls poll, and again each time the duration that poll returned has passed,
// until ctx ends. A value in woken makes it poll soon.
func watch(ctx context.Context, woken <-chan struct{}, poll func(context.Context) time.Duration) {
	timer := time.NewTimer(startupPoll)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-woken:
			timer.Reset(startupPoll)
			continue
		case <-timer.C:
		}
		timer.Reset(poll(ctx))
	}
}

// wake makes a watcher poll soon.
func wake(woken chan struct{}) {
	select {
	case woken <- struct{}{}:
	default: // it is awake already
	}
}

// startupPoll is how long to wait for a configuration that is being loaded. Until it
// runs nothing is read and no event is emitted: it may only be validated.
const startupPoll = 20 * time.Millisecond

// nextPoll returns how long to wait for the next poll. Remote sources are polled
// less often while they fail, and with jitter, so that a fleet does not poll at once.
func nextPoll(interval time.Duration, failures int, remote bool) time.Duration {
	if !remote {
		return interval
	}
	const longest = 5 * time.Minute
	for range failures {
		if interval >= longest {
			break
		}
		interval = min(2*interval, longest)
	}
	return interval - time.Duration(rand.Int64N(int64(interval)/5+1))
}
