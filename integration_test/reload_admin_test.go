// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// policies is the admin API's report about the policies in use.
type policies struct {
	Policies []struct {
		Policy, SHA256, Since, Error, Reload string
		ErrorSince                           string `json:"error_since"`
		Warnings                             []any
		Rules, Sites, Watching               int
		Older                                []string `json:"older_sha256"`
		UndoCost                             string   `json:"undo_cost"`
		Before                               string   `json:"before_sha256"`
		Reloads                              struct{ Applied, Rejected int }
	}
}

func (s *reloading) policies() (p policies) {
	s.t.Helper()
	s.ask(http.MethodGet, "/robots_policy/", &p)
	return p
}

// If several sites use the same policy file, Caddy reads the file only once, and the sites serve the same policy. Their
// other options, and the way in which they write the file's name, may differ.
func TestSitesShareAPolicy(t *testing.T) {
	s := startReloading(t, "", disallowing("/a"), nil, "respond hello")
	t.Chdir(s.dir)
	if err := s.reconfigure(`
	handle /one/* {
		robots_policy POLICY
	}
	handle /two/* {
		robots_policy policy.yaml {
			meta off
			reload 50ms
		}
	}
	handle {
		robots_policy ./x/../policy.yaml {
			reload off
		}
		respond hello
	}`); err != nil {
		t.Fatal(err)
	}
	all := s.policies().Policies
	if len(all) != 1 {
		t.Fatalf("%d policies: %+v", len(all), all)
	}
	p := all[0]
	if p.Policy != filepath.Join(s.dir, "policy.yaml") || p.Sites != 3 || p.Watching != 2 || p.Reload != "50ms" || p.Rules != 1 || p.Error != "" {
		t.Errorf("%+v", p)
	}
	if n := len(s.log("policy loaded")); n != 1 {
		t.Errorf("the file was loaded %d times", n)
	}
	s.write("policy.yaml", disallowing("/b"))
	eventually(t, "the sites that follow", func() bool { return len(s.policies().Policies[0].Older) == 1 })
	if r := s.get("/two/robots.txt"); r.StatusCode != 200 {
		t.Error(r.Status)
	}
	if p2 := s.policies().Policies[0]; p2.SHA256 == p.SHA256 || p2.Older[0] != p.SHA256 || p2.Reloads.Applied != 1 {
		t.Errorf("%+v", p2)
	}
	if !s.disallows("/a") {
		t.Error("the site with reload off has loaded the change")
	}
	s.ask(http.MethodPost, "/robots_policy/reload", nil)
	if !s.disallows("/b") || len(s.policies().Policies[0].Older) != 0 {
		t.Error("a requested reload does not change the site with reload off")
	}
}

func TestAdminAPI(t *testing.T) {
	s := startReloading(t, "", disallowing("/a"), nil, quickReload)
	good := s.policies().Policies[0]
	if len(good.SHA256) != 64 || len(good.Warnings) == 0 || good.Since == "" {
		t.Errorf("%+v", good)
	}
	s.write("policy.yaml", "version: 1\nrulez: 1\n")
	eventually(t, "the error is shown", func() bool { return s.policies().Policies[0].Error != "" })
	p := s.policies().Policies[0]
	if p.SHA256 != good.SHA256 || p.Since != good.Since || !strings.Contains(p.Error, "policy.yaml:2:1: error: ") || p.ErrorSince == "" || p.Reloads.Rejected != 1 {
		t.Errorf("%+v", p)
	}

	var e struct {
		Crawler  struct{ Token string }
		Channels []struct{ Name string }
	}
	s.ask(http.MethodGet, "/robots_policy/explain?agent=GPTBot&url="+url.QueryEscape("https://www.example.com/a?b"), &e)
	if e.Crawler.Token != "GPTBot" || len(e.Channels) != 4 {
		t.Errorf("%+v", e)
	}
	if a, b := s.ask(http.MethodGet, "/robots_policy/robots.txt?host="+s.addr, nil), s.get("/robots.txt"); a.body != b.body {
		t.Errorf("the admin API shows\n%s\nand the site serves\n%s", a.body, b.body)
	}

	var reload struct {
		Results []struct {
			Policy, Result, Error string
			Changes               []string
		}
	}
	if r := s.ask(http.MethodPost, "/robots_policy/reload", &reload); r.StatusCode != 422 || reload.Results[0].Result != "rejected" || !strings.Contains(reload.Results[0].Error, "rulez") {
		t.Errorf("%s %+v", r.Status, reload)
	}
	s.write("policy.yaml", disallowing("/b"))
	if r := s.ask(http.MethodPost, "/robots_policy/reload?policy="+url.QueryEscape(good.Policy), &reload); r.StatusCode != 200 || !s.disallows("/b") {
		t.Errorf("%s %+v", r.Status, reload)
	}
	if p := s.policies().Policies[0]; p.Error != "" {
		t.Errorf("%+v", p)
	}
}

