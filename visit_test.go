// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"fmt"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/labels"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// classesOf returns all classes of visits that there could be under a policy.
func classesOf(s *site.Site) (all []class) {
	rules := []*policy.Rule{nil}
	for i := range s.Policy.Spec().Rules {
		rules = append(rules, &s.Policy.Spec().Rules[i])
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

// Classes that share a slot replace each other, and never get each other's outcome.
func TestOutcomesAreOfTheirClass(t *testing.T) {
	l, err := source.Compile("policy.yaml", []byte("version: 1\nrules:\n  - for: GPTBot\n    disallow:\n      crawl: /a/\n  - for: GPTBot\n    disallow:\n      crawl: /b/\n"))
	if err != nil {
		t.Fatal(err)
	}
	m, classes := newVisitMetrics(), classesOf(l.Site)
	if len(classes) < 100*outcomeSlots {
		t.Fatalf("only %d classes", len(classes))
	}
	var wait sync.WaitGroup
	for n := range 4 {
		wait.Go(func() {
			for i := range 20_000 {
				k := classes[(i*(2*n+1)+n)%len(classes)]
				f := outcomesOf(l).get(l.Site, k, m)
				if f.class != k || f.info.Token != l.Site.Policy.CrawlerInfo(k.crawler).Token || f.site != l.Site {
					t.Errorf("%+v: got %+v", k, f.class)
					return
				}
			}
		})
	}
	wait.Wait()
	if first := outcomesOf(l).get(l.Site, classes[0], m); outcomesOf(l).get(l.Site, classes[0], m) != first {
		t.Error("nothing is cached")
	}
}

// A policy that is no longer served is collected with its outcomes, and requests are
// counted under the rules of the next.
func TestOutcomesGoWithTheirPolicy(t *testing.T) {
	named := func(rule string) string {
		return "version: 1\nrules:\n  - name: " + rule + "\n    for: GPTBot\n    disallow:\n      crawl: /\n    enforce: block\n"
	}
	h := benchHandlerOf(t, named("the first of two"))
	ask := func() {
		if err := h.ServeHTTP(httptest.NewRecorder(), benchRequest("GPTBot/1.0"), nil); err != nil {
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
	h.policies = source.Static(l)
	ask()
	for range 10 {
		runtime.GC()
	}
	if old.Value() != nil {
		t.Error("the old policy is still in memory")
	}
	for rule, want := range map[string]string{"the first of two": "value:2", "the second of two": "value:1"} {
		if got := counted(t, h, rule); !strings.Contains(got, want) || !strings.Contains(got, `"refused"`) {
			t.Errorf("%s: %s", rule, got)
		}
	}
}

// What was never counted has no series, such as the pages of a crawler that only
// fetched robots.txt.
func TestSeriesExistOnceCounted(t *testing.T) {
	h := benchHandlerOf(t, "version: 1\ncrawlers:\n  SeriesBot: {}\nrules:\n  - for: SeriesBot\n    disallow:\n      crawl: /\n    enforce: block\n")
	r := benchRequest("SeriesBot/1.0")
	r.RequestURI, r.URL.Path = "/robots.txt", "/robots.txt"
	if err := h.ServeHTTP(httptest.NewRecorder(), r, nil); err != nil {
		t.Fatal(err)
	}
	if got := counted(t, h, "SeriesBot"); !strings.Contains(got, `"robots_txt"`) || strings.Contains(got, `"edge"`) || strings.Contains(got, `"verified"`) {
		t.Errorf("after robots.txt: %s", got)
	}
	if err := h.ServeHTTP(httptest.NewRecorder(), benchRequest("SeriesBot/1.0"), nil); err != nil {
		t.Fatal(err)
	}
	if got := counted(t, h, "SeriesBot"); strings.Count(got, `"edge"`) != 1 || strings.Count(got, `"verified"`) != 1 {
		t.Errorf("after a page: %s", got)
	}
}

// counted returns the series with a label of that value.
func counted(t *testing.T, h *Handler, label string) (series string) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	if err := h.edge.metrics.register(reg); err != nil {
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

// Placeholders are always set; log fields only on servers with an access log.
func TestPublish(t *testing.T) {
	for name, c := range map[string]struct {
		server *caddyhttp.Server
		fields bool
	}{
		"no access log": {&caddyhttp.Server{}, false},
		"access log":    {&caddyhttp.Server{Logs: &caddyhttp.ServerLogConfig{}}, true},
		"no server":     {nil, true},
	} {
		r := benchRequest("GPTBot/1.0")
		repl, extra := caddy.NewReplacer(), new(caddyhttp.ExtraLogFields)
		ctx := context.WithValue(r.Context(), caddyhttp.ServerCtxKey, c.server)
		ctx = context.WithValue(ctx, caddyhttp.ExtraLogFieldsCtxKey, extra)
		r = r.WithContext(context.WithValue(ctx, caddy.ReplacerCtxKey, repl))
		_ = benchHandler(t).ServeHTTP(httptest.NewRecorder(), r, nil) // an error where there is no server
		if got := repl.ReplaceAll("{http.robots_policy.crawler} {http.robots_policy.action}", ""); got != "GPTBot block" {
			t.Errorf("%s: %q", name, got)
		}
		if got := reflect.ValueOf(extra).Elem().FieldByName("fields").Len() > 0; got != c.fields {
			t.Errorf("%s: fields: %v", name, got)
		}
	}
}

func TestMetricLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m := newVisitMetrics()
	for i := range 2 * maxLabelBots {
		m.crawler(fmt.Sprint("Bot", i))
	}
	if m.bots.Len() != maxLabelBots || m.crawler("BotX") != labels.Other || m.crawler("Bot1") != "Bot1" {
		t.Errorf("%d labels, %s", m.bots.Len(), m.crawler("BotX"))
	}
}

// Names of rules are cut between letters: invalid UTF-8 in a label would make the
// counter panic on every request.
func TestMetricLabelsAreUTF8(t *testing.T) {
	t.Parallel()
	for pad := range 4 {
		for _, letter := range []string{"я", "規", "🗞"} {
			name := strings.Repeat("x", pad) + strings.Repeat(letter, 90)
			h := benchHandlerOf(t, "version: 1\nrules:\n  - name: "+name+"\n    for: GPTBot\n    disallow:\n      crawl: /\n    enforce: block\n")
			if err := h.ServeHTTP(httptest.NewRecorder(), benchRequest("GPTBot/1.0"), nil); err != nil {
				t.Fatal(err)
			}
			s := snapshotOf(t, h).Site
			if l := h.edge.metrics.rule(s, &s.Policy.Spec().Rules[0]); !strings.HasPrefix(name, l) || len(l) <= labels.MaxBytes-len(letter) || len(l) > labels.MaxBytes {
				t.Errorf("%s: label %q", name, l)
			}
		}
	}
}
