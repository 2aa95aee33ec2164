// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// If a client names several crawlers, the strictest decision about any of them applies.
func TestEdgeOfSeveralCrawlers(t *testing.T) {
	s := load(t, `version: 1
rules:
  - for: GPTBot
    disallow:
      crawl: /premium/
    enforce: block
  - for: CCBot
    disallow:
      crawl: /premium/
    enforce: log
  - for: facebookexternalhit
    allow:
      crawl: /
  - for: Twitterbot
    disallow:
      crawl: /
    enforce: block
    intended: true
`)
	for _, c := range []struct {
		name  string
		lines []string
		token string
		mode  policy.Mode
	}{
		{"one", []string{"GPTBot/1.2"}, "GPTBot", policy.ModeBlock},
		{"the harmless one longer", []string{"GPTBot/1.2 Googlebot-Image/1.0"}, "GPTBot", policy.ModeBlock},
		{"the harmless one first", []string{"Googlebot-Image/1.0 GPTBot/1.2"}, "GPTBot", policy.ModeBlock},
		{"two lines", []string{"Googlebot-Image/1.0", "GPTBot/1.2"}, "GPTBot", policy.ModeBlock},
		{"the milder first", []string{"CCBot/2.0 (GPTBot)"}, "GPTBot", policy.ModeBlock},
		{"two that are harmless", []string{"Googlebot-Image/1.0 Googlebot/2.1"}, "Googlebot-Image", policy.ModeUnset},
		{"a phone's link preview is one client", []string{"Mozilla/5.0 (Macintosh) facebookexternalhit/1.1 Facebot Twitterbot/1.0"}, "Apple-Messages", policy.ModeUnset},
		{"behind a phone's link preview", []string{"facebookexternalhit/1.1 Facebot Twitterbot/1.0 GPTBot/1.2"}, "GPTBot", policy.ModeBlock},
		{"not quite a phone's link preview", []string{"facebookexternalhit/1.1 Twitterbot/1.0"}, "Twitterbot", policy.ModeBlock},
	} {
		t.Run(c.name, func(t *testing.T) {
			ids := s.RecognizeAll(nil, c.lines)
			if len(ids) == 0 {
				t.Fatal("not recognized")
			}
			var clients []site.Client
			for _, id := range ids {
				clients = append(clients, site.Client{Crawler: id})
			}
			at := site.NewTarget("example.com", "/premium/x")
			q, v := s.EdgeOfAll(&at, clients, policy.Query{Now: june})
			if got := s.Policy.CrawlerInfo(v.Crawler).Token; got != c.token || v.Mode != c.mode || q.Crawler != v.Crawler {
				t.Errorf("%s, mode %v; want %s, %v", got, v.Mode, c.token, c.mode)
			}
		})
	}
}

// recognize returns the crawler that a User-Agent names, or 0.
func recognize(s *site.Site, userAgent string) policy.CrawlerID {
	for _, id := range s.RecognizeAll(nil, []string{userAgent}) {
		return id
	}
	return 0
}
