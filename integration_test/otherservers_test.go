// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/otherservers"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

const decidedPolicy = `version: 1
rules:
  - for: GPTBot
    disallow: {crawl: /}
    intended: true
    enforce: block
  - for: everyone
    disallow: {index: /drafts/, crawl: /private/, train-ai: /}
    intended: true
    enforce: block
  - for: Bingbot
    disallow: {present-snippet: /}
    intended: true
  - for: CCBot
    limit: 2/h
enforcement: STATUS
publish: {tdmrep: on, license: https://www.example.com/license.xml}
`

// asker sends requests to a server, such as nginx, that asks Caddy for decisions.
type asker struct {
	t              *testing.T
	server         *server // address of the Caddy
	front, decider string
}

// startAsker runs an app behind a server of the given kind, which asks a Caddy for decisions.
func startAsker(t *testing.T, kind, status string) *asker {
	t.Helper()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>page</title> of %s", r.Host)
	}))
	t.Cleanup(app.Close)
	front, decider, _ := otherservers.Addrs(t)
	s := newServer(t, t.TempDir(), strings.ReplaceAll(decidedPolicy, "STATUS", status), nil)
	a := &asker{t, s, front, decider}
	listen := strings.NewReplacer("127.0.0.1:9180", decider, "127.0.0.1:8000", app.Listener.Addr().String(), "listen 80;", "listen "+front+";", "bind :80", "bind "+front)
	style := "nginx"
	recipe := func(name string) string { return listen.Replace(otherservers.Recipe(t, "..", name)) }
	switch kind {
	case "nginx":
		otherservers.Nginx(t, "..", recipe("nginx.conf"), front)
	case "nginx that blocks":
		otherservers.Nginx(t, "..", strings.Replace(recipe("nginx.conf"), "error_page 500 502 503 504 = @robots_undecided;", "", 1), front)
	case "haproxy":
		style = "forward"
		otherservers.HAProxy(t, recipe("haproxy.cfg"), recipe("robots-policy.lua"), front)
	case "haproxy that blocks":
		style = "forward"
		otherservers.HAProxy(t, recipe("haproxy.cfg"), strings.Replace(recipe("robots-policy.lua"), "open_if_down = true", "open_if_down = false", 1), front)
	}
	s.run(otherservers.Decider(decider, style, filepath.Join(s.dir, "policy.yaml"), "robots_policy {\nactivity "+filepath.Join(s.dir, "activity")+"\n}\n"))
	return a
}

// get requests a page of www.example.com, or of another host in header, from the server at addr.
func (a *asker) get(addr, path, agent string, header ...string) response {
	a.t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://"+addr, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	r.URL.Opaque, r.Host = path, "www.example.com"
	r.Header.Set("User-Agent", agent)
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return response{Response: &http.Response{Status: err.Error(), Header: http.Header{}}}
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return response{Response: resp, body: string(body)}
}

const someBrowser = "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0"

