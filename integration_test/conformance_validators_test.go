// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// validatorUpstream serves a page with http.ServeContent, which supports Range and conditional requests. The request's
// field Tag determines the entity tag of the page.
func validatorUpstream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if tag := r.Header.Get("Tag"); tag != "" {
		w.Header().Set("Etag", tag)
	}
	http.ServeContent(w, r, "", time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), strings.NewReader(page(padding)))
}

var validatorSites = map[string]string{
	"proxy.test":  "robots_policy POLICY\nreverse_proxy UPSTREAM",
	"encode.test": "encode zstd gzip\nrobots_policy POLICY\nreverse_proxy UPSTREAM",
	"files.test":  "root DIR\nrobots_policy POLICY\nfile_server",
	"packed.test": "root DIR\nrobots_policy POLICY\nfile_server {\nprecompressed br zstd gzip\n}",
	"both.test":   "root DIR\nencode zstd gzip\nrobots_policy POLICY\nfile_server {\nprecompressed br\n}",
	"etags.test":  "root DIR\nrobots_policy POLICY\nfile_server {\nprecompressed gzip\netag_file_extensions .sum\n}",
	"caps.test":   "encode zstd gzip\nrobots_policy POLICY {\nheaders tailored\n}\nreverse_proxy UPSTREAM",
}

// noEntityTag is the reason why tests of entity tags do not use the file server of net/http.
const noEntityTag = "http.FileServer sends no entity tag"

// conditional runs validatorSites under conformancePolicy. change makes the server load a different policy for these
// sites.
func conditional(t *testing.T, d door) (s *server, change func(policy string)) {
	t.Helper()
	if d == netHTTPDoor {
		s = d.startSites(t, conformancePolicy, http.HandlerFunc(validatorUpstream), validatorSites)
	} else {
		s = newServer(t, t.TempDir(), conformancePolicy, http.HandlerFunc(validatorUpstream))
	}
	for coding, ext := range map[string]string{"": "", "br": ".br", "zstd": ".zst", "gzip": ".gz"} {
		s.file("drafts/x.html"+ext, string(encoded(coding, page(padding))))
	}
	s.file("drafts/x.html.sum", `"sum-1"`)
	if d == netHTTPDoor {
		return s, s.change
	}
	for host := range validatorSites {
		doors.ran(t, d, host)
	}
	caddyfile := s.sites(validatorSites)
	s.run(caddyfile)
	return s, func(policy string) {
		s.write("policy.yaml", policy)
		s.load(caddyfile)
	}
}

// If a client sends the entity tag of its copy, the server confirms the copy with 304, until the policy changes.
func TestEntityTags(t *testing.T) { bothDoors(t, testEntityTags) }

func testEntityTags(t *testing.T, d door) {
	s, change := conditional(t, d)
	s.without("files.test", noEntityTag)
	type known struct{ host, accept, tag, etag string }
	var all []known
	for host := range validatorSites {
		if s.lacks(host) {
			continue
		}
		for _, accept := range []string{"identity", "gzip", "zstd", "br"} {
			for _, tag := range []string{`"v1"`, `W/"v1"`} {
				k := known{host, accept, tag, ""}
				for range 2 { // a second request gets the same tag
					r := s.get("/drafts/x.html", "Host", host, "Accept-Encoding", accept, "Tag", tag)
					text := decoded(t, r.Header.Get("Content-Encoding"), r.body)
					if problem := treeChange(page(padding), text, conformanceTold(host)); problem != "" || r.StatusCode != 200 {
						t.Fatalf("%+v: %s %s", k, r.Status, problem)
					}
					if r.Header.Get("Last-Modified") != "" || r.Header.Get("Accept-Ranges") != "" {
						t.Errorf("%+v: %v", k, r.Header)
					}
					if e := r.Header.Get("Etag"); k.etag != "" && e != k.etag || !strings.Contains(e, "-rp") {
						t.Errorf("%+v: ETag %s, then %s", k, k.etag, e)
					}
					k.etag = r.Header.Get("Etag")
				}
				all = append(all, k)
				s.fresh(t, k.host, k.accept, k.tag, k.etag)
			}
		}
	}
	change(strings.Replace(conformancePolicy, "index: /drafts/", "index: [/drafts/, /more/]", 1))
	for _, k := range all {
		r := s.get("/drafts/x.html", "Host", k.host, "Accept-Encoding", k.accept, "Tag", k.tag, "If-None-Match", k.etag)
		if e := r.Header.Get("Etag"); r.StatusCode != 200 || e == k.etag || !strings.Contains(e, "-rp") {
			t.Errorf("%+v after the policy has changed: %s, ETag %s", k, r.Status, e)
		}
	}
}

// conformanceTold returns the rules that conformancePolicy demands for a page below /drafts/. For a host with tailored
// headers, it returns the rules for an unlisted crawler.
func conformanceTold(host string) reading {
	says := conformanceSays["/drafts/x"].rules
	if host == "caps.test" {
		return reading{"*": says["*"]}
	}
	return says
}