func TestAdminAPIRefuses(t *testing.T) {
	s := startReloading(t, "", disallowing("/a"), nil, quickReload)
	for _, c := range []struct {
		method, path string
		status       int
		says         string
	}{
		{"POST", "/robots_policy/", 405, "method not allowed"},
		{"GET", "/robots_policy/reload", 405, "method not allowed"},
		{"DELETE", "/robots_policy/explain", 405, "method not allowed"},
		{"GET", "/robots_policy/nothing", 404, "the paths are /robots_policy/"},
		{"GET", "/robots_policy/explain", 400, "invalid url"},
		{"GET", "/robots_policy/explain?url=https://a.example/", 400, "agent is missing"},
		{"GET", "/robots_policy/explain?agent=x&url=file:///etc/passwd", 400, "invalid url"},
		{"GET", "/robots_policy/robots.txt?policy=/etc/passwd", 404, "no site uses a policy"},
		{"POST", "/robots_policy/reload?policy=/etc/passwd", 404, "no site uses a policy"},
	} {
		if r := s.ask(c.method, c.path, nil); r.StatusCode != c.status || !strings.Contains(r.body, c.says) {
			t.Errorf("%s %s: %s %s", c.method, c.path, r.Status, r.body)
		}
	}
	s.write("other.yaml", disallowing("/o"))
	if err := s.reconfigure("handle /x {\nrobots_policy DIR/other.yaml\n}\n" + quickReload); err != nil {
		t.Fatal(err)
	}
	if r := s.ask("GET", "/robots_policy/robots.txt", nil); r.StatusCode != 400 || !strings.Contains(r.body, "other.yaml") {
		t.Errorf("of two policies: %s %s", r.Status, r.body)
	}
	// A web page in a browser must not be able to use the admin API. Caddy's protection against such requests must also
	// cover the paths of this module.
	req, _ := http.NewRequest(http.MethodPost, "http://"+s.admin+"/robots_policy/reload", nil)
	req.Header.Set("Origin", "https://evil.example")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("from a page elsewhere: %s", resp.Status)
	}
}

