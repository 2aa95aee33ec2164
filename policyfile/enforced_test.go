// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// For a policy that only asks crawlers to stay away, the text must not suggest that they are blocked.
func TestEnforcedText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"nothing disallowed", "rules:\n  - for: everyone\n    allow: {crawl: /}\n", ""},
		{"only asked", "rules:\n  - for: everyone\n    disallow: {crawl: /x/}\n", "no client; robots.txt only asks crawlers to stay away. To answer 403, add \"enforce: block\" to a rule"},
		{"not indexed", "rules:\n  - for: everyone\n    disallow: {index: /drafts/}\n", ""},
		{
			"blocked", "rules:\n  - for: GPTBot\n    disallow: {crawl: /}\n    enforce: block\n",
			"known crawlers get 403 wherever they may not crawl",
		},
		{
			"blocked with 402", "enforcement: {mode: block, status: 402}\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n",
			"known crawlers get 402 wherever they may not crawl",
		},
		{
			"disconnected", "enforcement: {mode: block, action: close}\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n",
			"known crawlers are disconnected wherever they may not crawl",
		},
		{
			"some blocked", "rules:\n  - for: GPTBot\n    disallow: {crawl: /}\n    enforce: block\n  - for: CCBot\n    disallow: {crawl: /}\n",
			"known crawlers get 403 because of the rule in line 3; the other rules are not enforced",
		},
		{
			"impostors", "enforcement: {impostors: block}\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n",
			"only impostors; robots.txt only asks crawlers to stay away. To answer 403, add \"enforce: block\" to a rule",
		},
		{
			"impostors too", "enforcement: {mode: block, impostors: block}\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n",
			"known crawlers get 403 wherever they may not crawl; impostors get 403 everywhere",
		},
		{
			"verified crawlers", "rules:\n  - for: GPTBot\n    identity: verified\n    disallow: {crawl: /}\n    enforce: block\n",
			"known crawlers with the required identity get 403 because of the rule in line 3",
		},
		{
			"dry run", "enforcement: log\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n",
			"no client yet; the log shows which clients would be blocked. To answer 403, change \"log\" to \"block\"",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, ds := Load("p.yaml", []byte("version: 1\n"+c.text))
			if f == nil {
				t.Fatal(ds.Text())
			}
			if got := f.EnforcedText(); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// The site's own robots.txt is never enforced.
func TestEnforcedTextOfMergedRobotsTxt(t *testing.T) {
	t.Parallel()
	below := robotstxt.Parse([]byte("User-agent: *\nDisallow: /theirs/\n"))
	f, ds := LoadWith("p.yaml", []byte("version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n    enforce: block\n"), Options{Below: below})
	if f == nil {
		t.Fatal(ds.Text())
	}
	if got, want := f.EnforcedText(), "known crawlers get 403 because of the rule in line 3; the site's own robots.txt is not enforced"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
