// SPDX-License-Identifier: Apache-2.0

package policyfile

import "testing"

// A policy that closes sections must not read as if everything were open, nor one that
// asks as if it blocked.
func TestClosedText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"nothing closed", "rules:\n  - for: everyone\n    allow: {crawl: /}\n", ""},
		{
			"sections", "rules:\n  - for: everyone\n    disallow: {crawl: [/premium/, /archive/]}\n",
			"  may not crawl:     /premium/, for everyone\n                     /archive/, for everyone\n  blocked:           nobody; robots.txt only asks crawlers to stay away. To answer 403, add \"enforce: block\" to a rule\n",
		},
		{
			"not indexed", "rules:\n  - for: everyone\n    disallow: {index: [/, /drafts/]}\n    intended: true\n",
			"  may not index:     /drafts/, for everyone\n",
		},
		{"to some", "rules:\n  - for: category:archive\n    disallow: {crawl: /x/}\n", "  may not crawl:     /x/, for archive (all 34)\n  blocked:           nobody; robots.txt only asks crawlers to stay away. To answer 403, add \"enforce: block\" to a rule\n"},
		{
			"to most", "rules:\n  - for: everyone\n    disallow: {crawl: /x/}\n  - for: GPTBot\n    allow: {crawl: /x/}\n",
			"  may not crawl:     /x/, for everyone except ai-training (1 of 30: GPTBot)\n  blocked:           nobody; robots.txt only asks crawlers to stay away. To answer 403, add \"enforce: block\" to a rule\n",
		},
		{
			"blocked", "rules:\n  - for: GPTBot\n    disallow: {crawl: /}\n    enforce: block\n",
			"  blocked:           known crawlers get 403 wherever they may not crawl\n",
		},
		{
			"blocked with 402", "enforcement: {mode: block, status: 402}\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n",
			"  blocked:           known crawlers get 402 wherever they may not crawl\n",
		},
		{
			"disconnected", "enforcement: {mode: block, action: close}\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n",
			"  blocked:           known crawlers are disconnected wherever they may not crawl\n",
		},
		{
			"some blocked", "rules:\n  - for: GPTBot\n    disallow: {crawl: /}\n    enforce: block\n  - for: CCBot\n    disallow: {crawl: /}\n",
			"  blocked:           known crawlers get 403 by the rule in line 3; the other rules are not enforced\n",
		},
		{
			"impostors", "enforcement: {impostors: block}\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n",
			"  blocked:           only impostors; robots.txt only asks crawlers to stay away. To answer 403, add \"enforce: block\" to a rule\n",
		},
		{
			"dry run", "enforcement: log\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n",
			"  blocked:           nobody yet; the log says which ones would be. To answer 403, change \"log\" to \"block\"\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, ds := Load("p.yaml", []byte("version: 1\n"+c.text))
			if f == nil {
				t.Fatal(ds.Text())
			}
			if got := f.ClosedText(testNow, 4); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
