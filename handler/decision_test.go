// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/labels"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// classesOf returns all possible classes of requests under a policy.
func classesOf(s *site.Site) (all []class) {
	rules := []policy.Pos{{}}
	for _, r := range s.Policy.Spec().Rules {
		rules = append(rules, r.Pos)
	}
	for id := range s.Policy.Crawlers {
		for _, r := range rules {
			for _, i := range []policy.Identity{policy.Unknown, policy.Verified, policy.Impostor} {
				for v := policy.Unstated; v <= policy.Disallowed; v++ {
					for a := policy.ModeUnset; a <= policy.ModeBlock; a++ {
						all = append(all, class{crawler: id, identity: i, verdict: v, action: a, rule: r})
					}
				}
			}
		}
	}
	return all
}

// Several classes can share a slot of the cache. Each of them must get its own decision, never the cached decision of
// another class.
func TestDecisionsAreOfTheirClass(t *testing.T) {
	h := newHandler(t, "version: 1\nrules:\n  - for: GPTBot\n    disallow:\n      crawl: /a/\n  - for: GPTBot\n    disallow:\n      crawl: /b/\n")
	l := snapshotOf(t, h)
	classes := classesOf(l.Site)
	if len(classes) < 100*decisionSlots {
		t.Fatalf("only %d classes", len(classes))
	}
	var wait sync.WaitGroup
	for n := range 4 {
		wait.Go(func() {
			for i := range 20_000 {
				k := classes[(i*(2*n+1)+n)%len(classes)]
				f := h.decisionOf(l.Site, k, nil)
				if f.class != k || f.info.Token != l.Site.Policy.CrawlerInfo(k.crawler).Token {
					t.Errorf("%+v: got %+v", k, f.class)
					return
				}
			}
		})
	}
	wait.Wait()
	if first := h.decisionOf(l.Site, classes[0], nil); h.decisionOf(l.Site, classes[0], nil) != first {
		t.Error("nothing is cached")
	}
}

// When a policy is replaced, its memory is freed, including its cached decisions. Later requests are counted under the
// rules of the new policy.
func TestDecisionsGoWithTheirPolicy(t *testing.T) {
	named := func(rule string) string {
		return "version: 1\nrules:\n  - name: " + rule + "\n    for: GPTBot\n    disallow:\n      crawl: /\n    enforce: block\n"
	}
	h := newHandler(t, named("the first of two"))
	ask := func() {
		if err := h.Serve(httptest.NewRecorder(), newRequest("GPTBot/1.0"), nil); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	ask()
	old := weak.Make(snapshotOf(t, h).Site)
	l, err := source.Compile("policy.yaml", []byte(named("the second of two")))
	if err != nil {
		t.Fatal(err)
	}
	h.Policies = source.Static(l)
	ask()
	for range 10 {
		runtime.GC()
	}
	if old.Value() != nil {
		t.Error("the old policy is still in memory")
	}
	for rule, want := range map[string]string{"the first of two": "value:2", "the second of two": "value:1"} {
		if got := counted(t, h, rule); !strings.Contains(got, want) || !strings.Contains(got, `"blocked"`) {
			t.Errorf("%s: %s", rule, got)
		}
	}
}

// namedServer is a Server that counts the decisions published through it. The field other can make its type not
// comparable.
type namedServer struct {
	NetHTTP
	published *int
	other     any
}

func (s namedServer) Publisher(*Decision) func(*http.Request) {
	return func(*http.Request) { *s.published++ }
}

// Two handlers with different servers serve the same policy. Each server must publish only the decisions of its own
// handler, even if the type of the server is not comparable.
func TestDecisionsArePublishedByTheirServer(t *testing.T) {
	for _, other := range []any{nil, []int{1}} {
		s, err := source.Compile("policy.yaml", []byte(closedToGPTBot))
		if err != nil {
			t.Fatal(err)
		}
		var published [2]int
		m := NewMetrics()
		for i := range published {
			h := New(Options{Policies: source.Static(s), Metrics: m, Server: namedServer{published: &published[i], other: other}})
			if err := h.Serve(httptest.NewRecorder(), newRequest("GPTBot/1.0"), nil); err != nil {
				t.Fatal(err)
			}
		}
		if published != [2]int{1, 1} {
			t.Errorf("published: %v", published)
		}
	}
}

// A metric has no series for a label until a request is counted for this label. For example, a crawler that only
// fetched robots.txt has no series for pages.
func TestSeriesExistOnceCounted(t *testing.T) {
	h := newHandler(t, "version: 1\ncrawlers:\n  SeriesBot: {}\nrules:\n  - for: SeriesBot\n    disallow:\n      crawl: /\n    enforce: block\n")
	r := newRequest("SeriesBot/1.0")
	r.RequestURI, r.URL.Path = "/robots.txt", "/robots.txt"
	if err := h.Serve(httptest.NewRecorder(), r, nil); err != nil {
		t.Fatal(err)
	}
	if got := counted(t, h, "SeriesBot"); !strings.Contains(got, `"robots_txt"`) || strings.Contains(got, `"blocking"`) || strings.Contains(got, `name:"identity"`) {
		t.Errorf("after robots.txt: %s", got)
	}
	if err := h.Serve(httptest.NewRecorder(), newRequest("SeriesBot/1.0"), nil); err != nil {
		t.Fatal(err)
	}
	if got := counted(t, h, "SeriesBot"); strings.Count(got, `"blocking"`) != 1 || strings.Count(got, `name:"identity"`) != 2 { // one series for the crawler, and one for its violation
		t.Errorf("after a page: %s", got)
	}
}

// counted returns the handler's series in which any label has the given value.
func counted(t *testing.T, h *Handler, label string) (series string) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(h.Metrics); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if text := m.String(); strings.Contains(text, fmt.Sprintf("%q", label)) {
				series += text + "\n"
			}
		}
	}
	return series
}

func TestMetricLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	for i := range 2 * maxLabelBots {
		m.crawler(fmt.Sprint("Bot", i))
	}
	last, over := fmt.Sprint("Bot", maxLabelBots-1), fmt.Sprint("Bot", maxLabelBots)
	if m.crawler(last) != last || m.crawler(over) != labels.Other || m.crawler("Bot1") != "Bot1" {
		t.Errorf("%s, %s", m.crawler(last), m.crawler(over))
	}
}

// A long rule name is cut between two letters. If it were cut inside a letter, the label would not be valid UTF-8, and
// the counter would panic on every request.
func TestMetricLabelsAreUTF8(t *testing.T) {
	t.Parallel()
	for pad := range 4 {
		for _, letter := range []string{"я", "規", "🗞"} {
			name := strings.Repeat("x", pad) + strings.Repeat(letter, 90)
			h := newHandler(t, "version: 1\nrules:\n  - name: "+name+"\n    for: GPTBot\n    disallow:\n      crawl: /\n    enforce: block\n")
			if err := h.Serve(httptest.NewRecorder(), newRequest("GPTBot/1.0"), nil); err != nil {
				t.Fatal(err)
			}
			if l := h.Metrics.rule(name); !strings.HasPrefix(name, l) || len(l) <= maxLabelBytes-len(letter) || len(l) > maxLabelBytes {
				t.Errorf("%s: label %q", name, l)
			}
		}
	}
}
