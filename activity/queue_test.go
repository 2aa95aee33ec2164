// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"sync/atomic"
	"testing"
	"time"
)

func TestQueuePassesOnWhatIsQueued(t *testing.T) {
	var got []string
	ticks := 0
	q := NewQueue(10, time.Hour, func(v Request) { got = append(got, v.Path) }, func() { ticks++ })
	q.Record(Request{Path: "/a"})
	q.Record(Request{Path: "/b"})
	q.Close()
	q.Close()
	if len(got) != 2 || got[0] != "/a" || got[1] != "/b" || ticks != 1 {
		t.Errorf("got %q and %d ticks", got, ticks)
	}
}

func TestQueueDropsWhenFull(t *testing.T) {
	release := make(chan struct{})
	var taken atomic.Int64
	q := NewQueue(4, time.Hour, func(Request) { <-release; taken.Add(1) }, func() {})
	const sent = 100
	for range sent {
		q.Record(Request{}) // returns although take does not
	}
	close(release)
	q.Close()
	if n := q.Dropped(); n < sent-5 || n+uint64(taken.Load()) != sent {
		t.Errorf("%d dropped and %d taken of %d", n, taken.Load(), sent)
	}
	before := q.Dropped()
	for range 10 {
		q.Record(Request{}) // after Close: fills the channel, then drops; never waits
	}
	if q.Dropped() < before+6 {
		t.Errorf("%d dropped after closing", q.Dropped()-before)
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	q := NewQueue(1000, time.Hour, func(Request) {}, func() {})
	defer q.Close()
	var r Recorder = q
	v := Request{Time: time.Now(), Host: "example.com", Path: "/a", Crawler: "GPTBot", Identity: Verified, Decision: Allowed}
	if n := testing.AllocsPerRun(100, func() { r.Record(v) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	q := NewQueue(1<<16, time.Second, func(Request) {}, func() {})
	defer q.Close()
	var r Recorder = q
	v := Request{Time: time.Now(), Host: "example.com", Path: "/a", Crawler: "GPTBot", Identity: Verified, Decision: Allowed}
	b.ReportAllocs()
	for b.Loop() {
		r.Record(v)
	}
}
