// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

func siteSpec() *policy.Spec {
	spec := bigSpec(200, 3, policy.Crawl)
	spec.Sitemaps = []policy.Sitemaps{{Addresses: []string{"https://cdn.example.net/map.xml"}}}
	spec.Rules = append(spec.Rules,
		policy.Rule{
			For: []policy.Audience{{}}, Hosts: []policy.Host{"*.staging.example.com"}, Pos: policy.Pos{Line: 500, Column: 1},
			Statements: []policy.Statement{{Usage: policy.Crawl, Pattern: pathpattern.All}},
		},
		policy.Rule{
			For: []policy.Audience{{}}, Hosts: []policy.Host{"open.staging.example.com"}, Pos: policy.Pos{Line: 600, Column: 1},
			Statements: []policy.Statement{{Usage: policy.Crawl, Allow: true, Pattern: pathpattern.All}},
		})
	return spec
}

func get(t testing.TB, s *Server, method, host string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, "http://x/robots.txt", nil)
	r.Host = host
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

func body(t testing.TB, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func gunzip(t testing.TB, s string) string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(s))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestServeIsWhatRenderRenders(t *testing.T) {
	p := compile(t, siteSpec())
	for _, scheme := range []string{"", "http"} {
		s := NewServer(p, ServeOptions{Options: Options{Scheme: scheme}})
		tags := map[string]string{}
		for _, host := range []string{
			"www.example.com", "WWW.example.com:8443", "a.staging.example.com", "open.staging.example.com", "b.a.staging.example.com",
			"[2001:db8::1]:80", "", "bad host", "staging.example.com", "*.staging.example.com", "x\"><y",
		} {
			f, _ := Render(p, host, Options{Scheme: scheme})
			r := get(t, s, http.MethodGet, host)
			got := body(t, r)
			if r.StatusCode != 200 || got != string(f.Body) || r.Header.Get("ETag") != f.ETag {
				t.Fatalf("%q: %v %q, want %q\n%s\nwant\n%s", host, r.Status, r.Header.Get("ETag"), f.ETag, got, f.Body)
			}
			if text, _ := s.Text(host); text != got {
				t.Errorf("%q: Body differs from the served file", host)
			}
			if other, ok := tags[f.ETag]; ok && other != got {
				t.Errorf("%q has the ETag of other content", host)
			}
			tags[f.ETag] = got
			z := get(t, s, http.MethodGet, host, "Accept-Encoding", "br, gzip;q=0.5")
			packed := body(t, z)
			if z.Header.Get("Content-Encoding") == "" && packed == got && len(got) < 200 {
				continue // compressing so short a file would make it larger
			}
			if z.Header.Get("Content-Encoding") != "gzip" || gunzip(t, packed) != got {
				t.Fatalf("%q: the gzip variant differs", host)
			}
			if z.Header.Get("ETag") == f.ETag || z.Header.Get("Content-Length") != fmt.Sprint(len(packed)) || z.Header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%q: %v", host, z.Header)
			}
			want := map[string]string{
				"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "max-age=3600", "Vary": "Accept-Encoding", "Content-Length": fmt.Sprint(len(got)),
				"X-Content-Type-Options": "nosniff",
			}
			for k, v := range want {
				if r.Header.Get(k) != v {
					t.Errorf("%q: %s is %q, want %q", host, k, r.Header.Get(k), v)
				}
			}
			if strings.ContainsAny(got, "\"<>") {
				t.Errorf("%q is in the file:\n%s", host, got)
			}
		}
	}
}

// Sitemap lines may be longer than 64 KiB, the maximum size of a stored deflate block.
func TestServeManySitemaps(t *testing.T) {
	spec := siteSpec()
	for i := range 4000 {
		spec.Sitemaps[0].Addresses = append(spec.Sitemaps[0].Addresses, fmt.Sprintf("/sitemaps/%d.xml", i))
	}
	p := compile(t, spec)
	s := NewServer(p, ServeOptions{})
	f, _ := Render(p, "www.example.com", Options{})
	if got := gunzip(t, body(t, get(t, s, http.MethodGet, "www.example.com", "Accept-Encoding", "gzip"))); got != string(f.Body) {
		t.Error("the gzip variant differs")
	}
}

func TestServeMethods(t *testing.T) {
	s := NewServer(compile(t, siteSpec()), ServeOptions{})
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PROPFIND"} {
		if r := get(t, s, method, "www.example.com"); r.StatusCode != 405 || r.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %v %v", method, r.Status, r.Header)
		}
	}
	r := get(t, s, http.MethodHead, "www.example.com")
	if b := body(t, r); r.StatusCode != 200 || b != "" || r.Header.Get("Content-Length") == "" {
		t.Errorf("HEAD: %v %q %v", r.Status, b, r.Header)
	}
}

