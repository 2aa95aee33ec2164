// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// repeated repeats a line until the result has at least size bytes. The parameter format is the line with %d for a
// number, which is 0, 1, 2 and so on.
func repeated(size int, format string) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// hostileRobots returns robots.txt files of up to 512 KB that are expensive to read. The keys of the map name the lines
// that each file repeats.
func hostileRobots() map[string]string {
	agents, rules := repeated(250_000, "User-agent: a%d\n"), repeated(250_000, "Disallow: /p%d/\n")
	return map[string]string{
		"agents times rules":     agents + "User-agent: *\nUser-agent: " + OwnToken + "\n" + rules + "Allow: /\n",
		"agents times usages":    agents + "User-agent: *\n" + repeated(250_000, "Content-Usage: /%d train-ai=n\n"),
		"agents times delays":    agents + "User-agent: *\n" + repeated(250_000, "Crawl-delay: %d\n"),
		"one agent, many groups": repeated(500_000, "User-agent: Googlebot\nDisallow: /%d\n"),
		"wildcards":              "User-agent: *\n" + repeated(500_000, "Disallow: /*%d*a*b\n"),
		"wildcards that run":     "User-agent: *\n" + repeated(500_000, "Disallow: /*a*a*a*a*a*a*a*a*%d\n"),
		"long rules":             "User-agent: *\n" + repeated(500_000, "Disallow: /"+strings.Repeat("a", 8000)+"%d\n"),
		"short lines":            repeated(500_000, "a\n"),
		"unknown lines":          repeated(500_000, "a:b\n"),
		"sitemaps":               repeated(500_000, "Sitemap: https://x.example/%d\n"),
	}
}

// answers is a site: it maps paths to bodies.
type answers map[string]string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body, ok := a[r.URL.Path]
	if !ok {
		body = "<!doctype html><title>A page</title>"
	}
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

// Auditing a site takes little memory and time, whatever robots.txt the site has. If the file has too many rules to
// evaluate, the audit reports an error, and never that the site is fine.
func TestAuditBudget(t *testing.T) {
	testkit.Nightly(t)
	base, err := url.Parse("https://www.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	sitemap := "<urlset>" + repeated(900_000, "<url><loc>https://www.example.com/"+strings.Repeat("a", 800)+"%d</loc></url>") + "</urlset>"
	s, diagnostics := site.Load("policy.yaml", []byte("version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n"+
		"  - for: everyone\n    disallow:\n      crawl:\n"+repeated(50_000, "        - /x%d/*/y\n")))
	if s == nil {
		t.Fatal(diagnostics)
	}
	for name, robots := range hostileRobots() {
		t.Run(name, func(t *testing.T) {
			for _, p := range []*site.Site{nil, s} {
				testkit.Budget(t, func() {
					r, err := Run(t.Context(), base, Options{
						Policy: p, Transport: answers{"/robots.txt": robots, "/sitemap.xml": sitemap},
						Wait: func(context.Context, time.Duration) error { return nil },
					})
					t.Log(err)
					if err == nil && p != nil && r.Errors() == 0 {
						t.Error("no error for a robots.txt that differs from the policy's")
					}
				})
			}
		})
	}
}
