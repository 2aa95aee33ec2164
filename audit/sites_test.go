// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// testSite is a site with a robots.txt, pages and a log of requests.
type testSite struct {
	robots   string
	robotsAs func(w http.ResponseWriter, r *http.Request, site string) bool
	pages    map[string]string // keyed by path; a page may begin with header lines and an empty line
	sitemap  []string          // paths of the pages in sitemap.xml; nil means that the site has no sitemap

	asked []string // "NAME PATH" for each request: the name in the User-Agent, and the path
	waits []time.Duration
}

func (s *testSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	site := "http://" + r.Host
	name := "other"
	for _, n := range []string{"compatible; GPTBot", "compatible; Googlebot", "Chrome/"} {
		if strings.Contains(r.UserAgent(), n) {
			name = strings.Trim(strings.TrimPrefix(n, "compatible; "), "/")
		}
	}
	if name == "other" && strings.HasPrefix(r.UserAgent(), OwnToken+"/") {
		name = OwnToken
	}
	s.asked = append(s.asked, name+" "+r.URL.Path)
	switch page, ok := s.pages[r.URL.Path]; {
	case r.URL.Path == "/robots.txt" && s.robotsAs != nil && s.robotsAs(w, r, site):
	case r.URL.Path == "/robots.txt":
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, strings.ReplaceAll(s.robots, "{{site}}", site))
	case r.URL.Path == "/sitemap.xml" && s.sitemap != nil:
		fmt.Fprint(w, `<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
		for _, path := range s.sitemap {
			fmt.Fprintf(w, "<url><loc>%s%s</loc></url>", site, path)
		}
		fmt.Fprint(w, "</urlset>")
	case ok:
		w.Header().Set("Content-Type", "text/html")
		if head, body, ok := strings.Cut(page, "\n\n"); ok {
			for line := range strings.SplitSeq(head, "\n") {
				k, v, _ := strings.Cut(line, ": ")
				w.Header().Add(k, v)
			}
			page = body
		}
		fmt.Fprint(w, page)
	default:
		http.NotFound(w, r)
	}
}

// audit runs an audit of the site without waiting.
func (s *testSite) audit(t *testing.T, o Options) *Report {
	t.Helper()
	server := httptest.NewServer(s)
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	o.Wait = func(_ context.Context, d time.Duration) error {
		s.waits = append(s.waits, d)
		return nil
	}
	r, err := Run(t.Context(), u, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// codes lists the codes of the findings, each once. A "?" follows the code of a warning, and a "-" the code of a hint.
func codes(r *Report) (all []string) {
	for _, f := range r.Findings {
		code := f.Code + map[Severity]string{Error: "", Warning: "?", Hint: "-"}[f.Severity]
		if !slices.Contains(all, code) {
			all = append(all, code)
		}
	}
	slices.Sort(all)
	return all
}

func fixture(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/sites/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const home = "<!doctype html><title>Home</title>"

// TestSites audits sites with typical robots.txt files from the web.
func TestSites(t *testing.T) {
	for name, tt := range map[string]struct {
		robots  string // name of a robots.txt file in testdata
		text    string // text of robots.txt, used if the field robots is empty
		pages   map[string]string
		sitemap []string
		want    []string
	}{
		"WordPress":                  {robots: "wordpress", sitemap: []string{"/", "/about/"}},
		"newspaper":                  {robots: "newspaper", sitemap: []string{"/about/"}},
		"newspaper, disallowed page": {robots: "newspaper", sitemap: []string{"/about/", "/preview/x"}, want: []string{"sitemap-disallowed"}},
		"shop":                       {robots: "shop"},
		"content signals":            {robots: "signals", want: []string{"robots-lighthouse-"}},
		"content signals, usage":     {robots: "signals", pages: map[string]string{"/": "Content-Usage: train-ai=y\n\n" + home}, want: []string{"robots-lighthouse-", "usage-disagrees"}},
		"mistakes":                   {robots: "mistakes", want: []string{"robots-lighthouse-", "robots-syntax"}},
		"disallowed":                 {robots: "disallowed", want: []string{"not-audited-"}},
		"UTF-16":                     {robots: "utf16", want: []string{"robots-encoding"}},
		"byte order mark and CRLF":   {robots: "bom"},
		"empty":                      {text: ""},
		"600 KiB":                    {text: "User-agent: *\n" + strings.Repeat("Disallow: /a-long-path-of-a-page-that-nobody-reads/\n", 12_000), want: []string{"robots-too-large"}},
		"noindex that is hidden":     {text: "User-agent: Googlebot\nDisallow: /about/\nUser-agent: *\nDisallow:\n", pages: map[string]string{"/about/": `<meta name="robots" content="noindex">`}, sitemap: []string{"/about/"}, want: []string{"noindex-hidden", "sitemap-disallowed", "sitemap-noindex"}},
		"noindex on the home page":   {pages: map[string]string{"/": "X-Robots-Tag: noindex\n\n" + home}, want: []string{"home-noindex"}},
		"noindex for one":            {pages: map[string]string{"/": "X-Robots-Tag: googlebot: noindex, nofollow\n\n" + home}, want: []string{"home-noindex"}},
		"noindex for another kind":   {pages: map[string]string{"/": "X-Robots-Tag: gptbot: noindex\n\n" + home}},
		"header against page":        {pages: map[string]string{"/": "X-Robots-Tag: nofollow\n\n" + `<meta name="robots" content="index, follow">`}, want: []string{"channels-disagree"}},
		"header and page agree":      {pages: map[string]string{"/": "X-Robots-Tag: nosnippet\n\n" + `<meta name="robots" content="index, follow">`}},
		"misspelled rule":            {pages: map[string]string{"/": `<meta name="robots" content="noidnex">`}, want: []string{"unknown-rule-"}},
		"meta in the body":           {pages: map[string]string{"/": `<body><meta name="robots" content="noindex">`}, want: []string{"meta-in-body"}},
		"mining reserved, training":  {pages: map[string]string{"/": "Tdm-Reservation: 1\nContent-Usage: train-ai=y\n\n" + home}, want: []string{"usage-disagrees"}},
		"signal against usage":       {pages: map[string]string{"/": "Content-Signal: ai-train=yes\nContent-Usage: train-ai=n\n\n" + home}, want: []string{"usage-disagrees"}},
		"signal like usage":          {pages: map[string]string{"/": "Content-Signal: ai-train=no, search=yes\nContent-Usage: train-ai=n\n\n" + home}},
		"mining reserved, signal":    {pages: map[string]string{"/": "Tdm-Reservation: 1\nContent-Signal: AI-train=yes\n\n" + home}, want: []string{"usage-disagrees"}},
		"signals, line and header":   {robots: "signals", pages: map[string]string{"/": "Content-Signal: ai-train=yes\n\n" + home}, want: []string{"robots-lighthouse-", "usage-disagrees"}},
		"sitemap with dead page":     {sitemap: []string{"/gone/"}, want: []string{"sitemap-error"}},
		"sitemap is a page":          {text: "Sitemap: {{site}}/about/\n", want: []string{"sitemap-unreadable"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &testSite{robots: tt.text, pages: map[string]string{"/": home, "/about/": home}, sitemap: tt.sitemap}
			if tt.robots != "" {
				s.robots = fixture(t, tt.robots)
			}
			for path, page := range tt.pages {
				s.pages[path] = page
			}
			r := s.audit(t, Options{})
			if got := codes(r); !slices.Equal(got, tt.want) {
				t.Errorf("found %q, want %q\n%s", got, tt.want, reportText(t, r))
			}
		})
	}
}

func reportText(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestRobotsResponses serves robots.txt in ways that crawlers misread.
func TestRobotsResponses(t *testing.T) {
	answer := func(status int, typ, body string) func(http.ResponseWriter, *http.Request, string) bool {
		return func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			w.Header().Set("Content-Type", typ)
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return true
		}
	}
	for name, tt := range map[string]struct {
		robotsAs func(http.ResponseWriter, *http.Request, string) bool
		want     []string
		pages    int
	}{
		"404":          {answer(404, "text/html", home), []string{"robots-missing-"}, 1},
		"401":          {answer(401, "text/plain", ""), []string{"robots-forbidden"}, 1},
		"429":          {answer(429, "text/plain", ""), []string{"robots-unreachable"}, 0},
		"500":          {answer(500, "text/plain", "User-agent: *\nAllow: /\n"), []string{"robots-unreachable"}, 0},
		"a page":       {answer(200, "text/plain", home), []string{"robots-html"}, 1},
		"type missing": {answer(200, "application/byte-stream", "User-agent: *\nDisallow: /x/\n"), []string{"robots-content-type"}, 1},
		"a day old": {func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Age", "100000")
			return true
		}, []string{"robots-stale"}, 1},
		"cached, then fresh": {func(w http.ResponseWriter, r *http.Request, _ string) bool {
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprintf(w, "User-agent: *\nDisallow: /%d/\n", len(r.URL.RawQuery))
			return true
		}, []string{"robots-stale"}, 1},
		"another host": {func(w http.ResponseWriter, r *http.Request, site string) bool {
			if host, port, _ := strings.Cut(r.Host, ":"); host == "127.0.0.1" {
				http.Redirect(w, r, "http://localhost:"+port+"/robots.txt", http.StatusMovedPermanently)
				return true
			}
			return false
		}, []string{"robots-redirect"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &testSite{robotsAs: tt.robotsAs, pages: map[string]string{"/": home}}
			o := Options{}
			if name == "another host" {
				o.Transport = http.DefaultTransport
			}
			r := s.audit(t, o)
			if got := codes(r); !slices.Equal(got, tt.want) || len(r.Pages) != tt.pages {
				t.Errorf("found %q and %d pages, want %q and %d\n%s", got, len(r.Pages), tt.want, tt.pages, reportText(t, r))
			}
		})
	}
}

// TestPolite checks the audit's promises. In robots.txt, the audit always obeys the group that names the audit, even
// when it sends the User-Agent of a crawler. It waits for the Crawl-delay. It sends the User-Agent of a crawler only if
// Options.As has this crawler.
func TestPolite(t *testing.T) {
	pages := map[string]string{"/": home, "/open/": home, "/closed/": home}
	sitemap := []string{"/open/", "/closed/"}
	t.Run("own name", func(t *testing.T) {
		s := &testSite{robots: "User-agent: caddy-robots-policy-audit\nCrawl-delay: 7\nDisallow: /closed/\n", pages: pages, sitemap: sitemap}
		s.audit(t, Options{})
		want := []string{"/robots.txt", "/robots.txt", "/sitemap.xml", "/", "/open/", "/llms.txt", "/agents.txt", "/.well-known/agent-permissions.json"}
		for i, path := range want {
			want[i] = OwnToken + " " + path
		}
		if !slices.Equal(s.asked, want) {
			t.Errorf("asked for %q, want %q", s.asked, want)
		}
		if len(s.waits) != len(s.asked)-1 || slices.Min(s.waits) != 7*time.Second {
			t.Errorf("waited %v", s.waits)
		}
	})
	t.Run("other names", func(t *testing.T) {
		s := &testSite{robots: "User-agent: *\nDisallow: /closed/\n", pages: pages, sitemap: sitemap}
		s.audit(t, Options{As: []string{"GPTBot", "googlebot"}})
		for _, name := range []string{"GPTBot", "Googlebot", "Chrome"} {
			for _, path := range []string{"/robots.txt", "/", "/open/"} {
				if !slices.Contains(s.asked, name+" "+path) {
					t.Errorf("no request of %s for %s: %q", name, path, s.asked)
				}
			}
		}
		if slices.ContainsFunc(s.asked, func(a string) bool { return strings.HasSuffix(a, "/closed/") }) {
			t.Errorf("robots.txt was not obeyed: %q", s.asked)
		}
		if slices.Min(s.waits) != time.Second || len(s.waits) != len(s.asked)-1 {
			t.Errorf("waited %v for %d requests", s.waits, len(s.asked))
		}
	})
	t.Run("names that must not be accepted", func(t *testing.T) {
		u := &url.URL{Scheme: "https", Host: "www.example.com"}
		for _, name := range []string{"Google-Extended", "NoSuchBot"} {
			if _, err := Run(t.Context(), u, Options{As: []string{name}}); err == nil {
				t.Errorf("%s was accepted", name)
			}
		}
	})
	t.Run("canceled", func(t *testing.T) {
		server := httptest.NewServer(&testSite{pages: pages})
		defer server.Close()
		u, _ := url.Parse(server.URL)
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Run(ctx, u, Options{Wait: func(context.Context, time.Duration) error { cancel(); return ctx.Err() }})
		if err == nil {
			t.Error("no error")
		}
	})
}

// TestPrivateAddresses checks that the audit connects to a private address only if the URL contains this address.
func TestPrivateAddresses(t *testing.T) {
	server := httptest.NewServer(&testSite{pages: map[string]string{"/": home}})
	defer server.Close()
	u, _ := url.Parse(server.URL)
	other := newFetcher(&url.URL{Scheme: "http", Host: "192.0.2.1"}, Options{})
	if r := other.get(t.Context(), u, browserAgent); r.err == nil || !strings.Contains(r.err.Error(), "not a public address") {
		t.Errorf("a redirect to a private address: %v %d", r.err, r.status)
	}
	if r := newFetcher(u, Options{}).get(t.Context(), u, browserAgent); r.err != nil {
		t.Errorf("an address that the URL names: %v", r.err)
	}
}

// TestMoved checks that the audit moves to another host if the page redirects there.
func TestMoved(t *testing.T) {
	s := &testSite{pages: map[string]string{"/": home}}
	target := httptest.NewServer(s)
	defer target.Close()
	from := httptest.NewServer(http.RedirectHandler(target.URL+"/", http.StatusMovedPermanently))
	defer from.Close()
	u, _ := url.Parse(from.URL)
	r, err := Run(t.Context(), u, Options{Wait: func(context.Context, time.Duration) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(codes(r), "other-host-") || !strings.HasPrefix(r.URL, target.URL) {
		t.Errorf("%q %s", codes(r), r.URL)
	}
}
