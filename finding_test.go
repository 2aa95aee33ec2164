// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"fmt"
	"net/http"
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

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// kindsOf are all kinds of requests that crawlers could make under a policy.
func kindsOf(s *site.Site) (all []kind) {
	rules := []*policy.Rule{nil}
	for i := range s.Policy.Spec().Rules {
		rules = append(rules, &s.Policy.Spec().Rules[i])
	}
	for id := range s.Policy.Crawlers {
		for _, r := range rules {
			for _, i := range []policy.Identity{policy.Unknown, policy.Verified, policy.Impostor} {
				for v := policy.Unstated; v <= policy.Disallowed; v++ {
					for a := policy.ModeUnset; a <= policy.ModeBlock; a++ {
						all = append(all, kind{id: id, identity: i, verdict: v, action: a, rule: r})
					}
				}
			}
		}
	}
	return all
}

// Kinds that share a place take turns there, and none is ever answered with what was
// found about another.
func TestFindingsAreOfTheirKind(t *testing.T) {
	l, err := newLive("policy.yaml", []byte("version: 1\nrules:\n  - for: GPTBot\n    disallow:\n      crawl: /a/\n  - for: GPTBot\n    disallow:\n      crawl: /b/\n"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := kindsOf(l.site)
	if len(kinds) < 100*findingPlaces {
		t.Fatalf("only %d kinds", len(kinds))
	}
	var wait sync.WaitGroup
	for n := range 4 {
		wait.Go(func() {
			for i := range 20_000 {
				k := kinds[(i*(2*n+1)+n)%len(kinds)]
				f := l.findings.of(l.site, k)
				if f.kind != k || f.crawler.Token != l.site.Policy.CrawlerInfo(k.id).Token || f.site != l.site {
					t.Errorf("%+v: found %+v", k, f.kind)
					return
				}
			}
		})
	}
	wait.Wait()
	if first := l.findings.of(l.site, kinds[0]); l.findings.of(l.site, kinds[0]) != first {
		t.Error("nothing is remembered")
	}
}

// A policy that is no longer served goes with all that was found under it, and
// requests are then counted under the rules of the next.
func TestFindingsGoWithTheirPolicy(t *testing.T) {
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
	old := weak.Make(h.live.Load().site)
	l, err := newLive("policy.yaml", []byte(named("the second of two")))
	if err != nil {
		t.Fatal(err)
	}
	h.live.Store(l)
	ask()
	for range 10 {
		runtime.GC()
	}
	if old.Value() != nil {
		t.Error("the policy before is still there")
	}
	for rule, want := range map[string]string{"the first of two": "value:2", "the second of two": "value:1"} {
		if got := counted(t, rule); !strings.Contains(got, want) || !strings.Contains(got, `"refused"`) {
			t.Errorf("%s: %s", rule, got)
		}
	}
}

// What was not counted yet is no series: a crawler that only fetched robots.txt made
// no other request.
func TestSeriesBeginWithWhatIsCounted(t *testing.T) {
	h := benchHandlerOf(t, "version: 1\ncrawlers:\n  SeriesBot: {}\nrules:\n  - for: SeriesBot\n    disallow:\n      crawl: /\n    enforce: block\n")
	r := benchRequest("SeriesBot/1.0")
	r.RequestURI, r.URL.Path = "/robots.txt", "/robots.txt"
	if err := h.ServeHTTP(httptest.NewRecorder(), r, nil); err != nil {
		t.Fatal(err)
	}
	if got := counted(t, "SeriesBot"); !strings.Contains(got, `"robots_txt"`) || strings.Contains(got, `"edge"`) || strings.Contains(got, `"verified"`) {
		t.Errorf("after robots.txt: %s", got)
	}
	if err := h.ServeHTTP(httptest.NewRecorder(), benchRequest("SeriesBot/1.0"), nil); err != nil {
		t.Fatal(err)
	}
	if got := counted(t, "SeriesBot"); strings.Count(got, `"edge"`) != 1 || strings.Count(got, `"verified"`) != 1 {
		t.Errorf("after a page: %s", got)
	}
}

// counted are the series with a label of that value.
func counted(t *testing.T, label string) (series string) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	if err := metrics.register(reg); err != nil {
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

// Placeholders are everybody's; fields are for servers that log accesses.
func TestWhatIsToldOfARequest(t *testing.T) {
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

// The types of writers that are remembered are bounded, and the rest are known anew
// each time.
func TestWriterRolesAreBounded(t *testing.T) {
	was := writerRoles.Load()
	defer writerRoles.Store(was)
	passing := reflect.TypeOf(caddyhttp.NewResponseRecorder(httptest.NewRecorder(), nil, nil))
	var wait sync.WaitGroup
	for i := range 3 * maxWriterRoles {
		wait.Go(func() {
			for range 3 {
				if writerRoleOf(reflect.ArrayOf(i, reflect.TypeFor[http.ResponseWriter]())) != lastWriter {
					t.Error("a writer that wraps none")
				}
				if writerRoleOf(passing) != passingWriter || writerRoleOf(reflect.TypeFor[thirdWriter]()) != strangeWriter {
					t.Error("writers that wrap another")
				}
			}
		})
	}
	wait.Wait()
	if n := len(*writerRoles.Load()); n > maxWriterRoles {
		t.Errorf("%d types are remembered", n)
	}
}
