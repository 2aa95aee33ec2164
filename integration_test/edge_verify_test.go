// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
)

// asks sends two requests of a crawler from the address addr: one for the front page, and one for /members/, which only
// verified clients get. It returns the crawler's identity according to the server, and the status of /members/. Neither
// request may take long, even if resolvers or servers of address lists fail.
func (s *server) asks(agent, addr string) (verified string, members int) {
	s.t.Helper()
	before := time.Now()
	r := s.get("/", "User-Agent", agent, "X-Forwarded-For", addr)
	if r.StatusCode != 200 || r.body != page("") {
		s.t.Errorf("%s from %s: %s %q", agent, addr, r.Status, r.body)
	}
	members = s.get("/members/", "User-Agent", agent, "X-Forwarded-For", addr).StatusCode
	if took := time.Since(before); took > 10*time.Second { // a hanging server would take longer than this limit
		s.t.Errorf("%s from %s waited %s", agent, addr, took)
	}
	return r.Header.Get("X-Verified"), members
}

// If a resolver hangs, fails, returns garbage, or returns the answer to a different query, no client is treated as an
// impostor, and no request waits for the resolver.
func TestEdgeDNS(t *testing.T) {
	var many []string
	for i := range 500 {
		many = append(many, fmt.Sprintf("host-%d.elsewhere.example.", i))
	}
	startResolver(t, caddytest.Zone{
		"8.8.8.8.in-addr.arpa.":   {PTR: []string{"dns.google."}}, // the server sees that the resolver works
		"dns.google.":             {A: "8.8.8.8"},
		"1.1.0.20.in-addr.arpa.":  {PTR: []string{"c1.crawl.example."}},
		"c1.crawl.example.":       {A: "20.0.1.1"},
		"1.2.0.20.in-addr.arpa.":  {PTR: []string{"c1.crawl.example."}}, // the host name resolves to another address
		"1.3.0.20.in-addr.arpa.":  {PTR: []string{"c3.crawl.example."}}, // the host name does not resolve
		"1.4.0.20.in-addr.arpa.":  {Broken: "hang"},
		"1.5.0.20.in-addr.arpa.":  {Broken: "garbage"},
		"1.6.0.20.in-addr.arpa.":  {Broken: "servfail"},
		"1.7.0.20.in-addr.arpa.":  {Broken: "another"},
		"1.8.0.20.in-addr.arpa.":  {PTR: append(slices.Clone(many), "c8.crawl.example.")}, // the answer is too long for UDP
		"c8.crawl.example.":       {A: "20.0.8.1"},
		"1.9.0.20.in-addr.arpa.":  {PTR: many},
		"1.10.0.20.in-addr.arpa.": {PTR: []string{"c10.crawl.example."}},
		"c10.crawl.example.":      {Broken: "hang"},
	})
	s := startLogged(t, `version: 1
enforcement: {impostors: block}
crawlers:
  NamedBot: {operator: Namers Ltd, category: search, reverse-dns: .crawl.example}
rules:
  - for: everyone
    disallow:
      crawl: /members/
    enforce: block
  - for: NamedBot
    identity: verified
    allow:
      crawl: /members/
`, htmlUpstream(page("")), `
	header >X-Verified "{http.robots_policy.identity}"
	route {
		metrics /metrics
		robots_policy POLICY {
			verify dns
		}
		reverse_proxy UPSTREAM
	}`)
	before := s.counts()
	want := []string{
		"verified", "impostor", "unverified", "unverified", "unverified", "unverified", "unverified", "verified", "impostor", "unverified", "impostor",
	}
	// Requests do not wait for lookups, so an address is unverified at first. But if a request is scheduled late, the
	// answer to its own lookup may already be available.
	early, answered := 0, 0
	for i, want := range want {
		if want == "unverified" {
			if got, _ := s.asks("NamedBot/1.0", fmt.Sprintf("20.0.%d.1", i+1)); got != want {
				t.Errorf("20.0.%d.1 at first: %s", i+1, got)
			}
			continue
		}
		answered++
		r := s.get("/", "User-Agent", "NamedBot/1.0", "X-Forwarded-For", fmt.Sprintf("20.0.%d.1", i+1))
		switch got := r.Header.Get("X-Verified"); {
		case got == "unverified" && r.StatusCode == 200:
		case got == want && r.StatusCode == 200, want == "impostor" && r.StatusCode == 403:
			early++
		default:
			t.Errorf("20.0.%d.1 at first: %s, %s", i+1, got, r.Status)
		}
	}
	if early == answered {
		t.Error("every first request waited for the resolver")
	}
	time.Sleep(4 * time.Second) // a lookup has a timeout of 2 seconds, and the next probe follows a second later
	for i, want := range want {
		addr := fmt.Sprintf("20.0.%d.1", i+1)
		if want == "impostor" {
			if r := s.get("/", "User-Agent", "NamedBot/1.0", "X-Forwarded-For", addr); r.StatusCode != 403 {
				t.Errorf("%s: %s", addr, r.Status)
			}
			continue
		}
		status := 403
		if want == "verified" {
			status = 200
		}
		if got, members := s.asks("NamedBot/1.0", addr); got != want || members != status {
			t.Errorf("%s: %s, %d; want %s, %d", addr, got, members, want, status)
		}
	}
	fetches := `caddy_robots_policy_verification_fetches_total{result="RESULT",source="dns"}`
	if ok, failed := s.counted(before, strings.Replace(fetches, "RESULT", "ok", 1)), s.counted(before, strings.Replace(fetches, "RESULT", "failed", 1)); ok != 6 || failed != 5 {
		t.Errorf("%v lookups had an answer, %v had none", ok, failed)
	}
	// Five lookups in a row had no answer. That is logged once.
	if lines := s.lines("caddy.log", "reverse DNS lookups fail; crawlers that only DNS could verify remain unverified", 1); len(lines) > 1 {
		t.Errorf("logged %d times", len(lines))
	}
}

