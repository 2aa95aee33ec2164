// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// nextFunc is a function that serves as the next handler.
type nextFunc func(http.ResponseWriter, *http.Request) error

func (f nextFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) error { return f(w, r) }

// statusCode is an error that the server answers with the status in its value.
type statusCode int

func (statusCode) Error() string { return "x" }

// testServer is a Server that trusts the proxy of a request if the context contains trustedKey.
type testServer struct{}

type trustedKey struct{}

func (testServer) Original(r *http.Request) (string, *url.URL) { return r.RequestURI, r.URL }

func (testServer) InErrorRoute(*http.Request) bool { return false }

func (testServer) TrustsProxy(r *http.Request) bool { return r.Context().Value(trustedKey{}) == true }

func (testServer) ForUpstream(ctx context.Context, _ *url.URL, _ string) context.Context { return ctx }

func (testServer) ErrorStatus(err error) int {
	if status, ok := errors.AsType[statusCode](err); ok {
		return int(status)
	}
	return http.StatusInternalServerError
}

// server serves a policy's robots.txt merged with the upstream's.
type server struct {
	*Cache[robotstxt.File]
	site *site.Site
}

func newServer(t *testing.T) server {
	t.Helper()
	s, ds := site.Load("policy.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    disallow:\n      crawl: /admin/\n"))
	if ds.HasErrors() {
		t.Fatal(policyfile.Diagnostics(ds))
	}
	return server{New(RobotsTxt, testServer{}, zap.NewNop()), s}
}

// response is the response that a client gets.
type response struct {
	text  string // the line that comes from the upstream
	known bool
	etag  string
}

// get requests robots.txt for a host. It also checks that Cache.Get does not change the client's request.
func (s server) get(t *testing.T, host string, next nextFunc, header ...string) response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://x/robots.txt", nil)
	r.Host = host
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	before := *r
	other, earlier, known := s.Get(r, next)
	if r.URL != before.URL || r.Method != before.Method || fmt.Sprint(r.Header) != fmt.Sprint(before.Header) || r.Context() != before.Context() {
		t.Errorf("the request was %v and is %v", before, r)
	}
	w := httptest.NewRecorder()
	s.site.Robots.Serve(w, r, robotsserve.Answer{Other: other, Before: earlier, Report: s.LogMerge(host)})
	_, body, ok := strings.Cut(w.Body.String(), "Disallow: /admin/\n")
	if w.Code != 200 || !ok {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	body, _, _ = strings.Cut(body, "\n\n")
	_, body, _ = strings.Cut(body, "# from the robots.txt of the site\n")
	return response{strings.TrimSpace(body), known, w.Header().Get("Etag")}
}

func says(text string) nextFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		_, err := io.WriteString(w, "User-agent: *\n"+text+"\n")
		return err
	}
}

func fails(status int) nextFunc {
	return func(http.ResponseWriter, *http.Request) error { return statusCode(status) }
}

// A changed file is used after a minute at most. While the site fails, its last file stays in use. If the site answers
// that it has no file, nothing is merged.
func TestChangesAndFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		never := func(http.ResponseWriter, *http.Request) error { t.Error("fetched too soon"); return nil }
		aborts := func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }
		panics := func(http.ResponseWriter, *http.Request) error { panic("x") }
		hangs := func(_ http.ResponseWriter, r *http.Request) error { <-r.Context().Done(); return r.Context().Err() }
		// This handler behaves like Caddy's proxy. If a request's context ends with an error other than
		// context.Canceled, the proxy regards this as a failure of the upstream.
		canceled := func(_ http.ResponseWriter, r *http.Request) error {
			if <-r.Context().Done(); r.Context().Err() != context.Canceled {
				t.Errorf("ended by %v", r.Context().Err())
			}
			return statusCode(499)
		}
		var tags []string
		for i, step := range []struct {
			after time.Duration
			next  nextFunc
			want  string
			known bool
		}{
			{0, fails(502), "", false}, // nothing is known
			{9 * time.Second, never, "", false},
			{2 * time.Second, says("Disallow: /one"), "Disallow: /one", true},
			{59 * time.Second, never, "Disallow: /one", true},
			{2 * time.Second, says("Disallow: /two"), "Disallow: /two", true},
			{61 * time.Second, fails(503), "Disallow: /two", true},
			{9 * time.Second, never, "Disallow: /two", true},
			{2 * time.Second, aborts, "Disallow: /two", true},
			{11 * time.Second, panics, "Disallow: /two", true},
			{11 * time.Second, hangs, "Disallow: /two", true},
			{11 * time.Second, canceled, "Disallow: /two", true},
			{30 * 24 * time.Hour, fails(500), "Disallow: /two", true},
			{11 * time.Second, says("Disallow: /one"), "Disallow: /one", true},
			{61 * time.Second, fails(403), "Disallow: /one", true}, // the upstream may have denied only this client
			{11 * time.Second, fails(401), "Disallow: /one", true},
			{11 * time.Second, fails(404), "", true},
			{30 * time.Second, never, "", true},
			{31 * time.Second, fails(502), "", true}, // the site has answered that it has no file
		} {
			time.Sleep(step.after)
			got := s.get(t, "www.example.com", step.next)
			if got.text != step.want || got.known != step.known {
				t.Errorf("step %d: %+v, want %q %v", i, got, step.want, step.known)
			}
			tags = append(tags, got.etag)
		}
		if tags[2] != tags[12] || tags[2] == tags[4] || tags[0] != tags[15] {
			t.Errorf("entity tags: %q", tags)
		}
	})
}

