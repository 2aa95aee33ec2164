// SPDX-License-Identifier: Apache-2.0

package site

import (
	"bytes"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// If neither search engines nor unlisted clients may find any page of a host, its robots.txt does not list sitemaps.
func TestSitemapsOfHiddenHosts(t *testing.T) {
	t.Parallel()
	for rules, want := range map[string]bool{
		`{for: everyone, disallow: {crawl: /admin/}}`:                                                       true,
		`{for: everyone, disallow: {crawl: /}, intended: true}`:                                             false,
		`{for: everyone, disallow: {index: /}, intended: true}`:                                             false,
		`{for: everyone, robots-tag: noindex, intended: true}`:                                              false,
		`{for: everyone, robots-tag: [{paths: /old/, rules: noindex}]}`:                                     true,
		`{for: everyone, disallow: {crawl: /}, intended: true}, {for: UptimeRobot, allow: {crawl: /}}`:      false,
		`{for: everyone, disallow: {crawl: /}, intended: true}, {for: Googlebot, allow: {crawl: /}}`:        true,
		`{for: everyone, disallow: {crawl: /}, intended: true}, {for: Googlebot, allow: {crawl: /news/}}`:   true,
		`{for: category:search, disallow: {crawl: /}, intended: true}`:                                      true, // unlisted clients may find pages
		`{for: everyone, disallow: {index: /}, intended: true}, {for: category:search, allow: {crawl: /}}`:  false,
		`{for: everyone, disallow: {index: /}, intended: true}, {for: category:search, allow: {index: /x}}`: true,
	} {
		s, ds := Load("policy.yaml", []byte("version: 1\nsitemaps: /sitemap.xml\nrules: ["+rules+"]\n"))
		if s == nil {
			t.Fatal(ds.Error())
		}
		f, _ := robotsserve.Render(s.Policy, "www.example.com", robotsserve.Options{})
		if got := bytes.Contains(f.Body, []byte("Sitemap: ")); got != want {
			t.Errorf("%s: a sitemap: %v, want %v\n%s", rules, got, want, f.Body)
		}
	}
}