// A warning is logged if the policy or a matcher blocks impostors, but the server cannot detect them. A warning is also
// logged if the name in a matcher is similar to the name of a known crawler.
func TestEdgeWarnings(t *testing.T) {
	const asks = "version: 1\nenforcement: {impostors: block}\nrules: [{for: everyone, disallow: {crawl: /x/}}]\n"
	const fake = "@fake crawler any impostor"
	for name, c := range map[string]struct {
		policy, body string
		want         int
	}{
		"embedded":   {asks, "robots_policy POLICY", 1},
		"off":        {asks, "robots_policy POLICY {\nverify off\n}", 1},
		"lists":      {asks, "robots_policy POLICY {\nverify lists\n}", 0},
		"dns":        {asks, "robots_policy POLICY {\nverify dns\n}", 0},
		"not asked":  {strings.Replace(asks, "impostors: block", "impostors: off", 1), "robots_policy POLICY", 0},
		"matcher":    {asks, fake + "\nerror @fake 403", 1},
		"expression": {asks, "@fake expression crawler('any', 'impostor') && path('/x/*')\nerror @fake 403", 1},
		"asking":     {asks, fake + " {\nverify lists dns\n}\nerror @fake 403", 0},
		"misspelled": {asks, "@x crawler GTPBot\nerror @x 403", 1},
		"own":        {asks, "@x crawler OurOwnBot\nerror @x 403", 0},
		"in a set":   {asks, "@fake {\ncrawler any impostor {\nverify lists dns\n}\npath /x/*\n}\nerror @fake 403", 0},
	} {
		s := startLogged(t, c.policy, http.NotFoundHandler(), c.body+"\nrespond ok")
		s.get("/")
		logged := 0
		data, err := os.ReadFile(filepath.Join(s.dir, "caddy.log"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, `"level":"warn"`) && (strings.Contains(line, "impostors are not detected") || strings.Contains(line, "did you mean \\\"GPTBot\\\"")) {
				logged++
			}
		}
		if logged != c.want {
			t.Errorf("%s: logged %d times, want %d\n%s", name, logged, c.want, data)
		}
	}
}

// endless returns a handler whose response has a body of 10 GB. sent counts the sent bytes.
func endless(sent *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		chunk := []byte(`{"prefixes":[` + strings.Repeat(`{"ipv4Prefix":"20.0.0.0/24"},`, 1000))
		for sent.Load() < 10<<30 {
			n, err := w.Write(chunk)
			if err != nil {
				return
			}
			sent.Add(int64(n))
		}
	}
}

// listServer starts a server for address lists at a loopback address, and returns this address.
func listServer(t *testing.T, addr string, h http.Handler) (string, error) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", err
	}
	srv := httptest.NewUnstartedServer(h)
	_ = srv.Listener.Close()
	srv.Listener = l
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{directoryCert}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return l.Addr().String(), nil
}

