// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"sync"
	"sync/atomic"
	"time"
)

// Queue is a [Recorder] that hands visits to one goroutine, which may take its
// time. A visit that finds the queue full is dropped and counted. Record does not
// allocate.
type Queue struct {
	visits  chan Visit
	dropped atomic.Uint64
	closing chan struct{}
	done    chan struct{}
	once    sync.Once
}

// NewQueue starts a queue for up to size visits. Each is passed to take, which is
// never called concurrently; tick is called about once every interval, between
// visits, and once more when the queue is closed.
func NewQueue(size int, interval time.Duration, take func(Visit), tick func()) *Queue {
	q := &Queue{
		visits:  make(chan Visit, size),
		closing: make(chan struct{}),
		done:    make(chan struct{}),
	}
	go q.run(interval, take, tick)
	return q
}

// Record implements [Recorder]. After Close it drops the visit.
func (q *Queue) Record(v Visit) {
	select {
	case q.visits <- v:
	default:
		q.dropped.Add(1)
	}
}

// Dropped is how many visits found the queue full.
func (q *Queue) Dropped() uint64 { return q.dropped.Load() }

// Close passes on what is queued and stops. Record may be called during and after
// it.
func (q *Queue) Close() {
	q.once.Do(func() { close(q.closing) })
	<-q.done
}

func (q *Queue) run(interval time.Duration, take func(Visit), tick func()) {
	defer close(q.done)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case v := <-q.visits:
			take(v)
		case <-ticker.C:
			tick()
		case <-q.closing:
			for n := len(q.visits); n > 0; n-- {
				take(<-q.visits)
			}
			tick()
			return
		}
	}
}