func TestOtherServers(t *testing.T) {
	for _, kind := range []string{"nginx", "haproxy"} {
		t.Run(kind, func(t *testing.T) {
			a := startAsker(t, kind, "{mode: block, status: 451, retry-after: 60}")
			for _, c := range []struct {
				path, agent, tag string
				status           int
			}{
				{"/", someBrowser, "bingbot: nosnippet", 200},
				{"/drafts/x", someBrowser, "noindex, amazonbot: noarchive, bingbot: nosnippet", 200},
				{"/", "GPTBot/1.2", "noindex", 451},
				{"/robots.txt", "GPTBot/1.2", "bingbot: nosnippet", 200},
				{"/private/x", "Googlebot/2.1", "noindex", 451},
				{"/./private//%70x?q=1", "Googlebot/2.1", "noindex", 451},
				{"http://www.example.com/private/x", "Googlebot/2.1", "noindex", 451},
				{"/", "CCBot/2.0", "bingbot: nosnippet", 200},
				{"/a", "CCBot/2.0", "bingbot: nosnippet", 200},
				{"/b", "CCBot/2.0", "", 429},
			} {
				r := a.get(a.front, c.path, c.agent)
				if r.StatusCode != c.status || !strings.Contains(strings.Join(r.Header["X-Robots-Tag"], ", "), c.tag) {
					t.Errorf("%s of %s: %s %v, want %d with %q", c.path, c.agent, r.Status, r.Header, c.status, c.tag)
				}
				if c.status == 200 && c.path != "/robots.txt" && r.body != "<title>page</title> of www.example.com" {
					t.Errorf("%s of %s: %s", c.path, c.agent, r.body)
				}
				if retry := r.Header.Get("Retry-After"); (retry != "") != (c.status >= 400) {
					t.Errorf("%s of %s: Retry-After %q", c.path, c.agent, retry)
				}
			}
			if r := a.get(a.front, "/", someBrowser); r.Header.Get("Content-Usage") == "" || !strings.Contains(r.Header.Get("Link"), "license.xml") {
				t.Error(r.Header)
			}
			r := a.get(a.front, "/robots.txt", someBrowser, "X-Original-URI", "/x", "X-Forwarded-Uri", "/x")
			if r.StatusCode != 200 || !strings.Contains(r.body, "User-agent: GPTBot\n") || r.Header.Get("Etag") == "" {
				t.Errorf("%s %v\n%q", r.Status, r.Header, r.body)
			}
			if r := a.get(a.front, "/.well-known/tdmrep.json", someBrowser); r.StatusCode != 200 || !strings.HasPrefix(r.body, "[") {
				t.Errorf("%s\n%s", r.Status, r.body)
			}
			a.compareVisits()
		})
	}
}

// compareVisits compares the recorded requests of TestOtherServers with the requests that it has sent.
func (a *asker) compareVisits() {
	a.t.Helper()
	if err := caddy.Stop(); err != nil {
		a.t.Fatal(err)
	}
	r, err := store.OpenReader(a.t.Context(), filepath.Join(a.server.dir, "activity"))
	if err != nil {
		a.t.Fatal(err)
	}
	defer r.Close()
	got := map[string]int64{}
	_, err = r.EachRow(a.t.Context(), time.Time{}, time.Now().Add(time.Hour), func(v activity.Totals) error {
		got[v.Crawler+" "+string(v.Decision)] += v.Requests
		return nil
	})
	want := map[string]int64{"GPTBot blocked": 1, "GPTBot allowed": 1, "Googlebot blocked": 3, "CCBot allowed": 2, "CCBot limited": 1}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		a.t.Errorf("recorded %v, want %v: %v", got, want, err)
	}
}

// A client can send the header fields with which nginx or HAProxy asks Caddy. They must never be treated as fields of
// these servers.
func TestOtherServersSetTheFields(t *testing.T) {
	for kind, fields := range map[string][]string{
		"nginx":   {"X-Original-Uri", "/", "X-Original-Method", "HEAD", "X-Forwarded-For", "66.249.66.1"},
		"haproxy": {"X-Forwarded-Uri", "/", "X-Forwarded-Method", "HEAD", "X-Forwarded-Host", "other.example", "X-Forwarded-For", "66.249.66.1"},
	} {
		t.Run(kind, func(t *testing.T) {
			a := startAsker(t, kind, "block")
			if r := a.get(a.front, "/private/x", "Googlebot/2.1", fields...); r.StatusCode != 403 {
				t.Errorf("%s %v", r.Status, r.Header)
			}
			for _, path := range []string{"/decide/../robots.txt", "/decide/%2e%2e/robots.txt"} { // the answer is a document or a block
				if r := a.get(a.front, path, "GPTBot/1.2", fields...); r.StatusCode != 403 && !strings.Contains(r.body, "User-agent: GPTBot\n") {
					t.Errorf("%s: %s %s", path, r.Status, r.body)
				}
			}
			var many []string // characters that HAProxy's Lua could not send in headers
			for i := range 95 {
				many = append(many, fmt.Sprintf("X-%d", i), "1")
			}
			for _, more := range [][]string{many, {"Host", strings.Repeat("a", 8200)}, {"X-Long", strings.Repeat("x", 7000)}, {"Signature", strings.Repeat("x", 13000)}} {
				if r := a.get(a.front, "/", "GPTBot/1.2", more...); r.StatusCode < 400 {
					t.Errorf("%.40q: %s", more, r.Status)
				}
			}
			if r := a.get(a.front, "/", someBrowser); r.StatusCode != 200 {
				t.Error("the server has ended: ", r.Status)
			}
			for _, path := range []string{"/decide", "/decide/private/x", "/robots-policy-decide"} {
				if r := a.get(a.front, path, someBrowser, fields...); r.StatusCode != 404 && r.body != "<title>page</title> of www.example.com" {
					t.Errorf("%s: %s %s", path, r.Status, r.body)
				}
			}
		})
	}
}