// metric returns the value of a metric for the test's policy. If the metric has one more label, such as channel="page",
// label is this label. Otherwise it is "".
func (s *reloading) metric(name, label string) float64 {
	s.t.Helper()
	text := s.ask(http.MethodGet, "/metrics", nil).body
	if label != "" {
		label = "," + label
	}
	m := regexp.MustCompile(`(?m)^caddy_robots_policy_` + name + `\{policy="` + regexp.QuoteMeta(filepath.Join(s.dir, "policy.yaml")) + `"` + label + `\} (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		s.t.Fatalf("no metric %s%s", name, label)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

func TestReloadMetrics(t *testing.T) {
	s := startReloading(t, "", disallowing("/a"), nil, "handle /x {\n"+quickReload+"\n}\n"+quickReload)
	if s.metric("last_reload_successful", "") != 1 || s.metric("sites", "") != 2 || s.metric("rules", "") != 1 || s.metric("reloads_total", `result="applied"`) != 0 {
		t.Error(s.ask(http.MethodGet, "/metrics", nil).body)
	}
	since := s.metric("loaded_timestamp_seconds", "")
	s.write("policy.yaml", "version: 1\nrulez: 1\n")
	eventually(t, "the gauge falls", func() bool { return s.metric("last_reload_successful", "") == 0 })
	s.write("policy.yaml", disallowing("/b"))
	eventually(t, "and rises", func() bool { return s.metric("last_reload_successful", "") == 1 })
	// When Caddy loads a configuration, the counts of reloads do not start at 0 again.
	if err := s.reconfigure(s.body + "\nheader X y"); err != nil {
		t.Fatal(err)
	}
	if s.metric("reloads_total", `result="applied"`) != 1 || s.metric("reloads_total", `result="rejected"`) != 1 || s.metric("loaded_timestamp_seconds", "") <= since ||
		s.metric("checked_timestamp_seconds", "") < since || s.metric("warnings", "") < 1 || s.metric("sites", "") != 2 {
		t.Error(s.ask(http.MethodGet, "/metrics", nil).body)
	}
}

// recorded holds the events that the event handler below has received.
var recorded struct {
	sync.Mutex
	events []caddy.Event
	act    func(caddy.Event)
}

// recorder is an event handler for tests.
type recorder struct{}

func init() { caddy.RegisterModule(recorder{}) }

func (recorder) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "events.handlers.recorder", New: func() caddy.Module { return new(recorder) }}
}

func (recorder) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	return nil
}

func (recorder) Handle(_ context.Context, e caddy.Event) error {
	recorded.Lock()
	recorded.events = append(recorded.events, e)
	act := recorded.act
	recorded.Unlock()
	if act != nil {
		act(e)
	}
	return nil
}

func events() []caddy.Event {
	recorded.Lock()
	defer recorded.Unlock()
	return append([]caddy.Event(nil), recorded.events...)
}

const recordEvents = "events {\non robots_policy.reloaded recorder\non robots_policy.reload_failed recorder\n}\n"

func TestEvents(t *testing.T) {
	recorded.events, recorded.act = nil, nil
	s := startReloading(t, recordEvents, disallowing("/a"), nil, quickReload)
	first := s.policies().Policies[0].SHA256
	s.write("policy.yaml", disallowing("/b"))
	eventually(t, "an event", func() bool { return len(events()) == 1 })
	e := events()[0]
	if e.Name() != "robots_policy.reloaded" || e.Data["previous_sha256"] != first || e.Data["robots_txt_changed"] != true ||
		!strings.Contains(fmt.Sprint(e.Data["changes"]), "may now crawl /a") || e.Origin().CaddyModule().ID != "http.handlers.robots_policy" {
		t.Errorf("%s %v", e.Name(), e.Data)
	}
	s.write("policy.yaml", "")
	eventually(t, "an event of a failure", func() bool { return len(events()) == 2 })
	if e := events()[1]; e.Name() != "robots_policy.reload_failed" || !strings.Contains(fmt.Sprint(e.Data["error"]), "empty") || e.Data["serving_sha256"] == first {
		t.Errorf("%s %v", e.Name(), e.Data)
	}
	s.write("policy.yaml", disallowing("/b"))
	eventually(t, "an event when it is fixed", func() bool { return len(events()) == 3 })
	// After a reload of the configuration, the next change is still reported.
	if err := s.reconfigure(s.body + "\nheader X y"); err != nil {
		t.Fatal(err)
	}
	s.write("policy.yaml", disallowing("/c"))
	eventually(t, "an event", func() bool { return len(events()) == 4 })
	if lines := s.log("context canceled"); len(lines) > 0 {
		t.Error(lines)
	}
}

// An event handler may load a configuration or request a reload.
func TestEventThatReloads(t *testing.T) {
	done := make(chan error, 2)
	s := startReloading(t, recordEvents, disallowing("/a"), nil, quickReload)
	var reloaded atomic.Bool
	recorded.act = func(e caddy.Event) { // ignores an event about the file of the previous test, which may be missing now
		if e.Name() == "robots_policy.reloaded" && reloaded.CompareAndSwap(false, true) {
			done <- s.reconfigure(s.body + "\nheader X y")
			s.ask(http.MethodPost, "/robots_policy/reload", nil)
			done <- nil
		}
	}
	defer func() { recorded.act = nil }()
	s.write("policy.yaml", disallowing("/b"))
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	// Repeat the request, because the server of the previous configuration can still accept one connection.
	eventually(t, "the configuration that the handler loaded", func() bool { return s.get("/", "Connection", "close").Header.Get("X") == "y" })
	if !s.disallows("/b") {
		t.Error(s.get("/robots.txt").body)
	}
}
