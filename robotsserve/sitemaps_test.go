// SPDX-License-Identifier: Apache-2.0

package robotsserve_test

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// Each host has its own sitemaps. A host on which no crawler may find a page has none.
func TestSitemapsByHost(t *testing.T) {
	p := loadPolicy(t, `version: 1
sitemaps:
  www.example.com: [/sitemap.xml, https://cdn.example.net/www.xml]
  "*.example.com": /below.xml
  "*": /other.xml
rules:
  - {for: everyone, hosts: closed.example.com, disallow: {crawl: /}, intended: true}
  - {for: everyone, hosts: unindexed.example.com, disallow: {index: /}, intended: true}
  - {for: everyone, hosts: partly.example.com, disallow: {crawl: /}, allow: {crawl: /news/}, intended: true}
  - {for: everyone, hosts: engine.example.com, disallow: {crawl: /}, intended: true}
  - {for: Googlebot, hosts: engine.example.com, allow: {crawl: /}}
  - {for: everyone, hosts: apart.example.com, disallow: {crawl: /, index: /news/}, allow: {crawl: /news/}, intended: true}
`).Policy
	for host, want := range map[string]string{
		"www.example.com":       "http://www.example.com/sitemap.xml https://cdn.example.net/www.xml",
		"WWW.example.com:8080":  "http://www.example.com:8080/sitemap.xml https://cdn.example.net/www.xml",
		"blog.example.com":      "http://blog.example.com/below.xml",
		"example.org":           "http://example.org/other.xml",
		"closed.example.com":    "",
		"unindexed.example.com": "",
		"partly.example.com":    "http://partly.example.com/below.xml",
		"engine.example.com":    "http://engine.example.com/below.xml",
		"apart.example.com":     "",
	} {
		f, _ := robotsserve.Render(p, host, robotsserve.Options{Scheme: "http"})
		var found []string
		for line := range strings.Lines(string(f.Body)) {
			if s, ok := strings.CutPrefix(line, "Sitemap: "); ok {
				found = append(found, strings.TrimSpace(s))
			}
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
}
