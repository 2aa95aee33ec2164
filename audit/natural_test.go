// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// noWait replaces Sleep, so that tests do not wait.
func noWait(context.Context, time.Duration) error { return nil }

// An audit never requests a URL that robots.txt disallows, even after a redirect or on another host.
func TestRedirects(t *testing.T) {
	t.Parallel()
	var asked []string
	var other *httptest.Server
	serve := func(name, robots string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, name+r.URL.Path)
			switch r.URL.Path {
			case "/robots.txt":
				w.Header().Set("Content-Type", "text/plain")
				fmt.Fprint(w, strings.ReplaceAll(robots, "{{site}}", "http://"+r.Host))
			case "/sitemap.xml":
				fmt.Fprint(w, "<urlset>")
				for _, path := range []string{"/redir", "/two", "/away", "/away-open", "/away-down"} {
					fmt.Fprintf(w, "<url><loc>http://%s%s</loc></url>", r.Host, path)
				}
				fmt.Fprint(w, "</urlset>")
			case "/redir":
				http.Redirect(w, r, "/closed/x", http.StatusMovedPermanently)
			case "/two":
				http.Redirect(w, r, "/redir", http.StatusFound)
			case "/away":
				http.Redirect(w, r, other.URL+"/closed/y", http.StatusFound)
			case "/away-open":
				http.Redirect(w, r, other.URL+"/open", http.StatusFound)
			case "/away-down":
				http.Redirect(w, r, "http://127.0.0.1:1/x", http.StatusFound)
			default:
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, home)
			}
		}))
		t.Cleanup(s.Close)
		return s
	}
	first := serve("first", "User-agent: *\nDisallow: /closed/\nSitemap: {{site}}/sitemap.xml\n")
	other = serve("other", "User-agent: "+OwnToken+"\nDisallow: /closed/\nCrawl-delay: 9\n")
	u, _ := url.Parse(first.URL)
	longest := time.Duration(0)
	r, err := Run(t.Context(), u, Options{As: []string{"Googlebot"}, Pages: 9, Wait: func(_ context.Context, d time.Duration) error {
		longest = max(longest, d)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(asked, func(a string) bool { return strings.Contains(a, "/closed/") }); i >= 0 {
		t.Errorf("asked for %s: %q", asked[i], asked)
	}
	if a, b := slices.Index(asked, "other/robots.txt"), slices.Index(asked, "other/open"); a < 0 || b < a || longest != 9*time.Second {
		t.Errorf("robots.txt of the other host is not read first, or its Crawl-delay is not obeyed (%s): %q", longest, asked)
	}
	var closed []string
	for _, f := range r.Findings {
		if f.Code == "sitemap-disallowed" || f.Code == "not-audited" {
			closed = append(closed, f.Code+" "+strings.TrimPrefix(f.URL, first.URL))
		}
	}
	slices.Sort(closed)
	if want := []string{"not-audited /away", "not-audited /away-down", "not-audited /redir", "not-audited /two", "sitemap-disallowed /redir", "sitemap-disallowed /two"}; !slices.Equal(closed, want) {
		t.Errorf("found %q, want %q\n%s", closed, want, reportText(t, r))
	}
}

// If the home page redirects to another host, the audit first reads robots.txt there.
func TestMovedReadsRobotsFirst(t *testing.T) {
	t.Parallel()
	s := &testSite{robots: "User-agent: *\nDisallow: /\n", pages: map[string]string{"/": home}}
	to := httptest.NewServer(s)
	defer to.Close()
	from := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		http.Redirect(w, r, to.URL+"/", http.StatusFound)
	}))
	defer from.Close()
	u, _ := url.Parse(from.URL)
	r, err := Run(t.Context(), u, Options{Wait: noWait})
	if err != nil || !slices.Contains(codes(r), "not-audited-") || slices.Contains(s.asked, OwnToken+" /") {
		t.Errorf("%v, asked %q\n%s", err, s.asked, reportText(t, r))
	}
}