// Other web servers, such as nginx, ask Caddy for a decision about each request. Caddy does not answer in three cases:
// it does not trust the other server, a header field is missing, or a field occurs twice. In the third case, a client
// may have added one of the two fields.
func TestDecideRefusesOthers(t *testing.T) {
	for _, c := range []struct{ style, fields, want string }{
		{"nginx", "", "X-Original-Uri is missing"},
		{"nginx", "X-Original-Uri: /", "X-Original-Method is missing"},
		{"nginx", "X-Original-Uri: /, X-Original-Uri: /a, X-Original-Method: GET", "X-Original-Uri occurs twice"},
		{"forward", "X-Forwarded-Uri: /, X-Forwarded-Method: GET", "X-Forwarded-Host is missing"},
		{"forward", "X-Original-Uri: /, X-Original-Method: GET", "X-Forwarded-Uri is missing"},
		{"untrusted", "X-Forwarded-Uri: /, X-Forwarded-Method: GET, X-Forwarded-Host: www.example.com", "the server that asks for the decision is not a trusted proxy"},
	} {
		t.Run(c.style+" "+c.fields, func(t *testing.T) {
			s := newServer(t, t.TempDir(), strings.ReplaceAll(decidedPolicy, "STATUS", "block"), nil)
			style, trusted := c.style, "127.0.0.1/32"
			if style == "untrusted" {
				style, trusted = "forward", "10.1.2.3/32"
			}
			config := otherservers.Decider(s.addr, style, filepath.Join(s.dir, "policy.yaml"), "")
			s.run(strings.NewReplacer("127.0.0.1/32", trusted, "output discard", "output file "+s.dir+"/log").Replace(config))
			if c.style == "untrusted" && len(s.lines("log", "robots_policy_decide answers only", 0)) > 0 {
				t.Error("there are trusted proxies")
			}
			var header []string
			for _, field := range strings.Split(c.fields, ", ") {
				if name, value, ok := strings.Cut(field, ": "); ok {
					header = append(header, name, value)
				}
			}
			if r := s.get("/decide", header...); r.StatusCode != 403 {
				t.Errorf("%s %s", r.Status, r.body)
			}
			if lines := s.lines("log", "rejected another server's request for a decision", 1); len(lines) != 1 || !strings.HasPrefix(fmt.Sprint(lines[0]["error"]), c.want) {
				t.Errorf("logged %v, want %s", lines, c.want)
			}
		})
	}
}

// A Caddy without trusted proxies logs a warning at the start.
func TestDecideForNobody(t *testing.T) {
	s := newServer(t, t.TempDir(), strings.ReplaceAll(decidedPolicy, "STATUS", "block"), nil)
	s.run(s.caddyfile("admin off\nlog {\noutput file DIR/log\n}", map[string]string{"": "robots_policy_decide POLICY {\nstyle nginx\n}"}))
	for _, l := range s.lines("log", "robots_policy_decide answers only trusted proxies, but none is configured, so every server that asks it gets status 403. List the addresses of these servers in trusted_proxies, under servers in the global options", 1) {
		if l["host"] != "every host" || !strings.HasPrefix(fmt.Sprint(l["directive"]), "Caddyfile:") {
			t.Error(l)
		}
		return
	}
	t.Error("there is no warning")
}