func TestServeConditionsAndRanges(t *testing.T) {
	s := NewServer(compile(t, siteSpec()), ServeOptions{})
	for _, encoding := range []string{"identity", "gzip"} {
		full := get(t, s, http.MethodGet, "www.example.com", "Accept-Encoding", encoding)
		tag, all := full.Header.Get("ETag"), body(t, full)
		otherCoding := map[string]string{"identity": "gzip", "gzip": "identity"}[encoding]
		otherTag := get(t, s, http.MethodGet, "www.example.com", "Accept-Encoding", otherCoding).Header.Get("ETag")
		for _, c := range []struct {
			header, value string
			status        int
			want          string
		}{
			{"If-None-Match", tag, 304, ""},
			{"If-None-Match", "W/" + tag, 304, ""},
			{"If-None-Match", "*", 304, ""},
			{"If-None-Match", `"x", ` + tag, 304, ""},
			{"If-None-Match", `"x"`, 200, all},
			{"If-None-Match", otherTag, 200, all},
			{"If-Match", tag, 200, all},
			{"If-Match", `"x"`, 412, ""},
			{"Range", "bytes=0-9", 206, all[:10]},
			{"Range", "bytes=20-", 206, all[20:]},
			{"Range", "bytes=-7", 206, all[len(all)-7:]},
			{"Range", "bytes=1000000-", 416, ""},
		} {
			r := get(t, s, http.MethodGet, "www.example.com", "Accept-Encoding", encoding, c.header, c.value)
			got := body(t, r)
			if r.StatusCode != c.status || c.status < 300 && got != c.want {
				t.Errorf("%s, %s: %s is %v %q", encoding, c.header, c.value, r.Status, got)
			}
			if c.status == 206 && r.Header.Get("Content-Length") != fmt.Sprint(len(c.want)) {
				t.Errorf("%s, %s: Content-Length is %s for %d bytes", encoding, c.value, r.Header.Get("Content-Length"), len(c.want))
			}
			if c.status == 304 && (r.Header.Get("ETag") != tag || r.Header.Get("Cache-Control") == "" || r.Header.Get("Vary") == "" ||
				r.Header.Get("Content-Encoding") != "" || r.Header.Get("X-Content-Type-Options") != "") {
				t.Errorf("%s, 304: %v", encoding, r.Header)
			}
		}
		r := get(t, s, http.MethodGet, "www.example.com", "Accept-Encoding", encoding, "Range", "bytes=0-9", "If-Range", `"x"`)
		if got := body(t, r); r.StatusCode != 200 || got != all {
			t.Errorf("If-Range of another file: %v", r.Status)
		}
		// A server evaluates If-Match before If-None-Match (RFC 9110 section 13.2.2).
		r = get(t, s, http.MethodGet, "www.example.com", "Accept-Encoding", encoding, "If-None-Match", tag, "If-Match", `"x"`)
		if r.StatusCode != 412 {
			t.Errorf("If-Match of another file, If-None-Match of this one: %v", r.Status)
		}
	}
}

// The answer to an unmet condition is complete. The client does not wait on the connection for a body that never
// arrives.
func TestUnmetConditionOverHTTP(t *testing.T) {
	srv := httptest.NewServer(NewServer(compile(t, siteSpec()), ServeOptions{}))
	defer srv.Close()
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		for _, encoding := range []string{"identity", "gzip"} {
			r, err := http.NewRequest(method, srv.URL+"/robots.txt", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept-Encoding", encoding)
			r.Header.Set("If-Match", `"x"`)
			resp, err := srv.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			h := resp.Header
			if err != nil || resp.StatusCode != 412 || len(b) > 0 || h.Get("Content-Encoding")+h.Get("Cache-Control") != "" {
				t.Errorf("%s %s: %v %s %v %q", method, encoding, err, resp.Status, h, b)
			}
		}
	}
}

func TestAcceptsGzip(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "gzip": true, "GZip": true, "br, gzip": true, "gzip;q=0": false, "gzip; q=0.0": false, "gzip;q=0.001": true,
		"*": true, "*;q=0": false, "*;q=0, gzip": true, "gzip;q=0, *": false, "identity": false, "deflate, br": false, "x-gzip": true,
	} {
		if got := acceptsGzip(http.Header{"Accept-Encoding": {value}}); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
	if !acceptsGzip(http.Header{"Accept-Encoding": {"br", "gzip"}}) {
		t.Error("the second line of Accept-Encoding is ignored")
	}
}

