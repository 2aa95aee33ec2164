// SPDX-License-Identifier: Apache-2.0

package policyfile

import "testing"

// silent lists files that must not get the message with the code. The field "near" has a similar file that gets the
// message.
var silent = []struct{ name, code, file, near string }{
	{"everyone-else is disallowed on another host", "only-disallowed", `
  - for: everyone-else
    hosts: staging.example.com
    disallow: {crawl: /}
    intended: true
  - for: GPTBot
    hosts: www.example.com
    disallow: {crawl: /x/}`, `
  - for: everyone-else
    disallow: {crawl: /}
    intended: true
  - for: GPTBot
    hosts: www.example.com
    disallow: {crawl: /x/}`},
	{"another rule lets the crawler in", "only-disallowed", `
  - for: everyone-else
    disallow: {crawl: /}
    intended: true
  - for: GPTBot
    disallow: {crawl: /x/}
  - for: gptbot
    allow: {crawl: /}`, `
  - for: everyone-else
    disallow: {crawl: /}
    intended: true
  - for: GPTBot
    disallow: {crawl: /x/}
  - for: ClaudeBot
    allow: {crawl: /}`},
	{"a whole site is disallowed for both", "only-disallowed", `
  - for: everyone-else
    allow: {crawl: /job/}
    disallow: {crawl: /}
    intended: true
  - for: GPTBot
    disallow: {crawl: /}`, `
  - for: everyone-else
    allow: {crawl: /job/}
    disallow: {crawl: /}
    intended: true
  - for: GPTBot
    disallow: {crawl: /job/}`},
	{"a crawler that follows another is in no such category", "changes-nothing", `
  - for: purpose:news
    disallow: {crawl: /a/}
  - for: AlphaBot
    disallow: {crawl: /a/}
crawlers:
  AlphaBot: {operator: Alpha, purposes: news}
  AlphaBot-Image: {operator: Alpha, follows: AlphaBot}`, `
  - for: purpose:news
    disallow: {crawl: /a/}
  - for: AlphaBot
    disallow: {crawl: /a/}
crawlers:
  AlphaBot: {operator: Alpha, purposes: news}
  AlphaBot-Image: {operator: Alpha, follows: AlphaBot, purposes: news}`},
	{"an allow entry that keeps a wider one's limit away", "changes-nothing", `
  - for: everyone
    allow: {present-snippet: [/a/, {paths: /, max-length: 100-chars}]}
  - for: GPTBot
    allow: {present-snippet: /a/b/}`, `
  - for: everyone
    allow: {present-snippet: /a/}
  - for: GPTBot
    allow: {present-snippet: /a/b/}`},
	{"an allow entry for a wider host", "tie", `
  - for: everyone-else
    hosts: [www.example.com, "*.example.com"]
    disallow: {crawl: /a/}
  - for: everyone-else
    hosts: "*.example.com"
    allow: {crawl: /a/}`, `
  - for: everyone-else
    hosts: [www.example.com, "*.example.com"]
    disallow: {crawl: /a/}
  - for: everyone-else
    hosts: ["*.example.com", www.example.com]
    allow: {crawl: /a/}`},
	{"an allow entry for fewer crawlers", "tie", `
  - for: [everyone, category:search]
    disallow: {crawl: /a/}
  - for: everyone
    allow: {crawl: /a/}`, `
  - for: [everyone, category:search]
    disallow: {crawl: /a/}
  - for: [category:search, everyone]
    allow: {crawl: /a/}`},
	{"a crawler that reads meta tags", "no-meta-tag", `
  - for: Googlebot
    disallow: {index: /drafts/}`, `
  - for: CCBot
    disallow: {index: /drafts/}`},
	{"a crawler whose meta tags the policy knows of", "no-meta-tag", `
  - for: CCBot
    disallow: {index: /drafts/}
crawlers: {CCBot: {reads-meta: true}}`, `
  - for: [CCBot, Googlebot]
    robots-tag: notranslate`},
	{"a crawler whose own control is a meta tag", "no-meta-tag", `
  - for: Amazonbot
    disallow: {train-ai: /, preserve: /}`, `
  - for: [CCBot, Amazonbot]
    disallow: {train-ai: /, preserve: /}`},
	{"nothing that pages say", "no-meta-tag", `
  - for: CCBot
    disallow: {crawl: /drafts/, train-ai: /}`, `
  - for: CCBot
    disallow: {crawl: /drafts/, preserve: /}`},
	{"images that training crawlers may not fetch", "training-may-crawl", `
  - for: everyone
    disallow: {train-ai: /images/}
  - for: category:ai-training
    disallow: {crawl: /images/}`, `
  - for: everyone
    disallow: {train-ai: /images/}
  - for: category:ai-training
    disallow: {crawl: /images/large/}`},
	{"images that training crawlers may fetch, says a test", "training-may-crawl", `
  - for: everyone
    disallow: {train-ai: /images/}
expect: ["category:ai-training may crawl /images/a.jpg"]`, `
  - for: everyone
    disallow: {train-ai: /images/}
expect: ["category:ai-training may crawl /a.jpg"]`},
	{"nobody may fetch it", "ai-may-crawl", `
  - for: everyone
    disallow: {ai-use: /drafts/, crawl: /drafts/}`, `
  - for: everyone
    disallow: {ai-use: [/drafts/, /news/], crawl: /drafts/}`},
	{"answers of a host", "ai-may-crawl", `
  - for: everyone
    hosts: www.example.com
    disallow: {ai-use: /}
  - for: [category:ai-input, category:ai-assistant]
    hosts: www.example.com
    disallow: {crawl: /}`, `
  - for: everyone
    hosts: www.example.com
    disallow: {ai-use: /}`},
	{"search engines with answers are asked", "dual-use-crawler", `
  - for: everyone
    disallow: {ai-use: /}
  - for: [category:ai-input, category:ai-assistant]
    disallow: {crawl: /}`, `
  - for: [category:ai-input, category:ai-assistant]
    disallow: {crawl: /}`},
	{"a limit is enforced", "nothing-to-enforce", `
  - for: category:seo
    limit: 60/m
enforcement: block`, `
  - for: category:seo
    disallow: {index: /x/}
enforcement: block`},
	{"a dry run of a limit", "nothing-to-enforce", `
  - for: category:seo
    limit: 60/m
enforcement: log`, `
  - for: category:seo
    disallow: {index: /x/}
enforcement: log`},
	{"two dots are those of an address", "looks-like-regexp", `
  - for: everyone
    disallow: {crawl: "/compare/*..*"}`, `
  - for: everyone
    disallow: {crawl: "/compare/.*"}`},
}

func TestSilent(t *testing.T) {
	t.Parallel()
	for _, s := range silent {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if d := problemOf(t, "version: 1\nrules:"+s.file+"\n", s.code); d != nil {
				t.Errorf("%s", d)
			}
			if problemOf(t, "version: 1\nrules:"+s.near+"\n", s.code) == nil {
				t.Errorf("nothing says %s", s.code)
			}
		})
	}
}
