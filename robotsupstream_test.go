// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// mergeHandler merges below a policy that shuts /admin/.
func mergeHandler(t *testing.T) (*Handler, *live) {
	t.Helper()
	s, ds := site.Load("policy.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    disallow:\n      crawl: /admin/\n"), robotsserve.ServeOptions{})
	if ds.HasErrors() {
		t.Fatal(policyfile.Diagnostics(ds))
	}
	age, err := parseRobotsAge("")
	if err != nil {
		t.Fatal(err)
	}
	h := &Handler{logger: zap.NewNop(), told: new(once), readers: new(readers), robotsAge: age}
	h.upstreams = &upstreams{told: h.told, logger: h.logger}
	return h, &live{site: s}
}

// asked serves robots.txt for a host and returns the answer, with what everybody
// is told.
func (h *Handler) asked(t *testing.T, l *live, host string, next caddyhttp.HandlerFunc, header ...string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://x/robots.txt", nil)
	r.Host = host
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	before := *r
	h.serveRobots(w, r, l, next)
	if r.URL != before.URL || r.Method != before.Method || fmt.Sprint(r.Header) != fmt.Sprint(before.Header) || r.Context() != before.Context() {
		t.Errorf("the request was %v and is %v", before, r)
	}
	_, body, _ := strings.Cut(w.Body.String(), "Disallow: /admin/\n")
	if w.Code != 200 || body == w.Body.String() {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	body, _, _ = strings.Cut(body, "\n\n")
	_, body, _ = strings.Cut(body, "# from the robots.txt of the site\n")
	return w.Result(), strings.TrimSpace(body)
}

func says(text string) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		_, err := io.WriteString(w, "User-agent: *\n"+text+"\n")
		return err
	}
}

func fails(status int) caddyhttp.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(status, errors.New("x")) }
}

// A change is taken up within a minute; while the site fails, what it said last
// holds; when it says that it has none, nothing does.
func TestUpstreamChangesAndFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, l := mergeHandler(t)
		never := func(http.ResponseWriter, *http.Request) error { t.Error("asked too soon"); return nil }
		aborts := func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }
		panics := func(http.ResponseWriter, *http.Request) error { panic("x") }
		hangs := func(_ http.ResponseWriter, r *http.Request) error { <-r.Context().Done(); return r.Context().Err() }
		// As Caddy's proxy does, which counts other ends of a request against the site.
		leaves := func(_ http.ResponseWriter, r *http.Request) error {
			if <-r.Context().Done(); r.Context().Err() != context.Canceled {
				t.Errorf("ended by %v", r.Context().Err())
			}
			return caddyhttp.Error(499, r.Context().Err())
		}
		var tags []string
		for i, step := range []struct {
			after time.Duration
			next  caddyhttp.HandlerFunc
			want  string
			age   string
		}{
			{0, fails(502), "", "max-age=60"}, // nothing is known
			{9 * time.Second, never, "", "max-age=60"},
			{2 * time.Second, says("Disallow: /one"), "Disallow: /one", "max-age=3600"},
			{59 * time.Second, never, "Disallow: /one", "max-age=3600"},
			{2 * time.Second, says("Disallow: /two"), "Disallow: /two", "max-age=3600"},
			{61 * time.Second, fails(503), "Disallow: /two", "max-age=3600"},
			{9 * time.Second, never, "Disallow: /two", "max-age=3600"},
			{2 * time.Second, aborts, "Disallow: /two", "max-age=3600"},
			{11 * time.Second, panics, "Disallow: /two", "max-age=3600"},
			{11 * time.Second, hangs, "Disallow: /two", "max-age=3600"},
			{11 * time.Second, leaves, "Disallow: /two", "max-age=3600"},
			{30 * 24 * time.Hour, fails(500), "Disallow: /two", "max-age=3600"},
			{11 * time.Second, says("Disallow: /one"), "Disallow: /one", "max-age=3600"},
			{61 * time.Second, fails(403), "Disallow: /one", "max-age=3600"}, // to this client
			{11 * time.Second, fails(401), "Disallow: /one", "max-age=3600"},
			{11 * time.Second, fails(404), "", "max-age=3600"},
			{30 * time.Second, never, "", "max-age=3600"},
			{31 * time.Second, fails(502), "", "max-age=3600"}, // known to have none
		} {
			time.Sleep(step.after)
			r, got := h.asked(t, l, "www.example.com", step.next)
			if got != step.want || r.Header.Get("Cache-Control") != step.age {
				t.Errorf("step %d: %q %v, want %q %s", i, got, r.Header, step.want, step.age)
			}
			tags = append(tags, r.Header.Get("Etag"))
		}
		if tags[2] != tags[12] || tags[2] == tags[4] || tags[0] != tags[15] {
			t.Errorf("entity tags: %q", tags)
		}
	})
}