func TestCacheControl(t *testing.T) {
	p := compile(t, siteSpec())
	for _, c := range []struct {
		age  time.Duration
		want string
	}{{0, "max-age=3600"}, {time.Minute, "max-age=60"}, {48 * time.Hour, "max-age=86400"}, {-1, "no-cache"}, {time.Millisecond, "no-cache"}} {
		if got := get(t, NewServer(p, ServeOptions{MaxAge: c.age}), "GET", "x").Header.Get("Cache-Control"); got != c.want {
			t.Errorf("%v: %q, want %q", c.age, got, c.want)
		}
	}
}

// Requests for many invented hosts use no memory. Each answer allocates only a small part of the size of the file.
func TestFloodOfHosts(t *testing.T) {
	p := compile(t, bigSpec(5000, 50, policy.Crawl))
	s := NewServer(p, ServeOptions{})
	w := &discard{http.Header{}}
	r := httptest.NewRequest(http.MethodGet, "http://x/robots.txt", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	serve := func(i int) {
		clear(w.header)
		r.Host = fmt.Sprintf("host-%d.example.com", i)
		s.ServeHTTP(w, r)
	}
	serve(-1)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const n = 20000
	for i := range n {
		serve(i)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("%d hosts: %d bytes kept, %d allocated for each", n, int64(after.HeapAlloc)-int64(before.HeapAlloc), (after.TotalAlloc-before.TotalAlloc)/n)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > n {
		t.Errorf("%d bytes are kept of %d hosts", kept, n)
	}
}

// A caller may change the header values of an answer in place, like Caddy's "header" directive. This must not change
// other answers.
func TestValuesAreNotShared(t *testing.T) {
	s := NewServer(compile(t, siteSpec()), ServeOptions{})
	for _, c := range [][2]string{{"GET", "identity"}, {"HEAD", "identity"}, {"GET", "gzip"}, {"POST", "identity"}} {
		r := httptest.NewRequest(c[0], "http://www.example.com/robots.txt", nil)
		r.Header.Set("Accept-Encoding", c[1])
		first, second := httptest.NewRecorder(), httptest.NewRecorder()
		s.ServeHTTP(first, r)
		want := first.Header().Clone()
		for _, values := range first.Header() {
			for i := range values {
				values[i] = "changed"
			}
		}
		s.ServeHTTP(second, r)
		if !reflect.DeepEqual(second.Header(), want) {
			t.Errorf("%s %s: %v, want %v", c[0], c[1], second.Header(), want)
		}
	}
}

// The answer to a request without conditions or ranges must equal the answer of http.ServeContent.
func TestWholeIsAsServeContent(t *testing.T) {
	s := NewServer(compile(t, siteSpec()), ServeOptions{})
	for _, method := range []string{"GET", "HEAD"} {
		for _, encoding := range []string{"identity", "gzip"} {
			r := httptest.NewRequest(method, "http://www.example.com/robots.txt", nil)
			r.Header.Set("Accept-Encoding", encoding)
			direct, served := httptest.NewRecorder(), httptest.NewRecorder()
			direct.Header().Set("Vary", "Origin")
			served.Header().Set("Vary", "Origin")
			s.ServeHTTP(direct, r)
			r.Header.Set("If-None-Match", `"another"`)
			s.ServeHTTP(served, r)
			if direct.Code != 200 || direct.Body.String() != served.Body.String() || !reflect.DeepEqual(direct.Header(), served.Header()) {
				t.Errorf("%s %s: %d %v, want %v", method, encoding, direct.Code, direct.Header(), served.Header())
			}
		}
	}
}

// Serving a request needs the same number of allocations for a large policy as for a small one.
func TestHitAllocations(t *testing.T) {
	count := func(n int) float64 {
		s := NewServer(compile(t, bigSpec(n, 10, policy.Crawl)), ServeOptions{})
		w := &discard{http.Header{}}
		r := httptest.NewRequest(http.MethodGet, "http://www.example.com/robots.txt", nil)
		return testing.AllocsPerRun(100, func() { clear(w.header); s.ServeHTTP(w, r) })
	}
	small, large := count(20), count(5000)
	t.Logf("%v allocations for 20 rules, %v for 5,000", small, large)
	if large > small || small > 1 {
		t.Errorf("%v allocations for 5,000 rules, %v for 20", large, small)
	}
}
