// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// bigSpec returns a policy with n patterns, one in ten with a wildcard. It has a rule for the given number of crawlers
// and a rule for everyone. The two rules differ only in the first entry, which is an allow entry in one rule and a
// disallow entry in the other.
func bigSpec(n, crawlers int, u policy.Usage) *policy.Spec {
	spec := &policy.Spec{Sitemaps: []policy.Sitemaps{{Addresses: []string{"/sitemap.xml"}}}}
	named := policy.Rule{Pos: policy.Pos{Line: 1, Column: 1}}
	for i := range crawlers {
		named.For = append(named.For, policy.Audience{Kind: policy.ForToken, Name: fmt.Sprintf("Crawler%d", i)})
	}
	everyone := policy.Rule{Pos: policy.Pos{Line: 2, Column: 1}, For: []policy.Audience{{}}}
	for i := range n {
		text := fmt.Sprintf("/s%d/t%d/", i%100, i)
		if i%10 == 9 {
			text = fmt.Sprintf("/s%d/*/p%d$", i%100, i)
		}
		s := policy.Statement{Usage: u, Allow: i%3 == 0, Pattern: pathpattern.MustParse(text), Pos: policy.Pos{Line: i, Column: 3}}
		named.Statements = append(named.Statements, s)
		s.Allow = s.Allow != (i == 0)
		everyone.Statements = append(everyone.Statements, s)
	}
	// A disallow entry for all paths makes the allow entries matter.
	for _, r := range []*policy.Rule{&named, &everyone} {
		r.Statements = append(r.Statements, policy.Statement{Usage: u, Pattern: pathpattern.All})
	}
	spec.Rules = []policy.Rule{named, everyone}
	return spec
}

func BenchmarkRender(b *testing.B) {
	for _, size := range []struct{ rules, crawlers int }{
		{10, 10}, {1000, 1}, {1000, 1000}, {2500, 1000}, {5000, 1000}, {10000, 1}, {10000, 1000},
	} {
		b.Run(fmt.Sprintf("rules=%d/crawlers=%d", size.rules, size.crawlers), func(b *testing.B) {
			p := compile(b, bigSpec(size.rules, size.crawlers, policy.Crawl))
			b.ReportAllocs()
			var f *File
			for b.Loop() {
				f, _ = Render(p, "www.example.com", Options{})
			}
			b.ReportMetric(float64(len(f.Body))/1024, "KiB")
		})
	}
}

func BenchmarkRenderACAP(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			spec := bigSpec(n, 10, policy.Index)
			spec.Publish.ACAP = policy.Auto
			p := compile(b, spec)
			b.ReportAllocs()
			var f *File
			for b.Loop() {
				f, _ = Render(p, "www.example.com", Options{})
			}
			b.ReportMetric(float64(len(f.Body))/1024, "KiB")
		})
	}
}

// discard is a client that discards the response.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

func BenchmarkServe(b *testing.B) {
	for _, n := range []int{10, 5000} {
		s := NewServer(compile(b, bigSpec(n, 10, policy.Crawl)), ServeOptions{})
		for _, ask := range []string{"identity", "gzip", "not modified"} {
			b.Run(fmt.Sprintf("rules=%d/%s", n, ask), func(b *testing.B) {
				r := httptest.NewRequest(http.MethodGet, "http://www.example.com/robots.txt", nil)
				w := &discard{http.Header{}}
				s.ServeHTTP(w, r)
				if ask == "not modified" {
					r.Header.Set("If-None-Match", w.header.Get("Etag"))
				} else {
					r.Header.Set("Accept-Encoding", ask)
				}
				b.ReportAllocs()
				for b.Loop() {
					clear(w.header)
					s.ServeHTTP(w, r)
				}
			})
		}
	}
}
