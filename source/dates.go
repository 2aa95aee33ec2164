// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"sync"
	"time"
)

// longestSleep is the longest time that the timer of dates waits, because clocks are set, and computers
// sleep.
const longestSleep = time.Hour

// shortestSleep is the time until a date that has passed is looked at again.
const shortestSleep = time.Minute

// dates is the timer that goes off when the first date in one of the policies of a pool passes.
type dates struct {
	mu    sync.Mutex
	next  time.Time // zero: no policy has a date
	timer *time.Timer
}

// watchDates makes the timer go off when a date in a version passes. The policy is then compiled once more, so that
// results which the date changes, such as its tests, are determined again.
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
		sleep = shortestSleep // the policy could not be compiled yet, for example while a configuration loads
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
