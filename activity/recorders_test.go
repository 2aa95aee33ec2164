// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/site"
)

type counter struct {
	n         int
	published chan *Publication
}

func (c *counter) Record(Request)                  { c.n++ }
func (c *counter) Publish(p *Publication)          { c.published <- p }
func (*counter) Serve(*Publication, site.Document) {}
func (*counter) End(*Publication)                  {}
func (c *counter) Dropped() uint64                 { return 7 }

func TestRecorders(t *testing.T) {
	var rs Recorders
	if rs.Active() || rs.Get("a") != nil {
		t.Fatal("there is a recorder before any was added")
	}
	rs.Record(Request{})
	a, b := &counter{published: make(chan *Publication, 1)}, &counter{published: make(chan *Publication, 1)}
	removeA, removeB := rs.Add("a", a), rs.Add("b", b)
	rs.Record(Request{})
	if rs.Get("b") != b || rs.Get("c") != nil {
		t.Error("a recorder was not found by its name")
	}
	removeA()
	removeA()
	rs.Record(Request{})
	if a.n != 1 || b.n != 2 || !rs.Active() {
		t.Errorf("%d, %d", a.n, b.n)
	}
	rs.Publish(&Publication{ID: "1"})
	if p := <-b.published; p.ID != "1" || len(a.published) != 0 {
		t.Error(p)
	}
	rs.Dropped(func(name string, n uint64) {
		if name != "b" && name != "slow" || n != 7 {
			t.Error(name, n)
		}
	})
	slow := &counter{published: make(chan *Publication)}
	removeSlow := rs.Add("slow", slow)
	rs.Publish(&Publication{ID: "2"})
	<-b.published
	removed := make(chan bool)
	go func() { removeSlow(); close(removed) }()
	select {
	case <-removed:
		t.Error("a recorder was removed before it had received the publication")
	case p := <-slow.published:
		if p.ID != "2" {
			t.Error(p)
		}
	}
	<-removed
	removeB()
	if rs.Active() {
		t.Error("all were removed")
	}
}

// A reload adds the recorders of the new configuration before it removes the old ones. A request in between is recorded
// only by the old recorder.
func TestReloadRecordsOnce(t *testing.T) {
	var rs Recorders
	before, after := &counter{}, &counter{}
	removeBefore := rs.Add("store", before)
	removeAfter := rs.Add("store", after)
	rs.Record(Request{})
	removeBefore()
	rs.Record(Request{})
	removeAfter()
	if before.n != 1 || after.n != 1 {
		t.Errorf("%d requests before, %d after, want one each", before.n, after.n)
	}
}

func TestRecordersDoNotAllocate(t *testing.T) {
	var rs Recorders
	defer rs.Add("a", &counter{})()
	v := Request{Path: "/"}
	if n := testing.AllocsPerRun(100, func() { rs.Record(v) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