// cloak returns a site that adds a header field to its pages, but only for Googlebot.
func cloak(field string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site := "http://" + r.Host
		w.Header().Set("Vary", "User-Agent")
		switch r.URL.Path {
		case "/robots.txt":
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprintf(w, "User-agent: *\nDisallow:\nSitemap: %s/s.xml\n", site)
		case "/s.xml":
			fmt.Fprintf(w, "<urlset><url><loc>%s/p</loc></url></urlset>", site)
		case "/", "/p":
			w.Header().Set("Content-Type", "text/html")
			if strings.Contains(r.UserAgent(), "Googlebot") {
				name, value, _ := strings.Cut(field, ": ")
				w.Header().Set(name, value)
			}
			fmt.Fprint(w, home)
		default:
			http.NotFound(w, r)
		}
	})
}

// The audit also checks a header field that only one crawler receives.
func TestJudgesWhatACrawlerGets(t *testing.T) {
	t.Parallel()
	for field, want := range map[string][]string{
		"X-Robots-Tag: noindex":                                     {"home-noindex", "sitemap-noindex"},
		"X-Robots-Tag: googlebot: none":                             {"home-noindex", "sitemap-noindex"},
		"X-Robots-Tag: gptbot: noindex":                             nil,
		"X-Robots-Tag: unavailable_after: 25 Jun 2010 15:00:00 PST": {"home-noindex", "sitemap-noindex"},
		"Robots-Tag: googlebot;noindex":                             {"home-noindex", "sitemap-noindex"},
		"X-Nothing: x":                                              nil,
	} {
		s := httptest.NewServer(cloak(field))
		u, _ := url.Parse(s.URL)
		r, err := Run(t.Context(), u, Options{As: []string{"Googlebot"}, Wait: noWait})
		s.Close()
		if err != nil || !slices.Equal(codes(r), want) {
			t.Errorf("%s: %v, found %q, want %q\n%s", field, err, codes(r), want, reportText(t, r))
		}
		for _, f := range r.Findings {
			if f.Crawler != "Googlebot" {
				t.Errorf("%s: the finding %s is about %q", field, f.Code, f.Crawler)
			}
		}
	}
}

// The test audits pages with meta tags as people write them, such as a misspelled name. The value for each page lists
// the codes of the findings that the audit must report.
func TestNaturalPages(t *testing.T) {
	t.Parallel()
	for page, want := range map[string][]string{
		`<title>x</title><meta name="robot" content="noindex">`:                                                                      {"meta-misnamed"},
		`<title>x</title><meta name="robts" content="noindex">`:                                                                      {"meta-misnamed"},
		`<title>x</title><meta property="robots" content="noindex">`:                                                                 {"meta-misnamed"},
		`<title>x</title><meta http-equiv="X-Robots-Tag" content="noindex">`:                                                         {"meta-misnamed"},
		`<title>x</title><meta name="robot" content="R2-D2">`:                                                                        nil,
		`<title>x</title><meta name="robots" property="og:robots" content="max-snippet:9">`:                                          nil,
		`<title>x</title><p>Hello</p><meta name="robots" content="noindex">`:                                                         {"meta-in-body"},
		`Hello <meta name="googlebot" content="noindex">`:                                                                            {"meta-in-body"},
		`<head><script>if (1 < 2) "<p>"</script><noscript><style>x</style></noscript> <meta name="ROBOTS" content="NOINDEX"></head>`: {"home-noindex"},
		`<meta name="robots" content="unavailable_after: 2020-01-01">`:                                                               {"home-noindex"},
		`<meta name="robots" content="unavailable_after: Wednesday, 01-Jan-20 10:00:00 GMT, nofollow">`:                              {"home-noindex"},
		`<meta name="robots" content="unavailable_after: 2999-01-01">`:                                                               nil,
		`<meta name="robots" content="unavailable_after: soon">`:                                                                     nil,
		"\ufeff" + `<!doctype html><title>x</title><meta name="robots" content="noindex">`:                                           {"home-noindex"},
		`<template><p>x</p><meta name="robots" content="nofollow"></template><meta name="robots" content="noindex">`:                 {"home-noindex"},
		`<template><template></template><p></template><meta name="robot" content="noindex">`:                                         {"meta-misnamed"},
		`<svg><title>x</title></svg><meta name="description" content="noindex">`:                                                     nil,
	} {
		s := &testSite{pages: map[string]string{"/": page}}
		r := s.audit(t, Options{})
		if got := codes(r); !slices.Equal(got, want) {
			t.Errorf("%s: found %q, want %q", page, got, want)
		}
	}
}

