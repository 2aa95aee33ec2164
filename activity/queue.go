// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"sync"
	"sync/atomic"
	"time"
)

// Queue passes requests, or other items to record, to one goroutine, which may be slow. Items that arrive while the
// queue is full are dropped and counted. Record does not allocate.
type Queue[T any] struct {
	items   chan T
	dropped atomic.Uint64
	closing chan struct{}
	done    chan struct{}
	once    sync.Once
}

// NewQueue starts a queue for up to size items. The goroutine of the queue calls the function take with each item.
// Between these calls, it calls the function tick about once in every interval. When the queue is closed, it calls tick
// once more.
func NewQueue[T any](size int, interval time.Duration, take func(T), tick func()) *Queue[T] {
	q := &Queue[T]{
		items:   make(chan T, size),
		closing: make(chan struct{}),
		done:    make(chan struct{}),
	}
	go q.run(interval, take, tick)
	return q
}

// Record queues an item. After Close, Record drops the item.
func (q *Queue[T]) Record(v T) { q.Offer(v) }

// Offer queues an item like Record, and reports whether the queue had room.
func (q *Queue[T]) Offer(v T) bool {
	select {
	case q.items <- v:
		return true
	default:
		q.dropped.Add(1)
		return false
	}
}

// Dropped returns the number of items dropped because the queue was full.
func (q *Queue[T]) Dropped() uint64 { return q.dropped.Load() }

// Close passes the queued items to the function take of NewQueue, and stops the queue. Record may be called during and
// after Close.
func (q *Queue[T]) Close() {
	q.once.Do(func() { close(q.closing) })
	<-q.done
}

func (q *Queue[T]) run(interval time.Duration, take func(T), tick func()) {
	defer close(q.done)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case v := <-q.items:
			take(v)
		case <-ticker.C:
			tick()
		case <-q.closing:
			for n := len(q.items); n > 0; n-- {
				take(<-q.items)
			}
			tick()
			return
		}
	}
}