// While one request fetches the file, other requests get the last known file, or wait until the timeout ends. The fetch
// continues even if the client that caused it disconnects.
func TestOneRequestFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		var fetched atomic.Int32
		slow := func(took time.Duration, text string) nextFunc {
			return func(w http.ResponseWriter, r *http.Request) error {
				fetched.Add(1)
				time.Sleep(took)
				if took < fetchTimeout && r.Context().Err() != nil {
					t.Error("the fetch ended with the client")
				}
				return says(text)(w, r)
			}
		}
		many := func(next nextFunc) (answers map[string]time.Duration) {
			answers = map[string]time.Duration{}
			var mu sync.Mutex
			var wg sync.WaitGroup
			fetched.Store(0)
			began := time.Now()
			for range 50 {
				wg.Go(func() {
					got := s.get(t, "www.example.com", next).text
					mu.Lock()
					defer mu.Unlock()
					answers[got] = max(answers[got], time.Since(began))
				})
			}
			wg.Wait()
			if fetched.Load() != 1 {
				t.Errorf("fetched %d times", fetched.Load())
			}
			return answers
		}
		// If the next handler ignores the timeout, only the request that fetches the file waits for it.
		if got := many(slow(time.Hour, "Disallow: /slow")); len(got) != 1 || got[""] != time.Hour {
			t.Errorf("after the timeout: %v", got)
		}
		time.Sleep(time.Minute)
		if got := many(slow(time.Second, "Disallow: /a")); len(got) != 1 || got["Disallow: /a"] != time.Second {
			t.Errorf("first response: %v", got)
		}
		time.Sleep(2 * time.Minute)
		if got := many(slow(time.Second, "Disallow: /b")); got["Disallow: /a"] != 0 || got["Disallow: /b"] != time.Second {
			t.Errorf("second response: %v", got)
		}

		time.Sleep(2 * time.Minute)
		ctx, disconnect := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://x/robots.txt", nil)
		r.Host = "www.example.com"
		go func() { time.Sleep(time.Second); disconnect() }()
		s.Get(r, slow(2*time.Second, "Disallow: /c"))
		if got := s.get(t, "www.example.com", says("Disallow: /d")); got.text != "Disallow: /c" {
			t.Errorf("after the client has disconnected: %q", got.text)
		}
	})
}

// If the next handler never returns, requests after the timeout do not wait for it. The number of fetches that wait for
// such a handler is bounded.
func TestHandlerThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		end := make(chan struct{})
		var fetched atomic.Int32
		never := func(http.ResponseWriter, *http.Request) error { fetched.Add(1); <-end; return nil }
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() { s.get(t, fmt.Sprintf("host%d", i), never) })
		}
		synctest.Wait()
		if n := fetched.Load(); n != maxFetches {
			t.Errorf("%d fetches at a time", n)
		}
		time.Sleep(fetchTimeout)
		began := time.Now()
		for i := range 100 {
			s.get(t, fmt.Sprintf("host%d", i), never)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("other requests waited %v", took)
		}
		close(end)
		wg.Wait()
	})
}

