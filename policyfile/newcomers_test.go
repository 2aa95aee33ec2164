// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"strings"
	"testing"
)

// newcomers are policies in words, the rules that people write for them who have read the
// README only, and what is so of the file if it means that. Where it does not, a message
// has to say something from which the file follows that does.
var newcomers = []struct {
	words, rules string
	tests        []string
	says         string // "" if the first file means it
	then         string // the rules after following the message
}{
	{
		"Keep AI training out, let search engines in.",
		"  - for: category:ai-training\n    disallow: {crawl: /}\n",
		[]string{"GPTBot may not crawl /", "Googlebot may crawl /"}, "", "",
	},
	{
		"No AI at all.",
		"  - for: ai\n    disallow: {crawl: /}\n",
		[]string{"GPTBot may not crawl /"}, `(did you mean "category:ai-training"?)`,
		"  - for: category:ai-training\n    disallow: {crawl: /}\n",
	},
	{
		"No AI answers with our articles.",
		"  - for: everyone\n    disallow: {ai-answers: /}\n",
		[]string{"everyone may not ai-use /"}, `(did you mean "ai-use"?)`,
		"  - for: everyone\n    disallow: {ai-use: /}\n",
	},
	{
		"Block ChatGPT.",
		"  - for: ChatGPT\n    block: true\n",
		[]string{"GPTBot may not crawl /"}, "name those of its crawlers that you mean: GPTBot",
		"  - for: [GPTBot, ChatGPT-User]\n    disallow: {crawl: /}\n    enforce: block\n",
	},
	{
		"Nobody may crawl /admin/, except Google the help pages.",
		"  - for: everyone\n    disallow: {crawl: /admin/}\n  - for: Googlebot\n    allow: {crawl: /admin/help}\n",
		[]string{"Googlebot may crawl /admin/help", "Bingbot may not crawl /admin/help", "Googlebot may not crawl /admin/x"}, "", "",
	},
	{
		"The archive is closed to all but search engines.",
		"  - for: everyone\n    disallow: {crawl: /archive/}\n  - for: category:search\n    allow: {crawl: /}\n",
		[]string{"Googlebot may crawl /archive/"}, `To open it, add "/archive/" to this allow`,
		"  - for: everyone\n    disallow: {crawl: /archive/}\n  - for: category:search\n    allow: {crawl: [/, /archive/]}\n",
	},
	{
		"Only Google and Bing may come in.",
		"  - for: everyone\n    disallow: {crawl: /}\n  - for: [Googlebot, Bingbot]\n    allow: {crawl: /}\n",
		[]string{"Googlebot may crawl /", "DuckDuckBot may not crawl /", "GPTBot may not crawl /"}, "", "",
	},
	{
		"Drafts do not belong in search results.",
		"  - for: everyone\n    noindex: /drafts/\n",
		[]string{"everyone may not index /drafts/", "everyone may crawl /drafts/"}, `write "disallow: {index: /drafts/}"`,
		"  - for: everyone\n    disallow: {index: /drafts/}\n",
	},
	{
		"Keep drafts secret from search engines.",
		"  - for: everyone\n    disallow: {crawl: /drafts/, index: /drafts/}\n",
		[]string{"everyone may not index /drafts/", "everyone may crawl /drafts/"}, "delete crawl from that line to keep the pages out of search results",
		"  - for: everyone\n    disallow: {index: /drafts/}\n",
	},
	{
		"Keep staging out of search results.",
		"  - for: everyone\n    hosts: staging.example.com\n    disallow: {crawl: /}\n",
		[]string{"everyone may not index https://staging.example.com/"}, "to keep the host out of search results, disallow index and follow instead of crawl",
		"  - for: everyone\n    hosts: staging.example.com\n    disallow: {index: /, follow: /}\n",
	},
	{
		"Snippets of at most 50 characters.",
		"  - for: everyone\n    max-snippet: 50\n",
		nil, `write "robots-tag: max-snippet:50"`,
		"  - for: everyone\n    robots-tag: max-snippet:50\n",
	},
	{
		"No PDF files.",
		"  - for: everyone\n    disallow: {crawl: *.pdf}\n",
		[]string{"everyone may not crawl /a/b.pdf"}, `put quotes around it: "*.pdf"`,
		"  - for: everyone\n    disallow: {crawl: \"*.pdf\"}\n",
	},
	{
		"No search pages, and no sorted lists.",
		"  - for: everyone\n    disallow: {crawl: [/search?q=, /*?sort=]}\n",
		[]string{"everyone may not crawl /search?q=a", "everyone may not crawl /shop?sort=price"}, `put quotes around it: "/search?q="`,
		"  - for: everyone\n    disallow: {crawl: [\"/search?q=\", \"/*?sort=\"]}\n",
	},
	{
		"Images may not be used for training.",
		"  - for: everyone\n    disallow: {train-ai: \"*.jpg\"}\n",
		[]string{"GPTBot may not crawl /a.jpg"}, `add a rule "for: category:ai-training" that disallows "crawl: '/*.jpg'"`,
		"  - for: everyone\n    disallow: {train-ai: \"*.jpg\"}\n  - for: category:ai-training\n    disallow: {crawl: \"*.jpg\"}\n",
	},
	{
		"SEO crawlers get 403.",
		"  - for: seo\n    disallow: {crawl: /}\n    enforce: 403\n",
		[]string{"AhrefsBot may not crawl /"}, `(did you mean "category:seo"?)`,
		"  - for: category:seo\n    disallow: {crawl: /}\n    enforce: block\n",
	},
	{
		"SEO crawlers at most once a second.",
		"  - for: category:seo\n    rate-limit: 1/s\n",
		nil, `write "limit: 1/s"`,
		"  - for: category:seo\n    limit: 1/s\n",
	},
	{
		"Everyone must wait ten seconds.",
		"  - for: everyone\n    crawl-delay: 10s\n",
		nil, `(did you mean "10"?)`,
		"  - for: everyone\n    crawl-delay: 10\n",
	},
	{
		"The Internet Archive keeps no copies.",
		"  - for: archive.org\n    disallow: {crawl: /}\n",
		[]string{"archive.org_bot may not crawl /"}, `archive.org_bot`,
		"  - for: archive.org_bot\n    disallow: {crawl: /}\n",
	},
	{
		"Messengers show no previews.",
		"  - for: link-previews\n    disallow: {crawl: /}\n    intended: true\n",
		[]string{"facebookexternalhit may not crawl /"}, `(did you mean "category:preview"?)`,
		"  - for: category:preview\n    disallow: {crawl: /}\n    intended: true\n",
	},
	{
		"Close the whole site while it is rebuilt.",
		"  - for: everyone\n    disallow: /\n",
		[]string{"everyone may not crawl /"}, `(did you mean "{crawl: /}"?)`,
		"  - for: everyone\n    disallow: {crawl: /}\n    intended: true\n",
	},
	{
		"OpenAI may read the press pages only.",
		"  - for: OpenAI\n    allow: {crawl: /press/}\n    disallow: {crawl: /}\n",
		[]string{"GPTBot may crawl /press/", "GPTBot may not crawl /", "ChatGPT-User may not crawl /"}, `(did you mean "operator:OpenAI"?)`,
		"  - for: operator:OpenAI\n    allow: {crawl: /press/}\n    disallow: {crawl: /}\n    intended: true\n",
	},
	{
		"AI may not be trained with anything but the press pages.",
		"  - for: everyone\n    disallow: {train-ai: /}\n    allow: {train-ai: /press/}\n  - for: category:ai-training\n    disallow: {crawl: /}\n    allow: {crawl: /press/}\n",
		[]string{"everyone may train-ai /press/", "everyone may not train-ai /x", "CCBot may crawl /press/", "CCBot may not crawl /x"}, "", "",
	},
}

// TestNewcomers: none of the first files is silently wrong.
func TestNewcomers(t *testing.T) {
	t.Parallel()
	for _, c := range newcomers {
		t.Run(c.words, func(t *testing.T) {
			t.Parallel()
			load := func(rules string) (*File, string) {
				file := "version: 1\nrules:\n" + rules
				if len(c.tests) > 0 {
					file += "expect:\n  - " + strings.Join(c.tests, "\n  - ") + "\n"
				}
				f, ds := LoadWith("policy.yaml", []byte(file), Options{Now: testNow})
				said := ds.Text()
				if f == nil {
					// What is said of the file without the tests that the author has not written.
					_, ds = LoadWith("policy.yaml", []byte("version: 1\nrules:\n"+rules), Options{Now: testNow})
					said = ds.Text()
				}
				return f, said
			}
			f, said := load(c.rules)
			if c.says == "" {
				if f == nil {
					t.Errorf("does not mean it, and nothing is expected to say so:\n%s", said)
				}
				return
			}
			if !strings.Contains(said, c.says) {
				t.Errorf("nothing says %s:\n%s", c.says, said)
			}
			if f, said := load(c.then); f == nil {
				t.Errorf("what the message says does not mean it:\n%s", said)
			}
		})
	}
}
