// SPDX-License-Identifier: Apache-2.0

// Package targets sends requests with odd targets and hosts through a real Caddy,
// and compares what Caddy's own matchers, its file server and upstreams serve with
// what the policy closes.
package targets

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
)

var (
	count = flag.Int("targets", 1500, "requests for each of the tests")
	limit = flag.Duration("limit", 5*time.Minute, "time for each of the tests")
	seed  = flag.Uint64("seed", 1, "of the requests")
)

func TestMain(m *testing.M) { caddytest.Main(m, func(bool) {}) }

const mark = "CLOSED" // in every response that the policy closes

func document(text string) string {
	return "<!DOCTYPE html><html><head><title>x</title></head><body>" + text + "</body></html>\n"
}

// sites are the handlers that are compared: the body of a site, with DIR for the
// directory of its files and UPSTREAM for an upstream. POLICY stands where the
// policy goes.
var sites = []struct {
	name, body string
}{
	{name: "file_server", body: "root * DIR\nPOLICY\nfile_server"},
	{name: "path", body: "header Content-Type text/html\nPOLICY\nMATCHERS\nrespond " + quote(document("open"))},
	{name: "handle_path", body: "POLICY\nhandle_path /tree/* {\nroot * DIR/tree\nfile_server\n}\nhandle_path /admin/* {\nroot * DIR/admin\nfile_server\n}\nhandle {\nroot * DIR\nfile_server\n}"},
	{name: "try_files", body: "root * DIR\nPOLICY\ntry_files {path} {path}/ /index.html\nfile_server"},
	{name: "rewrite", body: "POLICY\nroute {\nuri strip_prefix /open\nuri path_regexp ^/zz(/|$) /\nroot * DIR\nfile_server\n}"},
	// Caddy decodes what a rewrite takes from a path once more. Then "?" and "#" end the path, and
	// file_server serves "/x.html" for "/x.html/": neither is what this compares.
	{name: "rewrite of a capture", body: "POLICY\nroute {\n@all path_regexp all ^(/[^?#]*)$\nrewrite @all {re.all.1}\n@slash path */\nrespond @slash 404\nroot * DIR\nfile_server\n}"},
	{name: "reverse_proxy", body: "POLICY\nreverse_proxy UPSTREAM"},
}

func quote(s string) string { return "`" + strings.TrimSpace(s) + "`" }

// matchers answers for closed places by Caddy's path matcher, in which "*" and "["
// may be special.
func matchers() string {
	var b strings.Builder
	for i, c := range closed {
		if strings.ContainsAny(c, "*{%") {
			continue
		}
		fmt.Fprintf(&b, "@m%d path %s\nrespond @m%d %s\n", i, quote(c+"*"), i, quote(document(mark)))
	}
	return b.String()
}

// policyOf closes the places for a crawler, or keeps them out of indexes.
func policyOf(usage, enforce string) string {
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n  - for: everyone\n    disallow:\n      " + usage + ":\n")
	for i, c := range closed {
		fmt.Fprintf(&b, "        - %q\n", patternOf(i, c))
	}
	fmt.Fprintf(&b, "        - %q\n        - %q\n%s", closedFile+"$", closedFile+"?", enforce)
	for _, host := range []string{"shop.example.com", "*.wild.example.com"} {
		fmt.Fprintf(&b, "  - for: everyone\n    hosts: %q\n    intended: true\n    disallow:\n      %s: /\n%s", host, usage, enforce)
	}
	return b.String()
}

// fleet is a server that runs each of the sites without a policy and with one.
type fleet struct {
	names         []string          // of the sites
	bare, guarded []string          // addresses, by site
	quic          map[string]string // addresses for HTTP/3, by these; nil: HTTP/1.1 only
}

// files are the files of a site and policy.yaml beside their directory, files.
func files(t *testing.T, policy string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range closed {
		write("files"+c+"x.html", document(mark))
		write("files"+c+"sub/y.html", document(mark))
	}
	write("files"+closedFile, document(mark))
	for _, name := range []string{"index.html", "open/x.html", "tree/x.html"} {
		write("files/"+name, document("open"))
	}
	write("policy.yaml", policy)
	return dir
}