// If the parser panics on a file, this is handled like a failed fetch. The last good file stays in use, and requests do
// not wait forever.
func TestParserPanics(t *testing.T) {
	kind := RobotsTxt
	kind.Parse = func(data []byte) *robotstxt.File {
		if strings.Contains(string(data), "panic") {
			panic("no such line")
		}
		return robotstxt.Parse(data)
	}
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.Cache = New(kind, testServer{}, zap.NewNop())
		text := "User-agent: *\nDisallow: /panic/\n"
		next := func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "text/plain")
			_, err := io.WriteString(w, text)
			return err
		}
		if got := s.get(t, "example.com", next); got.known {
			t.Errorf("a file that was not parsed: %+v", got)
		}
		text = "User-agent: *\nDisallow: /theirs/\n"
		time.Sleep(2 * freshFor)
		if got := s.get(t, "example.com", next); !got.known || !strings.Contains(got.text, "/theirs/") {
			t.Errorf("after it was corrected: %+v", got)
		}
		text = "# panic\n"
		time.Sleep(2 * freshFor)
		if got := s.get(t, "example.com", next); !got.known || !strings.Contains(got.text, "/theirs/") {
			t.Errorf("the last good one: %+v", got)
		}
	})
}

// All clients get the fetched file, so the request for it contains nothing that one client sent.
func TestRequestIsIndependentOfTheClient(t *testing.T) {
	s := newServer(t)
	s.get(t, "www.example.com", func(w http.ResponseWriter, r *http.Request) error {
		if fmt.Sprint(r.Header) != "map[Accept:[text/plain] Accept-Encoding:[identity] User-Agent:[caddy-robots-policy]]" {
			t.Errorf("%v", r.Header)
		}
		return nil
	}, "Cookie", "a=b", "Authorization", "Basic eA==", "X-Forwarded-Host", "evil.example", "X-Original-URL", "/other", "Upgrade", "websocket", "If-None-Match", `"x"`, "Expect", "100-continue")
	for _, host := range []string{"", "a/b", "x@y", strings.Repeat("a", 400), "a b"} {
		s.get(t, host, func(http.ResponseWriter, *http.Request) error { t.Errorf("fetched from %q", host); return nil })
	}
}

// One client cannot change the file that other clients get: the upstream gets the same request for every spelling of
// the host. Only header fields of a trusted proxy select another site.
func TestRequestIsForTheSite(t *testing.T) {
	s := newServer(t)
	request := func(target, host, local string, trusted bool, header ...string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		r.Host = host
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		addr, err := net.ResolveTCPAddr("tcp", local)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(addr))
		ctx = context.WithValue(ctx, trustedKey{}, trusted)
		return r.WithContext(ctx)
	}
	for _, c := range []struct {
		r    *http.Request
		want string // the request; "" if the file is cached
	}{
		{request("http://x/robots.txt", "www.example.com", "127.0.0.1:80", false), "http www.example.com map[]"},
		{request("http://x/robots.txt", "WWW.Example.com.:9999", "127.0.0.1:80", false), ""},
		{request("http://x/robots.txt", "Sub.Example.com:9999", "127.0.0.1:80", false), "http sub.example.com map[]"},
		{request("http://x/robots.txt", "sub.example.com.", "127.0.0.1:80", false, "X-Forwarded-Host", "evil.example"), ""},
		{request("http://x/robots.txt", "www.example.com:8080", "127.0.0.1:8080", false), "http www.example.com:8080 map[]"},
		{request("http://x/robots.txt", "WWW.example.com:8080", "127.0.0.1:8080", false), ""},
		{request("https://x/robots.txt", "www.example.com:443", "127.0.0.1:443", false), "https www.example.com map[]"},
		{
			request("http://x/robots.txt", "inner", "127.0.0.1:80", true, "X-Forwarded-Host", "a.example", "X-Forwarded-Proto", "http", "X-Forwarded-For", "1.2.3.4", "Forwarded", "for=1.2.3.4"),
			"http inner map[X-Forwarded-Host:[a.example] X-Forwarded-Proto:[http]]",
		},
		{request("http://x/robots.txt", "inner", "127.0.0.1:80", true, "X-Forwarded-Host", "a.example", "X-Forwarded-Proto", "http", "X-Forwarded-For", "5.6.7.8"), ""},
		{
			request("http://x/robots.txt", "inner", "127.0.0.1:80", true, "X-Forwarded-Host", "a.example", "X-Forwarded-Proto", "https"),
			"http inner map[X-Forwarded-Host:[a.example] X-Forwarded-Proto:[https]]",
		},
		{
			request("http://x/robots.txt", "inner", "127.0.0.1:80", true, "X-Forwarded-Host", "b.example", "X-Forwarded-Proto", "https"),
			"http inner map[X-Forwarded-Host:[b.example] X-Forwarded-Proto:[https]]",
		},
	} {
		sent := ""
		s.Get(c.r, nextFunc(func(_ http.ResponseWriter, r *http.Request) error {
			more := r.Header.Clone()
			for _, name := range []string{"Accept", "Accept-Encoding", "User-Agent"} {
				more.Del(name)
			}
			scheme := "http"
			if r.TLS != nil {
				scheme = "https"
			}
			sent = fmt.Sprint(scheme, " ", r.Host, " ", more)
			return nil
		}))
		if sent != c.want {
			t.Errorf("%s %v: sent %q, want %q", c.r.Host, c.r.Header, sent, c.want)
		}
	}
}

