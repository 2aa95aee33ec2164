// SPDX-License-Identifier: Apache-2.0

// Package targets sends requests with unusual targets and hosts through a real Caddy. It checks whether Caddy's
// matchers, its file server, or an upstream serve a place that the policy disallows.
package targets

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

var (
	count = flag.Int("targets", 1500, "requests for each of the tests")
	limit = flag.Duration("limit", 5*time.Minute, "time for each of the tests")
	seed  = flag.Uint64("seed", 1, "of the requests")
)

func TestMain(m *testing.M) { caddytest.Main(m, func(bool) {}) }

const mark = "CLOSED" // a text in every response from a disallowed place

func document(text string) string {
	return "<!DOCTYPE html><html><head><title>x</title></head><body>" + text + "</body></html>\n"
}

const (
	crawler = "GPTBot/1.2"
	browser = "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0"
)

// A crawler is blocked whenever Caddy or an upstream would serve a disallowed place.
func TestNothingClosedIsServed(t *testing.T) {
	compare(t, start(t, policyOf("crawl", "    enforce: block\n")), crawler, whereClosed(notRefused))
}

// notRefused returns a problem if a crawler was not blocked.
func notRefused(q request, r response) string {
	if r.status == http.StatusForbidden || r.status == http.StatusBadRequest && q.isOpaque() {
		return ""
	}
	return fmt.Sprintf("status %d", r.status)
}

// The policy disallows indexing of some places. Every page that Caddy or an upstream serves from such a place has
// noindex in its header and in a meta tag.
func TestNothingClosedIsUnmarked(t *testing.T) {
	f := start(t, policyOf("index", "")).without(func(s site) bool { return s.noFields })
	compare(t, f, browser, whereClosed(func(q request, r response) string {
		switch {
		case q.method == http.MethodConnect: // the answer to CONNECT is not a page
		case q.isOpaque() && r.status == http.StatusBadRequest:
		case !strings.Contains(r.header.Get("X-Robots-Tag"), "noindex"):
			return "no header"
		case q.method == http.MethodGet && !strings.Contains(r.body, `<meta name="robots" content="noindex">`):
			return "no meta tag"
		}
		return ""
	}))
}

// A browser gets the same answer as without a policy, however the target is spelled. The exception is a target with a
// scheme that no slash follows, such as http:admin.
func TestBrowsersGetTheSame(t *testing.T) {
	testkit.Slow(t)
	compare(t, start(t, policyOf("crawl", "    enforce: block\n")), browser, sameStatus)
}

// sameStatus returns a problem if a browser gets a different status with the policy than without it. If a target has a
// scheme that no slash follows, such as http:admin, some differences are accepted, because forward_auth sends its own
// request to a wrong path for such a target.
func sameStatus(q request, without, with response) string {
	switch {
	case without.status == with.status && !q.isOpaque():
	case q.isOpaque() && (without.status == 0 || with.status == http.StatusBadRequest || with.status == http.StatusNotFound):
	default:
		return fmt.Sprintf("status %d, and %d without a policy", with.status, without.status)
	}
	return ""
}

// judge compares the answers without and with the policy, and returns the problem, or "".
type judge func(q request, without, with response) string

// whereClosed returns a judge that examines only requests for disallowed places. It recognizes them by the answer of
// the server without the policy, which contains the mark of these places. For each of them, the judge returns the
// result of problem.
func whereClosed(problem func(request, response) string) judge {
	return func(q request, without, with response) string {
		if !strings.Contains(without.body, mark) {
			return ""
		}
		return problem(q, with)
	}
}

// compare sends random requests of an agent to each site of a fleet, without and with the policy. The function wrong
// compares the two answers to each request. The test fails for each problem that wrong returns, and if a site has
// served too few disallowed places.
func compare(t *testing.T, f *fleet, agent string, wrong judge) {
	t.Helper()
	deadline := time.Now().Add(*limit)
	const workers = 4
	var mu sync.Mutex
	var found []string
	tally := map[string]int{}
	var wg sync.WaitGroup
	for n := range workers {
		wg.Go(func() {
			c := newComparer(f, agent, wrong, rand.New(rand.NewPCG(*seed, uint64(n))))
			defer c.close()
			for range *count / workers {
				if time.Now().After(deadline) {
					break
				}
				if err := c.next(); err != nil {
					c.found = append(c.found, err.Error())
					break
				}
			}
			mu.Lock()
			defer mu.Unlock()
			found = append(found, c.found...)
			for k, v := range c.tally {
				tally[k] += v
			}
		})
	}
	wg.Wait()
	for _, k := range slices.Sorted(maps.Keys(tally)) {
		t.Logf("%-60s %7d", k, tally[k])
	}
	t.Logf("seed %d, %d problems", *seed, len(found))
	for _, p := range found[:min(len(found), 40)] {
		t.Error(p)
	}
	for _, name := range f.names {
		if tally[name+": serves something closed"] < *count/400 {
			t.Errorf("%s served too few disallowed places", name)
		}
	}
}

// comparer is a client that sends each request to the site without a policy and to the site with one.
type comparer struct {
	*fleet
	g             generator
	bare, guarded []*wire
	agent         string
	wrong         judge
	found         []string
	tally         map[string]int
}

func newComparer(f *fleet, agent string, wrong judge, r *rand.Rand) *comparer {
	c := &comparer{fleet: f, g: generator{r: r}, agent: agent, wrong: wrong, tally: map[string]int{}}
	for i := range f.bare {
		c.bare, c.guarded = append(c.bare, &wire{addr: f.bare[i], quic: f.quic[f.bare[i]]}), append(c.guarded, &wire{addr: f.guarded[i], quic: f.quic[f.guarded[i]]})
	}
	return c
}

func (c *comparer) close() {
	for i := range c.bare {
		c.bare[i].close()
		c.guarded[i].close()
	}
}

func (c *comparer) next() error {
	i := c.g.r.IntN(len(c.bare))
	r := c.g.request()
	r.agent = c.agent
	if modes := c.modes[i]; modes != nil {
		r.mode = c.g.one(modes...)
	}
	if c.quic == nil {
		r.proto = 1
	}
	name := c.names[i]
	without, err := ask(c.bare[i], r)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", name, r, err)
	}
	with, err := ask(c.guarded[i], r)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", name, r, err)
	}
	c.tally[name+": requests"]++
	if strings.Contains(without.body, mark) {
		c.tally[name+": serves something closed"]++
		c.tally[fmt.Sprintf("%s: serves something closed over HTTP/%d", name, r.proto)]++
	} else if with.status == http.StatusForbidden {
		c.tally[name+": blocked, though nothing closed is served"]++
	}
	if p := c.wrong(r, without, with); p != "" {
		c.found = append(c.found, fmt.Sprintf("%s: %s: %s", name, r, p))
	}
	return nil
}

// errReset means that a server has reset a stream without an answer.
var errReset = errors.New("stream reset")

// ask sends a request. If the request fails, for example because the server has closed the connection, ask sends it
// again on a new connection. If it fails again because the server does not answer, the result is an empty response.
func ask(w *wire, r request) (response, error) {
	resp, err := w.do(r)
	if err != nil {
		w.close()
		if resp, err = w.do(r); err != nil {
			w.close()
			if err == io.EOF || err == io.ErrUnexpectedEOF || errors.Is(err, errReset) || strings.Contains(err.Error(), "reset by peer") || strings.Contains(err.Error(), "malformed") {
				return response{}, nil // such a request is not for this server
			}
		}
	}
	return resp, err
}