// The servers of address lists hang, return wrong or shortened lists, redirect to private addresses, or return HTML or
// 10 GB. The server under test still answers requests. If a client could only be verified with such a list, it is
// unverified.
func TestEdgeLists(t *testing.T) {
	if testing.Short() {
		t.Skip("lists are first fetched after a second")
	}
	startResolver(t, caddytest.Zone{"claude.com.": {A: "127.0.0.1"}, "cn-hang.example.": {A: "127.0.0.1"}})
	var sent, privately atomic.Int64
	var fetched sync.Map
	hung, asked := make(chan struct{}, 10), make(chan struct{}) // the lists were requested, but no server has answered yet
	mux := http.NewServeMux()
	text := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
	}
	private, err := listServer(t, "[::1]:0", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { privately.Add(1) }))
	if err != nil {
		t.Log("no IPv6 here: ", err)
		private = "169.254.169.254"
	}
	lists := map[string]http.HandlerFunc{
		"good":      text(`{"creationTime":"2026-11-20","prefixes":[{"ipv4Prefix":"20.0.0.0/24"}]}`),
		"html":      text("<!DOCTYPE html><title>Not found</title><p>20.0.0.0/24"),
		"inpage":    text("<!DOCTYPE html><pre>{\"prefixes\":[{\"ipv4Prefix\":\"20.0.0.0/24\"}]}</pre>"),
		"malformed": text("20.0.0.0/24\n20.0.0.300\n"),
		"huge":      endless(&sent),
		"failing":   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "20.0.0.0/24", 500) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://"+private+"/list", http.StatusFound)
		},
		"plain": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+r.Host+"/good", http.StatusFound)
		},
		"empty": text(`{"prefixes":[]}`),
		"all":   text(`{"prefixes":[{"ipv4Prefix":"0.0.0.0/0"},{"ipv6Prefix":"::/0"}]}`),
		"cut":   text(`{"prefixes":[{"ipv4Prefix":"20.0.0.0/24"},`),
	}
	for name, h := range lists {
		mux.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) {
			<-asked
			h(w, r)
			fetched.Store(name, true)
		})
	}
	mux.HandleFunc("/hang", func(_ http.ResponseWriter, r *http.Request) {
		hung <- struct{}{}
		<-r.Context().Done()
	})
	addr, err := listServer(t, "127.0.0.1:0", mux)
	if err != nil {
		t.Fatal(err)
	}
	// Anthropic's address list is embedded in the program. Here, Anthropic's server returns a list with a single
	// prefix, so the server under test must keep the embedded list.
	_, err = listServer(t, "127.0.0.1:443", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-asked
		_, _ = w.Write([]byte(`{"prefixes":[{"ipv4Prefix":"20.0.0.0/24"}]}`))
		fetched.Store("shrunken", r.Host == "claude.com" && r.URL.Path == "/crawling/bots.json")
	}))
	if shrinks := err == nil; shrinks {
		lists["shrunken"] = nil
	} else {
		t.Log("NOT TESTED: a list that shrinks: ", err)
	}
	var policy strings.Builder
	policy.WriteString("version: 1\nenforcement: {impostors: block}\nrules:\n  - for: everyone\n    disallow:\n      crawl: /members/\n    enforce: block\n" +
		"  - for: everyone\n    identity: verified\n    allow:\n      crawl: /members/\ncrawlers:\n")
	for name := range lists {
		if name != "shrunken" {
			fmt.Fprintf(&policy, "  %sBot: {category: search, address-lists: \"https://%s/%s\"}\n", name, addr, name)
		}
	}
	_, port, _ := net.SplitHostPort(addr)
	fmt.Fprintf(&policy, "  hangBot: {category: search, address-lists: \"https://cn-hang.example:%s/hang\"}\n", port)
	s := startLogged(t, policy.String(), htmlUpstream(page("")), `
	header >X-Verified "{http.robots_policy.identity}"
	route {
		metrics /metrics
		robots_policy POLICY {
			verify lists
			verify_from 127.0.0.0/8
		}
		reverse_proxy UPSTREAM
	}`)
	before := s.counts()
	agent := func(name string) string {
		if name == "shrunken" {
			return "Mozilla/5.0 (compatible; ClaudeBot/1.0)"
		}
		return name + "Bot/1.0"
	}
	names := []string{"hang"}
	for name := range lists {
		names = append(names, name)
	}
	everybody := func(want map[string]string) {
		t.Helper()
		for _, name := range names {
			verified := want[name]
			if verified == "" {
				verified = "unverified"
			}
			status := 403
			if verified == "verified" {
				status = 200
			}
			if got, members := s.asks(agent(name), "20.0.0.1"); got != verified || members != status {
				t.Errorf("%s: %s, %d; want %s", name, got, members, verified)
			}
		}
	}
	everybody(nil)
	close(asked)
	select {
	case <-hung: // this server continues to hang
	case <-time.After(time.Minute):
		t.Fatal("the lists are not fetched")
	}
	failed := `caddy_robots_policy_verification_fetches_total{result="failed",source="address_list"}`
	eventually(t, "all lists are fetched", func() bool {
		for name := range lists {
			if ok, _ := fetched.Load(name); ok != true {
				return false
			}
		}
		for _, name := range []string{"good", "inpage", "malformed"} {
			if got, _ := s.asks(agent(name), "20.0.0.1"); got != "verified" {
				return false
			}
		}
		return s.counted(before, failed) >= float64(len(lists)-3)
	})
	everybody(map[string]string{"good": "verified", "inpage": "verified", "malformed": "verified"})
	for _, name := range []string{"inpage", "malformed"} {
		if got, _ := s.asks(agent(name), "20.0.1.1"); got != "unverified" {
			t.Errorf("a list that may be incomplete makes an %s", got)
		}
	}
	if got, _ := s.asks(agent("good"), "2a00::1"); got != "unverified" {
		t.Errorf("a list of IPv4 addresses makes an IPv6 client an %s", got)
	}
	if r := s.get("/", "User-Agent", "goodBot/1.0", "X-Forwarded-For", "20.0.1.1"); r.StatusCode != 403 {
		t.Errorf("a client that is not on a good list: %s", r.Status)
	}
	if got, _ := s.asks(agent("shrunken"), "216.73.216.1"); lists["shrunken"] == nil && got != "verified" {
		t.Errorf("the list before the shrunken one is no longer used: %s", got)
	}
	if n := sent.Load(); n > 64<<20 {
		t.Errorf("%d bytes of a list were read", n)
	}
	if privately.Load() > 0 {
		t.Error("a redirect to a private address was followed")
	}
	s.checkListFailures(addr, len(lists)-3)
	stopped := time.Now()
	if err := caddy.Stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(stopped); took > 15*time.Second {
		t.Errorf("stopping while a list hangs took %s", took)
	}
}

