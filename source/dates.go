// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"sync"
	"time"
)

// longestSleep limits the timer's wait, because during a long wait someone may set the clock, or the computer may
// sleep.
const longestSleep = time.Hour

// shortestSleep is the wait before the next attempt if a date has passed, but the policy could not be compiled.
const shortestSleep = time.Minute

// dates is a timer for the earliest date in all policies of a pool.
type dates struct {
	mu    sync.Mutex
	next  time.Time // zero if no policy has a date
	timer *time.Timer
}

// watchDates sets the pool's timer to the next date in the version s, unless the timer ends earlier because of another
// version. When a date passes, the policy is compiled again, because the date may change its effects, such as the
// results of its tests.
func (p *Pool) watchDates(s *Snapshot) {
	if p == nil || s == nil {
		return
	}
	p.dates.mu.Lock()
	defer p.dates.mu.Unlock()
	next := s.nextDate()
	if next.IsZero() || !p.dates.next.IsZero() && !next.Before(p.dates.next) {
		return
	}
	p.dates.next = next
	if p.dates.timer != nil {
		p.dates.timer.Stop()
	}
	sleep := min(time.Until(next), longestSleep)
	if sleep <= 0 {
		sleep = shortestSleep // compiling failed, for example because a configuration is being loaded
	}
	p.dates.timer = time.AfterFunc(sleep, p.datePasses)
}

func (p *Pool) datePasses() {
	p.dates.mu.Lock()
	passed := !time.Now().Before(p.dates.next)
	p.dates.next = time.Time{}
	p.dates.mu.Unlock()
	if passed {
		p.Recompile(context.Background())
	}
	for _, d := range p.Loaded() {
		p.watchDates(d.Current())
	}
}