// fresh sends conditional requests that must be answered with 304. It sends etag, the entity tag of a response, in
// every form that If-None-Match allows (RFC 9110 section 13.1.2). tag is the entity tag of the upstream's page.
func (s *server) fresh(t *testing.T, host, accept, tag, etag string) {
	t.Helper()
	weak := "W/" + strings.TrimPrefix(etag, "W/")
	for _, asked := range []string{etag, weak, `"a", ` + etag, etag + `, "b"`, `W/"a",` + weak + `,"b"`, "*"} {
		for _, method := range []string{"GET", "HEAD"} {
			r := s.do(method, "/drafts/x.html", "Host", host, "Accept-Encoding", accept, "Tag", tag, "If-None-Match", asked)
			if r.StatusCode != 304 || r.body != "" {
				t.Errorf("%s %s, %s: If-None-Match %q: %s", method, host, accept, asked, r.Status)
				continue
			}
			if host != "caps.test" {
				if wrong := judge("/drafts/x", fields{}, fieldsOf(r.Header)); len(wrong) > 0 {
					t.Errorf("%s %s: 304: %v", method, host, wrong)
				}
			}
			// Caddy's "encode" adds a suffix to the entity tag of a compressed page, but omits this suffix in a 304. So
			// the tag in the 304 is correct with and without the suffix.
			got, want := r.Header.Get("Etag"), strings.NewReplacer(`-gzip"`, `"`, `-zstd"`, `"`).Replace(etag)
			if asked != "*" && got != want && got != etag {
				t.Errorf("%s %s: 304 with ETag %s, asked with %s", method, host, got, etag)
			}
			if r.Header.Get("Last-Modified") != "" && asked != "*" {
				t.Errorf("%s %s: 304 with Last-Modified", method, host)
			}
		}
	}
	for _, stale := range []string{`"v2-rp000000000000"`, strings.Replace(etag, "-rp", "-rq", 1), `"` + strings.Trim(tag, `W/"`) + `x"`} {
		if r := s.get("/drafts/x.html", "Host", host, "Accept-Encoding", accept, "Tag", tag, "If-None-Match", stale); r.StatusCode != 200 {
			t.Errorf("%s, %s: If-None-Match %s: %s", host, accept, stale, r.Status)
		}
	}
}

// A changed page has no Last-Modified date, because this date would not change with a new policy. A client can
// nevertheless send a date of its choice in If-Modified-Since, and get a 304. In this case, the header of the 304
// states the rules that the page's meta tags would state.
func TestDates(t *testing.T) { bothDoors(t, testDates) }

func testDates(t *testing.T, d door) {
	s, _ := conditional(t, d)
	for host := range validatorSites {
		if s.lacks(host) {
			continue
		}
		r := s.get("/drafts/x.html", "Host", host, "Accept-Encoding", "identity", "If-Modified-Since", time.Now().UTC().Format(http.TimeFormat))
		if r.StatusCode != 200 && r.StatusCode != 304 {
			t.Errorf("%s: %s", host, r.Status)
		}
		if x := readX(r.Header["X-Robots-Tag"]); x.to("a") != conformanceTold(host).to("a") {
			t.Errorf("%s: %s %v", host, r.Status, r.Header)
		}
	}
}

// A range of bytes is always a part of the upstream's page, never of the changed page. If a client has a part of the
// changed page and asks for more of it, it gets the complete page.
func TestRanges(t *testing.T) { bothDoors(t, testRanges) }

func testRanges(t *testing.T, d door) {
	s, _ := conditional(t, d)
	s.without("files.test", noEntityTag)
	original := page(padding)
	for _, host := range []string{"proxy.test", "files.test", "encode.test", "packed.test"} {
		if s.lacks(host) {
			continue
		}
		header := []string{"Host", host, "Accept-Encoding", "identity", "Tag", `"v1"`}
		whole := s.get("/drafts/x.html", header...)
		for _, c := range []struct {
			name   string
			header []string
			status int
			body   string
		}{
			{"part", []string{"Range", "bytes=0-9"}, 206, original[:10]},
			{"end", []string{"Range", "bytes=-7"}, 206, original[len(original)-7:]},
			{"past the end", []string{"Range", "bytes=100000-"}, 416, ""},
			{"parts of the changed page", []string{"Range", "bytes=0-9", "If-Range", whole.Header.Get("Etag")}, 200, whole.body},
			{"parts of an older page", []string{"Range", "bytes=0-9", "If-Range", `"v0"`}, 200, whole.body},
			{"another unit", []string{"Range", "lines=1-2"}, 0, ""},
		} {
			r := s.get("/drafts/x.html", slices.Concat(header, c.header)...)
			if c.status != 0 && r.StatusCode != c.status || c.body != "" && r.body != c.body {
				t.Errorf("%s, %s: %s %.80q", host, c.name, r.Status, r.body)
			}
			if r.StatusCode == 206 && strings.Contains(r.Header.Get("Etag"), "-rp") {
				t.Errorf("%s, %s: a part with the changed page's ETag %s", host, c.name, r.Header.Get("Etag"))
			}
			if r.StatusCode < 400 {
				if wrong := judge("/drafts/x", fields{}, fieldsOf(r.Header)); len(wrong) > 0 {
					t.Errorf("%s, %s: %v", host, c.name, wrong)
				}
			}
		}
		r := s.get("/drafts/x.html", append(header, "Range", "bytes=0-3,8-9")...)
		if r.StatusCode != 206 || !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/byteranges") || !strings.Contains(r.body, "\r\n\r\n"+original[:4]+"\r\n") {
			t.Errorf("%s, two ranges: %s %q", host, r.Status, r.body)
		}
	}
}