// While one request asks, the others have what was known before, or wait for it
// but not for ever; that the one's client leaves does not matter.
func TestUpstreamIsAskedByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, l := mergeHandler(t)
		var asked atomic.Int32
		slow := func(took time.Duration, text string) caddyhttp.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) error {
				asked.Add(1)
				time.Sleep(took)
				if took < upstreamTimeout && r.Context().Err() != nil {
					t.Error("asking ended with the client")
				}
				return says(text)(w, r)
			}
		}
		many := func(next caddyhttp.HandlerFunc) (answers map[string]time.Duration) {
			answers = map[string]time.Duration{}
			var mu sync.Mutex
			var wg sync.WaitGroup
			asked.Store(0)
			began := time.Now()
			for range 50 {
				wg.Go(func() {
					_, got := h.asked(t, l, "www.example.com", next)
					mu.Lock()
					defer mu.Unlock()
					answers[got] = max(answers[got], time.Since(began))
				})
			}
			wg.Wait()
			if asked.Load() != 1 {
				t.Errorf("asked %d times", asked.Load())
			}
			return answers
		}
		// A handler that goes on after its time holds up the request that asks.
		if got := many(slow(time.Hour, "Disallow: /slow")); len(got) != 1 || got[""] != time.Hour {
			t.Errorf("one that is far too late: %v", got)
		}
		time.Sleep(time.Minute)
		if got := many(slow(time.Second, "Disallow: /a")); len(got) != 1 || got["Disallow: /a"] != time.Second {
			t.Errorf("the first answer: %v", got)
		}
		time.Sleep(2 * time.Minute)
		if got := many(slow(time.Second, "Disallow: /b")); got["Disallow: /a"] != 0 || got["Disallow: /b"] != time.Second {
			t.Errorf("the second answer: %v", got)
		}

		time.Sleep(2 * time.Minute)
		ctx, leave := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://x/robots.txt", nil)
		r.Host = "www.example.com"
		go func() { time.Sleep(time.Second); leave() }()
		h.serveRobots(httptest.NewRecorder(), r, l, slow(2*time.Second, "Disallow: /c"))
		if _, got := h.asked(t, l, "www.example.com", says("Disallow: /d")); got != "Disallow: /c" {
			t.Errorf("after the client has left: %q", got)
		}
	})
}

// Others do not wait for a handler that never ends, and so many such are asked.
func TestUpstreamThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, l := mergeHandler(t)
		end := make(chan struct{})
		var asked atomic.Int32
		never := func(http.ResponseWriter, *http.Request) error { asked.Add(1); <-end; return nil }
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() { h.asked(t, l, fmt.Sprintf("host%d", i), never) })
		}
		synctest.Wait()
		if n := asked.Load(); n != maxUpstreamAsked {
			t.Errorf("%d are asked at a time", n)
		}
		time.Sleep(upstreamTimeout)
		began := time.Now()
		for i := range 100 {
			h.asked(t, l, fmt.Sprintf("host%d", i), never)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("others waited %v", took)
		}
		close(end)
		wg.Wait()
	})
}

// The answer is for everybody: nothing of the client that asks first is in the
// question.
func TestUpstreamIsNotAskedWithWhatTheClientSends(t *testing.T) {
	h, l := mergeHandler(t)
	h.asked(t, l, "www.example.com", func(w http.ResponseWriter, r *http.Request) error {
		if fmt.Sprint(r.Header) != "map[Accept:[text/plain] Accept-Encoding:[identity] User-Agent:[caddy-robots-policy]]" {
			t.Errorf("%v", r.Header)
		}
		return nil
	}, "Cookie", "a=b", "Authorization", "Basic eA==", "X-Forwarded-Host", "evil.example", "X-Original-URL", "/other", "Upgrade", "websocket", "If-None-Match", `"x"`, "Expect", "100-continue")
	for _, host := range []string{"", "a/b", "x@y", strings.Repeat("a", 400), "a b"} {
		h.asked(t, l, host, func(http.ResponseWriter, *http.Request) error { t.Errorf("%q was asked", host); return nil })
	}
}

