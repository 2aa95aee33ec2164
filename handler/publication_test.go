// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// A robots.txt is given to the recorders once a day, and of made-up hosts no more than
// the bound.
func TestPublishedOnce(t *testing.T) {
	var p published
	for _, c := range []struct {
		robots string
		day    int64
		want   bool
	}{{"a v1", 1, true}, {"a v1", 1, false}, {"b v1", 1, true}, {"a v2", 1, true}, {"a v1", 2, true}, {"a v1", 2, false}} {
		if got := p.first(c.robots, c.day); got != c.want {
			t.Errorf("%s on day %d: %v", c.robots, c.day, got)
		}
	}
	n := 0
	for i := range maxRobots + 10 {
		if p.first(fmt.Sprint("host", i, " v1"), 3) {
			n++
		}
	}
	if n != maxRobots {
		t.Errorf("%d were given to the recorders, the bound is %d", n, maxRobots)
	}
}

// publicationCounter counts what it is given.
type publicationCounter struct{ policies, robots int }

func (c *publicationCounter) Record(activity.Request) {}

func (*publicationCounter) Ordered() {}

func (c *publicationCounter) Publish(*activity.Publication) { c.policies++ }

func (c *publicationCounter) Serve(*activity.Publication, site.Document) { c.robots++ }

func (*publicationCounter) End(*activity.Publication) {}

// Handlers with recorders of their own can serve the same policy: each set of recorders
// gets it once, whatever the others were given.
func TestPublishedToEachRecorders(t *testing.T) {
	for added := range 2 {
		s, err := source.Compile("policy.yaml", []byte(closedToGPTBot))
		if err != nil {
			t.Fatal(err)
		}
		var recorders [2]activity.Recorders
		var counts [2]publicationCounter
		for range 3 {
			for i := range recorders {
				if recorders[i].Get("test") == nil {
					recorders[i].Add("test", &counts[i])
					if added*i > 0 { // so that they differ in their Generation
						recorders[i].Add("another", new(publicationCounter))
					}
				}
				h := New(Options{Policies: source.Static(s), Recorders: &recorders[i]})
				for _, target := range []string{"/", "/robots.txt"} {
					r := httptest.NewRequest(http.MethodGet, target, nil)
					r.Header.Set("User-Agent", "GPTBot/1.2")
					h.Wrap(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
				}
			}
		}
		for i, c := range counts {
			if c.policies != 1 || c.robots != 1 {
				t.Errorf("another recorder: %d; recorders %d got %+v", added, i, c)
			}
		}
	}
}

// A policy that stays for long does not hold what was published to recorders that no
// handler has any more.
func TestPublishedGoesWithItsRecorders(t *testing.T) {
	s, err := source.Compile("policy.yaml", []byte(closedToGPTBot))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		publishedOf(s, new(activity.Recorders))
	}
	runtime.GC()
	last := new(activity.Recorders)
	p := publishedOf(s, last)
	if n := len(s.Recorded(nil).(*publications).list()); n != 1 || publishedOf(s, last) != p {
		t.Errorf("%d are held", n)
	}
}