// checkListFailures checks that each list whose fetch failed is logged exactly once, however many requests there were.
// It also checks which lists the metrics report as failed.
func (s *server) checkListFailures(addr string, failures int) {
	s.t.Helper()
	found := 0
	for _, message := range []string{
		"fetching an address list failed; the crawlers that need this list remain unverified", "fetching an address list failed; using the last good one",
	} {
		seen := map[any]bool{}
		for _, line := range s.lines("caddy.log", message, 1) {
			if seen[line["list"]] || line["level"] != "warn" || line["error"] == nil {
				s.t.Errorf("%v", line)
			}
			seen[line["list"]] = true
			found++
		}
	}
	if found < failures {
		s.t.Errorf("%d lists in the log, want %d", found, failures)
	}
	now := s.counts()
	for line, want := range map[string]float64{
		`caddy_robots_policy_address_list_failing{list="https://` + addr + `/html"}`: 1,
		`caddy_robots_policy_address_list_failing{list="https://` + addr + `/good"}`: 0,
		`caddy_robots_policy_address_list_entries{list="https://` + addr + `/good"}`: 1,
	} {
		if got, ok := now[line]; got != want || !ok {
			s.t.Errorf("%s: %v %v, want %v", line, got, ok, want)
		}
	}
	empty := `caddy_robots_policy_address_list_entries{list="https://` + addr + `/all"}`
	if got, ok := now[empty]; ok {
		s.t.Errorf("%s: %v, want no series for a list without data", empty, got)
	}
}

// verificationOf is the admin API's answer about verification.
type verificationOf struct {
	Lists []struct {
		URL, Age, Error     string
		Entries             int
		Embedded, Refreshed bool
		AsOf                *time.Time `json:"as_of"`
	} `json:"address_lists"`
	Directories []struct{ URL, Error string } `json:"key_directories"`
}

// The admin API reports the age of the lists, without fetching any list.
func TestAdminVerification(t *testing.T) {
	s := startReloading(t, "", "version: 1\nrules: [{for: everyone, disallow: {crawl: /x/}}]\n", nil, "robots_policy POLICY\nrespond hello")
	var got verificationOf
	r := s.ask(http.MethodGet, "/robots_policy/verification", &got)
	embedded := 0
	for _, l := range got.Lists {
		if l.Refreshed || l.Error != "" || l.Embedded != (l.AsOf != nil) || l.Embedded != (l.Entries > 0) || l.Embedded != (l.Age != "") {
			t.Errorf("%+v", l)
		}
		if l.Embedded {
			embedded++
		}
	}
	if embedded < 10 || got.Directories == nil || len(got.Directories) != 0 {
		t.Errorf("%d lists\n%s", embedded, r.body)
	}
}