// Last returns the newest file of a host, whatever port it was fetched from.
func TestLast(t *testing.T) {
	s := newServer(t)
	s.get(t, "www.example.com", says("Disallow: /a/"))
	s.get(t, "www.example.com.invalid", says("Disallow: /b/"))
	s.get(t, "none.example.com", fails(404))
	for host, want := range map[string]bool{"www.example.com": true, "WWW.example.com:8080": true, "example.com": false, "www.example.co": false, "none.example.com": false, "": false} {
		if got, known := s.Last(host); got != nil != want || known != (want || host == "none.example.com") {
			t.Errorf("%q: %v", host, got)
		}
	}
	s = newServer(t)
	for _, site := range []string{"b.example", "c.example", "a.example", "d.example"} {
		r := httptest.NewRequest("GET", "http://inner/robots.txt", nil)
		r.Header.Set("X-Forwarded-Host", site)
		want, _, _ := s.Get(r.WithContext(context.WithValue(r.Context(), trustedKey{}, true)), says("Disallow: /"+site))
		if got, _ := s.Last("inner"); got == nil || got != want {
			t.Errorf("Last(inner) is not the file of %s, which was fetched last", site)
		}
	}
	s = newServer(t)
	if _, known := s.Last(""); known {
		t.Error("Last(\"\") returned a file, although no host has answered")
	}
	s.get(t, "a.example", says("Disallow: /a/"))
	s.get(t, "b.example", says("Disallow: /a/"))
	if all, known := s.Last(""); !known || all == nil {
		t.Error("two hosts have equal files, but Last(\"\") did not return this file")
	}
	s.get(t, "c.example", says("Disallow: /c/"))
	if _, known := s.Last(""); known {
		t.Error("three hosts have two different files, but Last(\"\") returned one of them")
	}
}

// Requests for many invented hosts use only a limited amount of memory, whatever the upstream answers.
func TestFloodOfHosts(t *testing.T) {
	testkit.Slow(t)
	s := newServer(t)
	var rest strings.Builder
	for i := range 300 {
		fmt.Fprintf(&rest, "Disallow: /some/path/of/the/site/%d\n", i)
	}
	get := func(i int) {
		host := fmt.Sprintf("h%d.example.com", i)
		if got := s.get(t, host, says(fmt.Sprintf("Disallow: /%d\n", i)+rest.String())).text; !strings.HasPrefix(got, fmt.Sprintf("Disallow: /%d\n", i)) {
			t.Fatalf("%s: %.80s", host, got)
		}
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for i := range 100 {
		get(i)
	}
	before := heap()
	for i := range 400 {
		get(100 + i)
	}
	growth := heap() - before
	t.Logf("500 hosts take %d KiB more than 100", growth>>10)
	if growth > 8<<20 {
		t.Errorf("the cache grew by %d bytes", growth)
	}
	if n := len(s.recent) + len(s.earlier); n > 2*maxHosts {
		t.Errorf("%d hosts are cached", n)
	}
}