// What one client says of the site is not what others are given: however it writes
// the host, the question is the same, and what a proxy tells of the site makes
// another.
func TestUpstreamIsAskedForTheSite(t *testing.T) {
	h, _ := mergeHandler(t)
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
		ctx = context.WithValue(ctx, caddyhttp.VarsCtxKey, map[string]any{caddyhttp.TrustedProxyVarKey: trusted})
		return r.WithContext(ctx)
	}
	for _, c := range []struct {
		r    *http.Request
		want string // what is asked; "" for what is known already
	}{
		{request("http://x/robots.txt", "www.example.com", "127.0.0.1:80", false), "http www.example.com map[]"},
		{request("http://x/robots.txt", "WWW.Example.com.:9999", "127.0.0.1:80", false), ""},
		{request("http://x/robots.txt", "Sub.Example.com:9999", "127.0.0.1:80", false), "http sub.example.com map[]"},
		{request("http://x/robots.txt", "sub.example.com.", "127.0.0.1:80", false, "X-Forwarded-Host", "evil.example"), ""},
		{request("http://x/robots.txt", "www.example.com:8080", "127.0.0.1:8080", false), "http www.example.com:8080 map[]"},
		{request("http://x/robots.txt", "WWW.example.com:8080", "127.0.0.1:8080", false), ""},
		{request("https://x/robots.txt", "www.example.com:443", "127.0.0.1:443", false), "https www.example.com map[]"},
		{request("http://x/robots.txt", "inner", "127.0.0.1:80", true, "X-Forwarded-Host", "a.example", "X-Forwarded-Proto", "http", "X-Forwarded-For", "1.2.3.4", "Forwarded", "for=1.2.3.4"),
			"http inner map[X-Forwarded-Host:[a.example] X-Forwarded-Proto:[http]]"},
		{request("http://x/robots.txt", "inner", "127.0.0.1:80", true, "X-Forwarded-Host", "a.example", "X-Forwarded-Proto", "http", "X-Forwarded-For", "5.6.7.8"), ""},
		{request("http://x/robots.txt", "inner", "127.0.0.1:80", true, "X-Forwarded-Host", "a.example", "X-Forwarded-Proto", "https"),
			"http inner map[X-Forwarded-Host:[a.example] X-Forwarded-Proto:[https]]"},
		{request("http://x/robots.txt", "inner", "127.0.0.1:80", true, "X-Forwarded-Host", "b.example", "X-Forwarded-Proto", "https"),
			"http inner map[X-Forwarded-Host:[b.example] X-Forwarded-Proto:[https]]"},
	} {
		asked := ""
		h.upstreams.of(c.r, caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
			more := r.Header.Clone()
			for _, name := range []string{"Accept", "Accept-Encoding", "User-Agent"} {
				more.Del(name)
			}
			scheme := "http"
			if r.TLS != nil {
				scheme = "https"
			}
			asked = fmt.Sprint(scheme, " ", r.Host, " ", more)
			return nil
		}))
		if asked != c.want {
			t.Errorf("%s %v: asked %q, want %q", c.r.Host, c.r.Header, asked, c.want)
		}
	}
}

// A flood of made-up hosts costs a bounded memory, whatever the upstream answers.
func TestFloodOfUpstreams(t *testing.T) {
	h, l := mergeHandler(t)
	var rest strings.Builder
	for i := range 300 {
		fmt.Fprintf(&rest, "Disallow: /some/path/of/the/site/%d\n", i)
	}
	ask := func(i int) {
		host := fmt.Sprintf("h%d.example.com", i)
		if _, got := h.asked(t, l, host, says(fmt.Sprintf("Disallow: /%d\n", i)+rest.String())); !strings.HasPrefix(got, fmt.Sprintf("Disallow: /%d\n", i)) {
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
		ask(i)
	}
	before := heap()
	for i := range 400 {
		ask(100 + i)
	}
	kept := heap() - before
	t.Logf("%d KiB after 500 hosts more than after 100", kept>>10)
	if kept > 8<<20 {
		t.Errorf("%d octets are kept", kept)
	}
	if n := len(h.upstreams.recent) + len(h.upstreams.earlier); n > 2*maxUpstreamHosts {
		t.Errorf("%d hosts are kept", n)
	}
}