func start(t *testing.T, policy string) *fleet {
	t.Helper()
	dir := files(t, policy)
	up := httptest.NewServer(http.HandlerFunc(upstream))
	t.Cleanup(up.Close)
	f := &fleet{names: siteNames(), quic: map[string]string{}}
	var config strings.Builder
	config.WriteString("{\n\tadmin off\n\tpersist_config off\n\tauto_https off\n\tservers {\n\t\tprotocols h1 h2 h2c h3\n\t}\n\tlog {\n\t\toutput discard\n\t}\n}\n")
	addrs, tls := caddytest.FreeAddrs(t, 4*len(sites)+4), certificate(t)
	for i := range 2*len(sites) + 2 {
		f.quic[addrs[i]] = addrs[2*len(sites)+2+i]
	}
	site := func(addr, host, body, guard string) {
		_, port, _ := net.SplitHostPort(addr)
		_, secure, _ := net.SplitHostPort(f.quic[addr])
		body = strings.NewReplacer("MATCHERS", matchers(), "DIR", filepath.Join(dir, "files"), "UPSTREAM", up.Listener.Addr().String(), "POLICY", guard).Replace(body)
		fmt.Fprintf(&config, "http://%s:%s {\n%s\n}\nhttps://%s:%s {\n%s\n%s\n}\n", host, port, body, host, secure, tls, body)
	}
	guard := "robots_policy " + filepath.Join(dir, "policy.yaml")
	for i, s := range sites {
		site(addrs[2*i], "", s.body, "")
		site(addrs[2*i+1], "", s.body, guard)
		f.bare, f.guarded = append(f.bare, addrs[2*i]), append(f.guarded, addrs[2*i+1])
	}
	// The last compares Caddy's host matcher.
	for i, guard := range []string{"", guard} {
		addr := addrs[2*len(sites)+i]
		for host, text := range map[string]string{"shop.example.com": mark, "*.wild.example.com": mark, "": "open"} {
			site(addr, host, "header Content-Type text/html\nPOLICY\nrespond "+quote(document(text)), guard)
		}
	}
	f.bare, f.guarded = append(f.bare, addrs[2*len(sites)]), append(f.guarded, addrs[2*len(sites)+1])
	if err := caddytest.Load(config.String()); err != nil {
		t.Fatalf("%v\n%s", err, config.String())
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func siteNames() (names []string) {
	for _, s := range sites {
		names = append(names, s.name)
	}
	return append(names, "host")
}

// A crawler that may not crawl a place is refused whatever Caddy or an upstream
// serves from there.
func TestNothingClosedIsServed(t *testing.T) {
	compare(t, start(t, policyOf("crawl", "    enforce: block\n")), "GPTBot/1.2", notRefused)
}

// notRefused says that a crawler got an answer other than a refusal.
func notRefused(_ request, r response) string {
	if r.status == http.StatusForbidden {
		return ""
	}
	return fmt.Sprintf("status %d", r.status)
}

// Whatever Caddy or an upstream serves from a place that is not to be indexed says
// so, in its header and in its page.
func TestNothingClosedIsUnmarked(t *testing.T) {
	compare(t, start(t, policyOf("index", "")), "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0", func(q request, r response) string {
		switch {
		case q.method == http.MethodConnect: // whose answer is no page
		case !strings.Contains(r.header.Get("X-Robots-Tag"), "noindex"):
			return "no header"
		case q.method == http.MethodGet && !strings.Contains(r.body, `<meta name="robots" content="noindex">`):
			return "no meta element"
		}
		return ""
	})
}

// compare sends requests to a site without and with a policy. problem says what is
// wrong with an answer under the policy where the site serves something closed.
func compare(t *testing.T, f *fleet, agent string, problem func(request, response) string) {
	t.Helper()
	deadline := time.Now().Add(*limit)
	const workers = 4
	var mu sync.Mutex
	var found []string
	tally := map[string]int{}
	var wg sync.WaitGroup
	for n := range workers {
		wg.Go(func() {
			c := newComparer(f, agent, problem, rand.New(rand.NewPCG(*seed, uint64(n))))
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
		t.Logf("%-50s %7d", k, tally[k])
	}
	t.Logf("seed %d, %d problems", *seed, len(found))
	for _, p := range found[:min(len(found), 40)] {
		t.Error(p)
	}
	for _, name := range f.names {
		if tally[name+": serves something closed"] < *count/200 {
			t.Errorf("%s served too little that is closed", name)
		}
	}
}

// comparer is one client of both.
type comparer struct {
	*fleet
	g             generator
	bare, guarded []*wire
	agent         string
	problem       func(request, response) string
	found         []string
	tally         map[string]int
}

func newComparer(f *fleet, agent string, problem func(request, response) string, r *rand.Rand) *comparer {
	c := &comparer{fleet: f, g: generator{r: r}, agent: agent, problem: problem, tally: map[string]int{}}
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
	if c.quic == nil {
		r.proto = 1
	}
	name := c.names[i]
	without, err := ask(c.bare[i], r)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", name, r, err)
	}
	c.tally[name+": requests"]++
	serves := strings.Contains(without.body, mark)
	if !serves {
		if with, err := ask(c.guarded[i], r); err == nil && c.problem(r, with) == "" {
			c.tally[name+": closed, though nothing closed is served"]++
		}
		return nil
	}
	c.tally[name+": serves something closed"]++
	c.tally[fmt.Sprintf("%s: serves something closed over HTTP/%d", name, r.proto)]++
	with, err := ask(c.guarded[i], r)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", name, r, err)
	}
	if p := c.problem(r, with); p != "" {
		c.found = append(c.found, fmt.Sprintf("%s: %s: %s", name, r, p))
	}
	return nil
}

// ask sends a request, once more if the connection was closed meanwhile.
func ask(w *wire, r request) (response, error) {
	resp, err := w.do(r)
	if err != nil {
		w.close()
		if resp, err = w.do(r); err != nil {
			w.close()
			if err == io.EOF || err == io.ErrUnexpectedEOF || strings.Contains(err.Error(), "reset by peer") || strings.Contains(err.Error(), "malformed") {
				return response{}, nil // not a request to the server
			}
		}
	}
	return resp, err
}