// If Caddy is down, the recipes serve or block pages, depending on their settings.
func TestOtherServersWithoutCaddy(t *testing.T) {
	testkit.Slow(t)
	for kind, want := range map[string]int{"nginx": 200, "nginx that blocks": 500, "haproxy": 200, "haproxy that blocks": 503} {
		t.Run(kind, func(t *testing.T) {
			a := startAsker(t, kind, "block")
			if r := a.get(a.front, "/", "GPTBot/1.2"); r.StatusCode != 403 {
				t.Fatal(r.Status)
			}
			if err := caddy.Stop(); err != nil {
				t.Fatal(err)
			}
			if r := a.get(a.front, "/", "GPTBot/1.2"); r.StatusCode != want {
				t.Errorf("%s, want %d", r.Status, want)
			}
		})
	}
}

// With "action: close" in the policy, nginx closes the connection of a blocked crawler, but HAProxy answers with 403.
func TestOtherServersClose(t *testing.T) {
	for kind, want := range map[string]string{"nginx": "EOF", "haproxy": "403 Forbidden"} {
		t.Run(kind, func(t *testing.T) {
			if r := startAsker(t, kind, "{mode: block, action: close}"); !strings.HasSuffix(r.get(r.front, "/", "GPTBot/1.2").Status, want) {
				t.Error(r.get(r.front, "/", "GPTBot/1.2").Status)
			}
		})
	}
}

// The path in Envoy's question is /decide followed by the path of the client's request.
func TestDecideForEnvoy(t *testing.T) {
	s := newServer(t, t.TempDir(), strings.ReplaceAll(decidedPolicy, "STATUS", "block"), nil)
	s.run(otherservers.Decider(s.addr, "envoy", filepath.Join(s.dir, "policy.yaml"), ""))
	for path, want := range map[string]int{"/decide/": 200, "/decide/private/x": 403, "/decide//private/%78?a": 403, "/decide/robots.txt": 200, "/decide": 403, "/x": 404} {
		if r := s.get(path, "User-Agent", "Bingbot/2.0"); r.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, r.Status, want)
		}
	}
	if r := s.get("/decide/drafts/", "User-Agent", someBrowser); !strings.Contains(r.Header.Get("X-Robots-Tag"), "noindex") || r.body != "" {
		t.Errorf("%v %s", r.Header, r.body)
	}
}

// With robots_policy_decide, Caddy only decides, and the servers that ask it have to block the requests. Caddy does not
// know whether they really block, so robots.txt must name even the crawlers that the policy blocks.
func TestDecideNamesEveryCrawler(t *testing.T) {
	const policy = "version: 1\nrules:\n  - for: category:seo\n    disallow: {crawl: /}\n    enforce: block\n"
	s := newServer(t, t.TempDir(), policy, nil)
	s.run(otherservers.Decider(s.addr, "nginx", filepath.Join(s.dir, "policy.yaml"), ""))
	got := strings.Count(s.get("/robots.txt", "User-Agent", someBrowser).body, "User-agent: ")
	if want := strings.Count(render(t, policy), "User-agent: "); got < 20 || got != want {
		t.Errorf("%d names, want the %d of the command render", got, want)
	}
}

// render returns the output of the command "render" for a policy.
func render(t *testing.T, policy string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(name, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := caddyExits(t, "robots-policy", "render", name)
	if code != 0 {
		t.Fatal(out)
	}
	return out
}

func TestDecideSettings(t *testing.T) {
	s := newServer(t, t.TempDir(), disallowing("/"), nil)
	for body, want := range map[string]string{
		"":                                    `robots_policy_decide needs the subdirective "style"`,
		"style apache":                        "must be nginx, forward or envoy",
		"style nginx\nmeta merge":             "does not see pages",
		"style nginx\nrobots_txt merge":       "cannot fetch the upstream",
		"style nginx\nheaders tailored":       "cannot add Vary",
		"style nginx\nblock_with error":       "cannot use the error routes of a site",
		"style nginx\nstyle envoy":            "style is set twice",
		"style nginx\nmeta off\nverify off":   "",
		"style nginx\nenforce log\nreload 1h": "",
	} {
		err := load(s.caddyfile("admin off", map[string]string{"": "robots_policy_decide POLICY {\n" + body + "\n}"}))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", body, err, want)
		}
	}
	_ = caddy.Stop()
}