// If a client sends the tag of its copy in If-Match, the request succeeds as long as the page does not change.
func TestIfMatch(t *testing.T) { bothDoors(t, testIfMatch) }

func testIfMatch(t *testing.T, d door) {
	s, _ := conditional(t, d)
	etag := s.get("/drafts/x.html", "Host", "proxy.test", "Accept-Encoding", "identity", "Tag", `"v1"`).Header.Get("Etag")
	for asked, want := range map[string]int{etag: 200, `"x", ` + etag: 200, "*": 200, `"x"`: 412} {
		if r := s.get("/drafts/x.html", "Host", "proxy.test", "Accept-Encoding", "identity", "Tag", `"v1"`, "If-Match", asked); r.StatusCode != want {
			t.Errorf("If-Match %s: %s, want %d", asked, r.Status, want)
		}
	}
}

// Caddy executes templates before the handler looks for the head of the page. Parts of the site that a template
// includes do not get meta tags.
func TestTemplates(t *testing.T) {
	needsCaddy(t, "Caddy's templates")
	site := "root DIR\nrobots_policy POLICY\ntemplates\nfile_server"
	s := startSites(t, conformancePolicy, nil, map[string]string{"a.test": site, "gzip.test": "encode gzip\n" + site})
	s.file("drafts/part.html", "<p>a part</p>")
	s.file("drafts/whole.html", page("<!--whole-->"))
	s.file("drafts/x.html", page(`<meta name="robots" content="{{"index"}}">`+padding)+`{{include "/drafts/part.html"}}{{httpInclude "/drafts/part.html"}}`)
	s.file("takes.html", `<p>{{httpInclude "/drafts/whole.html"}}`)
	s.file("drafts/bad.html", page("")+"{{fail `x`}}{{nosuch}}")
	want := page(`<meta name="robots" content="noindex, max-snippet:50">`+padding) + "<p>a part</p><p>a part</p>"
	for _, host := range []string{"a.test", "gzip.test"} {
		r := s.get("/drafts/x.html", "Host", host, "Accept-Encoding", "gzip")
		text := decoded(t, r.Header.Get("Content-Encoding"), r.body)
		if text = strings.Replace(text, crawlersElements, "", 1); text != want {
			t.Errorf("%s:\n%q, want\n%q", host, text, want)
		}
		if host == "a.test" && r.ContentLength != int64(len(r.body)) {
			t.Errorf("Content-Length %d of %d", r.ContentLength, len(r.body))
		}
		if r := s.get("/drafts/part.html", "Host", host); r.body != "<p>a part</p>" {
			t.Errorf("%s: a part became %q", host, r.body)
		}
		// A page that a template includes with httpInclude is never changed, whichever client requests the page around
		// it.
		for _, agent := range []string{"", gptBot} {
			if r := s.get("/takes.html", "Host", host, "User-Agent", agent); r.StatusCode != 200 || r.body != "<p>"+page("<!--whole-->") {
				t.Errorf("%s: %q: %s %q", host, agent, r.Status, r.body)
			}
		}
		if r := s.get("/drafts/whole.html", "Host", host, "Caddy-Templates-Include", "1"); !strings.Contains(r.body, "noindex") {
			t.Errorf("%s: a client pretends to be a template: %q", host, r.body)
		}
		if r := s.get("/drafts/bad.html", "Host", host); r.StatusCode != 500 || strings.Contains(r.body, "meta") {
			t.Errorf("%s: a broken template: %s %q", host, r.Status, r.body)
		}
	}
}

// If the upstream breaks off a response, the client must not get a page that looks complete.
func TestUpstreamBreaksOff(t *testing.T) { bothDoors(t, testUpstreamBreaksOff) }

func testUpstreamBreaksOff(t *testing.T, d door) {
	s := d.start(t, conformancePolicy, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Length", "100000")
		_, _ = io.WriteString(w, page("")[:len(r.URL.Query().Get("n"))])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}), "robots_policy POLICY\nreverse_proxy UPSTREAM")
	for _, n := range []int{0, 5, 30, 60, 80} {
		doors.asked(s)
		resp, err := client.Get("http://" + s.addr + "/drafts/x?n=" + strings.Repeat("x", n))
		if err != nil {
			continue
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err == nil && resp.StatusCode == 200 {
			t.Errorf("%d bytes: a complete page of %q", n, body)
		}
	}
}
