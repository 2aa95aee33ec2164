// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"strings"
	"testing"
	"time"
)

func TestLimitTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"  - for: everyone\n    limit: 60/m\n":                                                               "known crawlers, except search engines, to 60/m",
		"  - for: everyone\n    limit: 60/m\n    intended: [limits-search]\n":                                "known crawlers to 60/m",
		"  - for: [GPTBot, CCBot, AhrefsBot, DotBot, Bytespider]\n    hosts: [a.example]\n    limit: 60/m\n": "GPTBot, CCBot, AhrefsBot and 2 more on a.example to 60/m",
		"  - for: AhrefsBot\n    limit: 60/m\n    enforce: log\n":                                            "AhrefsBot to 60/m (in dry run)",
		"  - for: AhrefsBot\n    limit: 60/m\n    enforce: off\n":                                            "",
		"  - for: AhrefsBot\n    crawl-delay: 5\n":                                                           "",
		"  - for: AhrefsBot\n    crawl-delay: 5\n    enforce: block\n":                                       "AhrefsBot to one in 5s",
		"  - for: AhrefsBot\n    disallow: {crawl: /}\n    enforce: block\n":                                 "",
		"  - for: AhrefsBot\n    crawl-delay: 5\n    limit: 9/s\n    enforce: log\n":                         "AhrefsBot to 9/s (in dry run)\nAhrefsBot to one in 5s (in dry run)",
		"  - for: category:search\n    limit: 60/m\n":                                                        "",
		"  - for: [category:search, GPTBot]\n    limit: 60/m\n":                                              "GPTBot to 60/m",
		"  - for: operator:Ahrefs\n    hosts: [a.example, b.example]\n    limit: 5/m\n  - for: [AhrefsBot, AhrefsSiteAudit]\n    hosts: a.example\n    limit: none\n": "operator:Ahrefs on b.example to 5/m",
		"  - for: everyone\n    limit: 5/m\n    intended: [limits-search]\n  - for: Googlebot-Video\n    limit: none\n":                                               "known crawlers, except Googlebot-Video, to 5/m",
		"  - for: everyone-else\n    hosts: a.example\n    limit: 60/m\n":                                                                                             "other known crawlers, except search engines, on a.example to 60/m",
		"  - for: everyone\n    limit: 60/m\n  - for: everyone\n    limit: 30/m\n":                                                                                    "known crawlers, except search engines, to 30/m",
	} {
		if got := load(t, "version: 1\nrules:\n"+text).LimitTexts(time.Now()); strings.Join(got, "\n") != want {
			t.Errorf("%s says\n%s, want\n%s", text, got, want)
		}
	}
}
