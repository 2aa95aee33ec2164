// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// publicationCounter is a recorder that counts the policies and robots.txt files passed to it.
type publicationCounter struct{ policies, robots int }

func (c *publicationCounter) Record(activity.Request) {}

func (*publicationCounter) Ordered() {}

func (c *publicationCounter) Publish(*activity.Publication) { c.policies++ }

func (c *publicationCounter) Serve(*activity.Publication, site.Document) { c.robots++ }

func (*publicationCounter) End(*activity.Publication) {}

// Handlers with different recorders can serve the same policy. Each set of recorders gets the policy once,
// independently of the others.
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
					if added*i > 0 { // gives the second recorders another Generation
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
