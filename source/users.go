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

// user is the use of a policy by one store.
type user struct {
	*Options
	src      *source // with an instance of the storage, which belongs to one configuration
	watch    bool
	interval time.Duration

	onChange func(*Snapshot)
	snapshot *Snapshot // what onChange was called with last
}

func newUser(o *Options, src *source) (*user, error) {
	if 0 < o.Reload && o.Reload < src.minInterval {
		return nil, fmt.Errorf("reload %s is too short: %s is checked at most every %s; to switch this off, write: reload off", o.Reload, src.name, src.minInterval)
	}
	u := &user{Options: o, src: src, watch: o.Reload >= 0, interval: o.Reload, onChange: func(*Snapshot) {}}
	if o.Reload == 0 {
		u.interval = src.interval
	}
	return u, nil
}

func (u *user) set(s *Snapshot) {
	if u.snapshot = s; s != nil { // else there is none yet
		u.onChange(s)
	}
}

// users are the stores that use a policy. Its source is polled while one of them watches.
type users struct {
	mu   sync.RWMutex
	all  []*user // oldest first
	stop context.CancelFunc
	// retry is the time between polls of a source without a watching store, because its text was not loaded at the
	// start; 0: it is not polled.
	retry time.Duration
}

// join adds a user. It is called with mu held.
func (us *users) join(u *user, poll func(context.Context) time.Duration) {
	us.all = append(us.all, u)
	if !u.watch && us.retry == 0 {
		return
	}
	if us.stop != nil {
		us.stop() // its next poll may be later than this user wants
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

// interval returns the shortest interval that a user wants, 0 if none watches. It is called with mu held.
func (us *users) interval() time.Duration {
	shortest := us.retry
	for _, u := range us.all {
		if u.watch && (shortest == 0 || u.interval < shortest) {
			shortest = u.interval
		}
	}
	return shortest
}

// active returns the newest user that runs, nil if there is none, and the interval at which to poll.
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

// Upstream returns the robots.txt of each host's upstream as a handler fetched it last. It is nil if no handler merges it.
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

// startupPoll is the time to wait for a configuration that is being loaded. Until it runs
// nothing is read and no event is emitted, because it may only be validated.
const startupPoll = 20 * time.Millisecond

// watch calls poll, and again each time the duration that poll returned has passed, until ctx ends.
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