// For each path that the policy disallows for indexing, the audit examines one page. If it does not find such a page,
// the report says so.
func TestSamples(t *testing.T) {
	t.Parallel()
	load := func(paths string) *site.Site {
		s, ds := site.Load("site.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    allow: {crawl: /}\n    disallow: {index: "+paths+"}\npublish: {acap: off}\n"))
		if s == nil {
			t.Fatal(ds)
		}
		return s
	}
	const noindex, lost = "X-Robots-Tag: noindex\nRobots-Tag: *;noindex\n\n" + `<meta name="robots" content="noindex">`, "\n\n" + home
	for _, c := range []struct {
		name, paths string
		pages       map[string]string
		sitemap     []string
		asked       string // a URL that must be among the requests
		want        []string
	}{
		{"linked from the home page", "/drafts/", map[string]string{"/": `<a href="/about">a</a><a href="drafts/1#x">b</a><a href="/drafts/2">c</a>`, "/drafts/1": lost}, nil, "/drafts/1", []string{"headers-lost", "meta-lost"}},
		{"as the policy says", "/drafts/", map[string]string{"/": `<a href="/drafts/1">`, "/drafts/1": noindex}, nil, "/drafts/1", nil},
		{"the first link is dead", "/drafts/", map[string]string{"/": `<a href="/drafts/0"><a href="/drafts/1">`, "/drafts/1": lost}, nil, "/drafts/1", []string{"headers-lost", "meta-lost"}},
		{"the path itself", "/drafts/", map[string]string{"/drafts/": lost}, nil, "/drafts/", []string{"headers-lost", "meta-lost"}},
		{"in the sitemap", "/drafts/", map[string]string{"/drafts/1": noindex}, []string{"/a", "/b", "/c", "/d", "/e", "/drafts/1"}, "/drafts/1", []string{"sitemap-error", "sitemap-noindex"}},
		{"by a wildcard", "/*.pdf$", map[string]string{"/": `<a href="/x.pdf">`, "/x.pdf": lost}, nil, "/x.pdf", []string{"headers-lost", "meta-lost"}},
		{"nowhere", "[/drafts/, /*.pdf$]", nil, nil, "", []string{"noindex-not-sampled-"}},
		{"one of two", "[/drafts/, /old/]", map[string]string{"/": `<a href="/old/1">`, "/old/1": noindex}, nil, "/old/1", []string{"noindex-not-sampled-"}},
		{"links to other hosts", "/drafts/", map[string]string{"/": `<a href="http://127.0.0.1:1/drafts/1">`}, nil, "", []string{"noindex-not-sampled-"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &testSite{robots: "User-agent: *\nDisallow:\n", pages: map[string]string{"/": home}, sitemap: c.sitemap}
			for path, page := range c.pages {
				s.pages[path] = page
			}
			r := s.audit(t, Options{Policy: load(c.paths)})
			if got := codes(r); !slices.Equal(got, c.want) || c.asked != "" && !slices.Contains(s.asked, OwnToken+" "+c.asked) {
				t.Errorf("found %q, want %q; asked %q\n%s", got, c.want, s.asked, reportText(t, r))
			}
		})
	}
}

// The policy can tell the server to remove restrictions, such as noindex, from the site's responses. If a response
// still has such a restriction, the audit reports it.
func TestNotLifted(t *testing.T) {
	t.Parallel()
	load := func(entry string) *site.Site {
		s, ds := site.Load("site.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    allow: {index: "+entry+"}\n    intended: true\npublish: {acap: off}\n"))
		if s == nil {
			t.Fatal(ds)
		}
		return s
	}
	for page, want := range map[string]bool{
		`<meta name="robots" content="noindex">`:                         true,
		"X-Robots-Tag: noindex\n\n" + home:                               true,
		"X-Robots-Tag: nofollow\n\n<meta name=robots content=nosnippet>": false,
	} {
		for entry, lifts := range map[string]bool{"/": false, "{paths: /, over-site: true}": true} {
			s := &testSite{robots: "User-agent: *\nDisallow:\n", pages: map[string]string{"/": page}}
			r := s.audit(t, Options{Policy: load(entry)})
			if got := slices.Contains(codes(r), "not-lifted"); got != (want && lifts) {
				t.Errorf("%s with %s: %q", page, entry, codes(r))
			}
		}
	}
}

