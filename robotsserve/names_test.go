// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// A User-agent line contains a product token (RFC 9309 section 2.2.1), a name that an operator documents for
// robots.txt, or a name that the policy's author wrote.
func TestNamesThatAreNoTokens(t *testing.T) {
	crawlers := []policy.Crawler{
		{Token: "Centro Ads.txt Crawler", Category: "seo", NoToken: true},
		{Token: "Screaming Frog SEO Spider", Category: "seo"},
		{Token: "MJ12bot", Category: "seo"},
		{Token: "PlainBot", Category: "search"},
	}
	for _, c := range []struct {
		name  string
		rules []policy.Rule
		want  string
	}{
		{
			"by category",
			[]policy.Rule{crawlRule(1, "category:seo", false, "/")},
			"User-agent: *\nDisallow:\n\nUser-agent: Screaming Frog SEO Spider\nUser-agent: MJ12bot\nDisallow: /\n",
		},
		{
			"by name",
			[]policy.Rule{crawlRule(1, "Centro Ads.txt Crawler", false, "/")},
			"User-agent: *\nDisallow:\n\nUser-agent: Centro Ads.txt Crawler\nDisallow: /\n",
		},
		{
			"a group that says what that of everyone says",
			[]policy.Rule{crawlRule(1, "everyone", false, "/a/"), crawlRule(5, "category:search", true, "/"), crawlRule(9, "PlainBot", false, "/a/")},
			"User-agent: *\nDisallow: /a/\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := render(t, compile(t, &policy.Spec{Crawlers: crawlers, Rules: c.rules}), "")
			if string(f.Body) != c.want {
				t.Errorf("%s\nwant\n%s", f.Body, c.want)
			}
		})
	}
}
