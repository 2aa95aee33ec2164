// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// user represents a store that uses a policy.
type user struct {
	*Options
	src      *source // the source; it uses the storage of the store's configuration
	watch    bool
	interval time.Duration

	onChange func(*Snapshot)
	snapshot *Snapshot // the version that onChange was last called with
}

func newUser(o *Options, src *source) (*user, error) {
	if 0 < o.Reload && o.Reload < src.minInterval {
		return nil, fmt.Errorf("reload %s is too short: %s is checked at most every %s; to switch the checks off, write: reload off", o.Reload, src.name, src.minInterval)
	}
	u := &user{Options: o, src: src, watch: o.Reload >= 0, interval: o.Reload, onChange: func(*Snapshot) {}}
	if o.Reload == 0 {
		u.interval = src.interval
	}
	return u, nil
}

func (u *user) set(s *Snapshot) {
	if u.snapshot = s; s != nil { // before the first version, s is nil
		u.onChange(s)
	}
}

// users holds the stores that use a policy. The source is polled while at least one of them watches the policy.
type users struct {
	mu   sync.RWMutex
	all  []*user // oldest first
	stop context.CancelFunc
	// retry is greater than 0 if the policy could not be loaded when the server started. In that case, it is polled
	// after the time retry, even if no store watches it. If retry is 0, only a policy that a store watches is polled.
	retry time.Duration
}

// join adds a user, and starts polling if the user watches or retry is set. The caller must hold mu.
func (us *users) join(u *user, poll func(context.Context) time.Duration) {
	us.all = append(us.all, u)
	if !u.watch && us.retry == 0 {
		return
	}
	if us.stop != nil {
		us.stop() // stop the present wait, because it may be longer than this user's interval
	}
	ctx, cancel := context.WithCancel(context.Background())
	us.stop = cancel
	go watch(ctx, poll)
}

func (us *users) leave(u *user) {
	us.mu.Lock()
	defer us.mu.Unlock()
	us.all = slices.DeleteFunc(us.all, func(o *user) bool { return o == u })
	if us.stop != nil && (us.interval() == 0 || len(us.all) == 0) {
		us.stop()
		us.stop = nil
	}
}

// interval returns the time between polls: the shortest interval of all users that watch, or retry if it is shorter. It
// returns 0 if the source is not polled. The caller must hold mu.
func (us *users) interval() time.Duration {
	shortest := us.retry
	for _, u := range us.all {
		if u.watch && (shortest == 0 || u.interval < shortest) {
			shortest = u.interval
		}
	}
	return shortest
}

// active returns the newest user whose configuration is running, or nil if there is none. It also returns the interval
// between polls.
func (us *users) active() (*user, time.Duration) {
	us.mu.RLock()
	defer us.mu.RUnlock()
	for _, u := range slices.Backward(us.all) {
		if u.Running == nil || u.Running() {
			return u, us.interval()
		}
	}
	return nil, us.interval()
}

// Upstream returns a function that returns the robots.txt of a host's upstream, in the version that a handler has last
// fetched. The function asks one handler after the other, until one of them knows the file. If none of the handlers
// merges the upstream's robots.txt, Upstream returns nil.
func (us *users) Upstream() site.Below {
	us.mu.RLock()
	defer us.mu.RUnlock()
	var all []site.Below
	for _, u := range us.all {
		if u.Upstream != nil {
			all = append(all, u.Upstream)
		}
	}
	if all == nil {
		return nil
	}
	return func(host string) (below *robotstxt.File, known bool) {
		for _, upstream := range all {
			if below, known = upstream(host); known {
				break
			}
		}
		return below, known
	}
}

// startupPoll is the time between a store's checks whether Caddy runs the new configuration. Until then, the store does
// not poll the source and does not emit events, because Caddy may only validate the configuration.
const startupPoll = 20 * time.Millisecond

// watch calls poll repeatedly until ctx ends. It waits between calls for the duration that poll returned.
func watch(ctx context.Context, poll func(context.Context) time.Duration) {
	wait := startupPoll
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			wait = poll(ctx)
		}
	}
}