// If the policy has many paths, the audit examines only some of them, and the report says so.
func TestSamplesAreBounded(t *testing.T) {
	t.Parallel()
	paths := make([]string, 3*maxSampled)
	s := &testSite{robots: "User-agent: *\nDisallow:\n", pages: map[string]string{"/": home}}
	for i := range paths {
		paths[i] = fmt.Sprintf("/drafts-%02d/", i)
		s.pages[paths[i]] = "X-Robots-Tag: noindex\nRobots-Tag: *;noindex\n\n" + `<meta name="robots" content="noindex">`
	}
	policy, ds := site.Load("site.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    disallow: {index: ["+strings.Join(paths, ", ")+"]}\npublish: {acap: off}\n"))
	if policy == nil {
		t.Fatal(ds)
	}
	r := s.audit(t, Options{Policy: policy})
	asked := 0
	for _, a := range s.asked {
		if strings.Contains(a, "/drafts-") {
			asked++
		}
	}
	if asked != maxSampled || !slices.Contains(codes(r), "noindex-not-sampled-") {
		t.Errorf("%d of %d paths were looked at, want %d\n%s", asked, len(paths), maxSampled, reportText(t, r))
	}
}

// A page has many links below a path that robots.txt disallows for the audit. Checking these links does not use up the
// work limit for robots.txt.
func TestSamplesClosedToTheAudit(t *testing.T) {
	t.Parallel()
	s := &testSite{robots: "User-agent: *\nDisallow: /drafts/\n", pages: map[string]string{}}
	for i := range 2 * maxLinks {
		s.robots += fmt.Sprintf("Disallow: /old/%d/\n", i)
		s.pages["/"] += fmt.Sprintf(`<a href="/drafts/%d">x</a>`, i)
	}
	policy, ds := site.Load("site.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    disallow: {index: [/drafts/, '/*/']}\npublish: {acap: off}\n"))
	if policy == nil {
		t.Fatal(ds)
	}
	if r := s.audit(t, Options{Policy: policy, Merged: true}); !slices.Contains(codes(r), "noindex-not-sampled-") {
		t.Errorf("found %q", codes(r))
	}
}

// The audit's parser and package robotsrule read typical lists of rules in the same way.
func TestReadersAgree(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	for _, list := range []string{
		"noindex", "NOINDEX, NoFollow", "none", "noindex,nofollow,noarchive", "max-snippet:20, max-snippet: 10", "max-snippet:-1, max-snippet:50", "max-snippet:0",
		"max-image-preview:large, max-image-preview:none", "max-video-preview:-1", "nosnippet, max-snippet:20", "nocache, noarchive", "unavailable_after: 2030-01-01T00:00:00Z, noindex",
		"unavailable_after: Wednesday, 03-Jul-30 15:00:00 GMT, nofollow", "unavailable_after: 25 Jun 2030 15:00:00 PST", "noindex, indexifembedded", "notranslate", "noimageindex,noai", " , noindex,, ",
	} {
		own, module := parseRules(list, now), robotsrule.Parse(list)
		again := parseRules(module.String(), now)
		if more, less := again.beyond(own), own.beyond(again); len(more)+len(less) > 0 {
			t.Errorf("%s: package robotsrule reads %s, the audit reads %s", list, module, own)
		}
	}
}

func FuzzRules(f *testing.F) {
	f.Add("noindex, unavailable_after: Wednesday, 03-Jul-30 15:00:00 GMT, max-snippet:7", `<a href="/x"><meta name="robot" content="none">`)
	f.Fuzz(func(t *testing.T, list, page string) {
		r := parseRules(list, time.Now())
		if again := parseRules(r.String(), time.Now()); len(r.union(r).beyond(r)) > 0 || r.has("noindex") != again.has("noindex") {
			t.Errorf("%q: %v, again %v", list, r, again)
		}
		h := http.Header{"X-Robots-Tag": {list}, "Robots-Tag": {list}}
		xRobotsTag(h, time.Now())
		robotsTag(h, time.Now())
		for _, u := range readDocument([]byte(page), nil).linksOf(&url.URL{Scheme: "http", Host: "h"}) {
			if u.Host != "h" {
				t.Errorf("%q: %s", page, u)
			}
		}
	})
}
