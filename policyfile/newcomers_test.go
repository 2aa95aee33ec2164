// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"strings"
	"testing"
)

// newcomers are goals in plain words, with the rules that people write if they have read only the README. The tests
// define the goal exactly. If the rules do not achieve the goal, a message must say what to write instead.
var newcomers = []struct {
	words, rules string
	tests        []string
	says         string // a part of the message; "" if the rules already have the meaning of the words
	then         string // the rules after the author has followed the message
}{
	{
		"Keep AI training out, let search engines in.",
		"  - for: category:ai-training\n    disallow: {crawl: /}\n",
		[]string{"GPTBot may not crawl /", "Googlebot may crawl /"},
		"", "",
	},
	{
		"No AI at all.",
		"  - for: ai\n    disallow: {crawl: /}\n",
		[]string{"GPTBot may not crawl /", "PerplexityBot may not crawl /", "ChatGPT-User may not crawl /", "Googlebot may crawl /"},
		`(did you mean "category:ai"?)`,
		"  - for: category:ai\n    disallow: {crawl: /}\n",
	},
	{
		"No AI answers with our articles.",
		"  - for: everyone\n    disallow: {ai-answers: /}\n",
		[]string{"everyone may not ai-use /"},
		`(did you mean "ai-use"?)`,
		"  - for: everyone\n    disallow: {ai-use: /}\n",
	},
	{
		"Block ChatGPT.",
		"  - for: ChatGPT\n    block: true\n",
		[]string{"GPTBot may not crawl /"},
		"name the crawlers that you mean: GPTBot",
		"  - for: [GPTBot, ChatGPT-User]\n    disallow: {crawl: /}\n    enforce: block\n",
	},
	{
		"Nobody may crawl /admin/, except Google the help pages.",
		"  - for: everyone\n    disallow: {crawl: /admin/}\n  - for: Googlebot\n    allow: {crawl: /admin/help}\n",
		[]string{"Googlebot may crawl /admin/help", "Bingbot may not crawl /admin/help", "Googlebot may not crawl /admin/x"},
		"", "",
	},
	{
		"The archive is disallowed for all but search engines.",
		"  - for: everyone\n    disallow: {crawl: /archive/}\n  - for: category:search\n    allow: {crawl: /}\n",
		[]string{"Googlebot may crawl /archive/"},
		`To allow it, add "/archive/" to this allow`,
		"  - for: everyone\n    disallow: {crawl: /archive/}\n  - for: category:search\n    allow: {crawl: [/, /archive/]}\n",
	},
	{
		"Only Google and Bing may come in.",
		"  - for: everyone\n    disallow: {crawl: /}\n  - for: [Googlebot, Bingbot]\n    allow: {crawl: /}\n",
		[]string{"Googlebot may crawl /", "DuckDuckBot may not crawl /", "GPTBot may not crawl /"},
		"", "",
	},
	{
		"Drafts do not belong in search results.",
		"  - for: everyone\n    noindex: /drafts/\n",
		[]string{"everyone may not index /drafts/", "everyone may crawl /drafts/"},
		`write "disallow: {index: /drafts/}"`,
		"  - for: everyone\n    disallow: {index: /drafts/}\n",
	},
	{
		"Keep drafts secret from search engines.",
		"  - for: everyone\n    disallow: {crawl: /drafts/, index: /drafts/}\n",
		[]string{"everyone may not index /drafts/", "everyone may crawl /drafts/"},
		"delete the entry for crawl to keep the pages out of search results",
		"  - for: everyone\n    disallow: {index: /drafts/}\n",
	},
	{
		"Keep staging out of search results.",
		"  - for: everyone\n    hosts: staging.example.com\n    disallow: {crawl: /}\n",
		[]string{"everyone may not index https://staging.example.com/"},
		"to keep the host out of search results, disallow index and follow instead of crawl",
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
		[]string{"everyone may not crawl /a/b.pdf"},
		`put quotes around it: "*.pdf"`,
		"  - for: everyone\n    disallow: {crawl: \"*.pdf\"}\n",
	},
	{
		"No search pages, and no sorted lists.",
		"  - for: everyone\n    disallow: {crawl: [/search?q=, /*?sort=]}\n",
		[]string{"everyone may not crawl /search?q=a", "everyone may not crawl /shop?sort=price"},
		`put quotes around it: "/search?q="`,
		"  - for: everyone\n    disallow: {crawl: [\"/search?q=\", \"/*?sort=\"]}\n",
	},
	{
		"Images may not be used for training.",
		"  - for: everyone\n    disallow: {train-ai: \"*.jpg\"}\n",
		[]string{"GPTBot may not crawl /a.jpg"},
		`add a rule "for: category:ai-training" that disallows "crawl: '/*.jpg'"`,
		"  - for: everyone\n    disallow: {train-ai: \"*.jpg\"}\n  - for: category:ai-training\n    disallow: {crawl: \"*.jpg\"}\n",
	},
	{
		"SEO crawlers get 403.",
		"  - for: seo\n    disallow: {crawl: /}\n    enforce: 403\n",
		[]string{"AhrefsBot may not crawl /"},
		`(did you mean "category:seo"?)`,
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
		[]string{"archive.org_bot may not crawl /"},
		`archive.org_bot`,
		"  - for: archive.org_bot\n    disallow: {crawl: /}\n",
	},
	{
		"Messengers show no previews.",
		"  - for: link-previews\n    disallow: {crawl: /}\n    intended: true\n",
		[]string{"facebookexternalhit may not crawl /"},
		`(did you mean "category:preview"?)`,
		"  - for: category:preview\n    disallow: {crawl: /}\n    intended: true\n",
	},
	{
		"Close the whole site while it is rebuilt.",
		"  - for: everyone\n    disallow: /\n",
		[]string{"everyone may not crawl /"},
		`(did you mean "{crawl: /}"?)`,
		"  - for: everyone\n    disallow: {crawl: /}\n    intended: true\n",
	},
	{
		"OpenAI may read the press pages only.",
		"  - for: OpenAI\n    allow: {crawl: /press/}\n    disallow: {crawl: /}\n",
		[]string{"GPTBot may crawl /press/", "GPTBot may not crawl /", "ChatGPT-User may not crawl /"},
		`(did you mean "operator:OpenAI"?)`,
		"  - for: operator:OpenAI\n    allow: {crawl: /press/}\n    disallow: {crawl: /}\n    intended: true\n",
	},
	{
		"AI may not be trained with anything but the press pages.",
		"  - for: everyone\n    disallow: {train-ai: /}\n    allow: {train-ai: /press/}\n  - for: category:ai-training\n    disallow: {crawl: /}\n    allow: {crawl: /press/}\n",
		[]string{"everyone may train-ai /press/", "everyone may not train-ai /x", "CCBot may crawl /press/", "CCBot may not crawl /x"},
		"", "",
	},
	{
		"AI companies are to pay.",
		"  - for: category:ai-training\n    disallow: {crawl: /}\n    status: 402\n",
		[]string{"GPTBot may not crawl /"},
		`write "enforcement: {status: 402}" outside the rules`,
		"  - for: category:ai-training\n    disallow: {crawl: /}\n    enforce: block\nenforcement: {status: 402}\n",
	},
	{
		"Nobody keeps copies of the pages for subscribers.",
		"  - for: everyone\n    disallow: {cache: /premium/}\n",
		[]string{"everyone may not preserve /premium/"},
		`(did you mean "preserve"?)`,
		"  - for: everyone\n    disallow: {preserve: /premium/}\n",
	},
	{
		"The Internet Archive may keep all but the pages of members.",
		"  - for: Internet Archive\n    disallow: {preserve: /members/}\n",
		[]string{"archive.org_bot may not preserve /members/", "archive.org_bot may preserve /"},
		`(did you mean "operator:Internet Archive"?)`,
		"  - for: operator:Internet Archive\n    disallow: {preserve: /members/}\n",
	},
	{
		"AI may read the blog, and nothing else.",
		"  - for: [category:ai-training, category:ai-input]\n    allow: {crawl: /blog/}\n",
		[]string{"GPTBot may crawl /blog/", "GPTBot may not crawl /x"},
		`add "disallow: {crawl: /}" to this rule`,
		"  - for: [category:ai-training, category:ai-input]\n    allow: {crawl: /blog/}\n    disallow: {crawl: /}\n",
	},
	{
		"Nobody but Google may read the archive.",
		"  - for: everyone\n    disallow: {crawl: /archive/}\n    except: Googlebot\n",
		[]string{"Bingbot may not crawl /archive/", "Googlebot may crawl /archive/"},
		`write "{for: Googlebot, allow: {crawl: /}}" under "rules", with the disallowed path instead of /`,
		"  - for: everyone\n    disallow: {crawl: /archive/}\n  - {for: Googlebot, allow: {crawl: /archive/}}\n",
	},
	{
		"All but Google stay out.",
		"  - for: [everyone, \"!Googlebot\"]\n    disallow: {crawl: /}\n",
		[]string{"Bingbot may not crawl /", "Googlebot may crawl /"},
		`write "{for: Googlebot, allow: {crawl: /}}" under "rules"`,
		"  - for: everyone\n    disallow: {crawl: /}\n    intended: true\n  - {for: Googlebot, allow: {crawl: /}}\n",
	},
	{
		"Crawlers that nobody knows stay out.",
		"  - for: unknown\n    disallow: {crawl: /}\n",
		[]string{"SomeBot may not crawl /", "Googlebot may crawl /"},
		`(did you mean "everyone-else"?)`,
		"  - for: everyone-else\n    disallow: {crawl: /}\n    intended: true\n  - for: Googlebot\n    allow: {crawl: /}\ncrawlers: {SomeBot: {}}\n",
	},
	{
		"The real Google may read the archive, and nobody else.",
		"  - for: everyone\n    disallow: {crawl: /archive/}\n  - for: Googlebot\n    verified: true\n    allow: {crawl: /archive/}\n",
		[]string{"verified Googlebot may crawl /archive/", "unverified Googlebot may not crawl /archive/"},
		`write "identity: verified"`,
		"  - for: everyone\n    disallow: {crawl: /archive/}\n  - for: Googlebot\n    identity: verified\n    allow: {crawl: /archive/}\n",
	},
	{
		"AI crawlers make at most 100 requests a minute.",
		"  - for: [GPTBot, ClaudeBot]\n    limit: 100 per minute\n",
		nil, `(did you mean "100/m"?)`,
		"  - for: [GPTBot, ClaudeBot]\n    limit: 100/m\n",
	},
	{
		"Events are not listed after January.",
		"  - for: everyone\n    until: 2027-01-31\n",
		nil, `write "allow: {index: {paths: /, time-limit: until-2027-01-31}}"`,
		"  - for: everyone\n    allow: {index: {paths: /events/, time-limit: until-2027-01-31}}\n",
	},
	{
		"ChatGPT may search, and not train.",
		"  - for: OAI-SearchBot\n    allow: /\n  - for: GPTBot\n    disallow: /\n",
		[]string{"OAI-SearchBot may crawl /", "GPTBot may not crawl /"},
		`(did you mean "{crawl: /}"?)`,
		"  - for: OAI-SearchBot\n    allow: {crawl: /}\n  - for: GPTBot\n    disallow: {crawl: /}\n",
	},
	{
		"Google's image search shows nothing.",
		"  - for: Google Images\n    disallow: {crawl: /}\n    intended: true\n",
		[]string{"Googlebot-Image may not crawl /", "Googlebot may crawl /"},
		`Googlebot-Image`,
		"  - for: Googlebot-Image\n    disallow: {crawl: /}\n    intended: true\n",
	},
	{
		"No pictures.",
		"  - for: everyone\n    disallow: {crawl: \"/*.{jpg,png}\"}\n",
		[]string{"everyone may not crawl /a/b.png"},
		"write a line for each alternative",
		"  - for: everyone\n    disallow: {crawl: [\"/*.jpg\", \"/*.png\"]}\n",
	},
	{
		"WordPress, as in its robots.txt.",
		"  - for: everyone\n    disallow: [/wp-admin/]\n    allow: [/wp-admin/admin-ajax.php]\n",
		[]string{"everyone may not crawl /wp-admin/", "everyone may crawl /wp-admin/admin-ajax.php"},
		`(did you mean "{crawl: [/wp-admin/]}"?)`,
		"  - for: everyone\n    disallow: {crawl: [/wp-admin/]}\n    allow: {crawl: [/wp-admin/admin-ajax.php]}\n",
	},
	{
		"No training, and no answers.",
		"  - for: everyone\n    disallow: [training, ai-use]\n",
		[]string{"everyone may not train-ai /", "everyone may not ai-use /"},
		`(did you mean "{train-ai: /, ai-use: /}"?)`,
		"  - for: everyone\n    disallow: {train-ai: /, ai-use: /}\n",
	},
	{
		"Drafts are not listed, by a header.",
		"  - for: everyone\n    robots-tag: {/drafts/: noindex}\n",
		nil, `write "robots-tag: [{paths: /drafts/, rules: noindex}]"`,
		"  - for: everyone\n    robots-tag: [{paths: /drafts/, rules: noindex}]\n",
	},
	{
		"The interface is for nobody.",
		"  - for: everyone\n    host: api.example.com\n    disallow: {crawl: /}\n",
		[]string{"everyone may not crawl https://api.example.com/", "everyone may crawl https://www.example.com/"},
		`(did you mean "hosts"?)`,
		"  - for: everyone\n    hosts: api.example.com\n    disallow: {crawl: /}\n",
	},
	{
		"GPTBot may not come, and I want to see it in the log first.",
		"  - for: GPTBot\n    crawl: false\n    log: true\n",
		[]string{"GPTBot may not crawl /"},
		`write "enforce: log"`,
		"  - for: GPTBot\n    disallow: {crawl: /}\n    enforce: log\n",
	},
	{
		"Only products are listed.",
		"  - for: everyone\n    disallow: {index: /}\n    allow: {index: /products/}\n",
		[]string{"everyone may index /products/x", "everyone may not index /x"},
		"", "",
	},
	{
		"Pages with a query stay out.",
		"  - for: everyone\n    disallow: {crawl: \"?\"}\n",
		[]string{"everyone may not crawl /x?y", "everyone may crawl /x"},
		`(did you mean "/*?"?)`,
		"  - for: everyone\n    disallow: {crawl: \"/*?\"}\n",
	},
	{
		"GPTBot is kept out, and a test says so.",
		"  - for: GPTBot\n    disallow: {crawl: /}\nexpect:\n  - GPTBot cannot crawl /\n",
		nil, `(did you mean "GPTBot may not crawl /"?)`,
		"  - for: GPTBot\n    disallow: {crawl: /}\nexpect:\n  - GPTBot may not crawl /\n",
	},
}

// TestNewcomers checks that a first policy file is either right or gets a message.
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
					// Load the rules without the tests, because a newcomer does not write tests, and the messages must
					// not depend on them.
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
