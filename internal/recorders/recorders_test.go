// SPDX-License-Identifier: Apache-2.0

package recorders

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

type counter struct {
	n         int
	published chan Publication
}

func (c *counter) Record(activity.Visit) { c.n++ }
func (c *counter) Publish(p Publication) { c.published <- p }
func (c *counter) Dropped() uint64       { return 7 }

func TestRecorders(t *testing.T) {
	if Active() {
		t.Fatal("there is a recorder before any was added")
	}
	if _, ok := Find[*counter](); ok {
		t.Error("a recorder was found before any was added")
	}
	Record(activity.Visit{})
	a, b := &counter{published: make(chan Publication, 1)}, &counter{published: make(chan Publication, 1)}
	removeA, removeB := Add("a", a), Add("b", b)
	Record(activity.Visit{})
	if found, ok := Find[Publisher](); !ok || found != Publisher(a) {
		t.Error("the first recorder that publishes was not found")
	}
	if _, ok := Find[ViolationStore](); ok {
		t.Error("a recorder was found that stores violations")
	}
	removeA()
	removeA()
	Record(activity.Visit{})
	if a.n != 1 || b.n != 2 || !Active() {
		t.Errorf("%d, %d", a.n, b.n)
	}
	Publish(Publication{Version: "1"})
	if p := <-b.published; p.Version != "1" || len(a.published) != 0 {
		t.Error(p)
	}
	Dropped(func(name string, n uint64) {
		if name != "b" && name != "slow" || n != 7 {
			t.Error(name, n)
		}
	})
	slow := &counter{published: make(chan Publication)}
	removeSlow := Add("slow", slow)
	Publish(Publication{Version: "2"})
	<-b.published
	removed := make(chan bool)
	go func() { removeSlow(); close(removed) }()
	select {
	case <-removed:
		t.Error("a recorder was removed before what was published had reached it")
	case p := <-slow.published:
		if p.Version != "2" {
			t.Error(p)
		}
	}
	<-removed
	removeB()
	if Active() {
		t.Error("all were removed")
	}
}

// A reload adds the recorders of the new configuration before it removes the old ones.
func TestReloadRecordsOnce(t *testing.T) {
	before, after := &counter{}, &counter{}
	removeBefore := Add("store", before)
	removeAfter := Add("store", after)
	Record(activity.Visit{})
	removeBefore()
	Record(activity.Visit{})
	removeAfter()
	if before.n != 1 || after.n != 1 {
		t.Errorf("%d visits before, %d after, want one each", before.n, after.n)
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	defer Add("a", &counter{})()
	v := activity.Visit{Path: "/"}
	if n := testing.AllocsPerRun(100, func() { Record(v) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
