// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// Each crawler obeys only the channels that it reads. So if a channel that it reads is switched off, it must also
// request the pages that only this channel disallowed.
func TestEachChannelIsObeyed(t *testing.T) {
	testkit.Nightly(t)
	staging := scene{policy: "policies/staging.yaml", host: "staging.example.com"}
	newspaper := scene{policy: "policies/newspaper.yaml"}
	type switched struct {
		of    scene
		block string
		path  string // a path that robots.txt disallows, or that is linked only from pages with nofollow
		asked bool
	}
	off := switched{newspaper, "robots_txt off", "/admin/", true}
	for name, cases := range map[string][]switched{
		// Crawlers that read robots meta tags, but not X-Robots-Tag.
		"wget":          {off, {staging, "headers off", "/news/", false}, {staging, "meta off", "/news/", true}},
		"simplecrawler": {off, {staging, "headers off", "/news/", false}, {staging, "meta off", "/news/", true}},
		// A crawler that reads robots meta tags and X-Robots-Tag.
		"broken-link-checker": {
			off,
			{staging, "headers off", "/news/", false},
			{staging, "meta off", "/news/", false},
			{staging, "meta off\nheaders robots-tag content-usage", "/news/", true},
		},
		// Crawlers that read only robots.txt.
		"Scrapy":             {off, {staging, "", "/news/", true}},
		"urllib.robotparser": {off, {staging, "", "/news/", true}},
		"LWP::RobotUA":       {off, {staging, "", "/news/", true}},
	} {
		t.Run(name, func(t *testing.T) {
			by := &crawlers[slices.IndexFunc(crawlers, func(by crawler) bool { return by.name == name })]
			find(t, by)
			var scenes []scene
			for _, c := range cases {
				c.of.block = c.block
				scenes = append(scenes, c.of)
			}
			all, stop := visits(t, by, scenes)
			var jobs []job
			for _, v := range all {
				jobs = append(jobs, v.job())
			}
			by.crawl(t, jobs)
			stop()
			for i, c := range cases {
				log := all[i].site.read(t)
				if asked := slices.ContainsFunc(log, func(e entry) bool { return e.path == c.path }); asked != c.asked || len(log) == 0 {
					t.Errorf("%s with %q: %s was requested: %v, want %v; the log: %v", c.of, strings.ReplaceAll(c.block, "\n", "; "), c.path, asked, c.asked, log)
				}
			}
		})
	}
}
