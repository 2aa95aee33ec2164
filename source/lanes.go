// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// lanes bounds how many files are read and compiled at once. A file that takes long
// moves from the fast lane to the slow one and so does not hold up the others.
//
//	fast: a b c d        c takes long:   fast: a b d e
//	slow:                                slow: c
type lanes struct {
	fast, slow *semaphore.Weighted
}

const (
	fastLane = 64
	slowLane = 256 // each read that hangs in the kernel keeps a thread
	// slowAfter is when a file changes lanes.
	slowAfter = 100 * time.Millisecond
)

func newLanes() *lanes {
	return &lanes{fast: semaphore.NewWeighted(fastLane), slow: semaphore.NewWeighted(slowLane)}
}

var errBusy = errors.New("too many policies are being loaded at once")

// place is the place of one file in one of the lanes.
type place struct {
	lanes *lanes

	mu    sync.Mutex
	timer *time.Timer
	slow  bool
	left  bool
}

// enter waits for a place in the fast lane, until ctx ends.
func (l *lanes) enter(ctx context.Context) (*place, error) {
	if l.fast.Acquire(ctx, 1) != nil {
		return nil, errBusy
	}
	p := &place{lanes: l}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(slowAfter, p.slowDown)
	return p, nil
}

// slowDown moves to the slow lane as soon as there is room.
func (p *place) slowDown() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.left:
	case p.lanes.slow.TryAcquire(1):
		p.slow = true
		p.lanes.fast.Release(1)
	default:
		p.timer.Reset(slowAfter)
	}
}

// leave gives up the place.
func (p *place) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	p.timer.Stop()
	if p.slow {
		p.lanes.slow.Release(1)
	} else {
		p.lanes.fast.Release(1)
	}
}
