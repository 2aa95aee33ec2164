// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// words are words that people know from robots.txt, meta tags or other tools. Each entry has the word and its place in
// a policy file, the line that the message must suggest, and a test that defines the meaning of the word.
var words = []struct{ place, word, line, test string }{
	// The categories of Cloudflare's verified bots, and common names of groups.
	{"for", "AI", "category:ai", "GPTBot may not crawl /"},
	{"for", "AI Crawler", "category:ai", "GPTBot may not crawl /"},
	{"for", "ai-bots", "category:ai", "PerplexityBot may not crawl /"},
	{"for", "training", "category:ai-training", "CCBot may not crawl /"},
	{"for", "AI Assistant", "category:ai-assistant", "ChatGPT-User may not crawl /"},
	{"for", "AI Search", "category:ai-input", "category:ai-input may not crawl /"},
	{"for", "ai-answers", "category:ai-input", "category:ai-input may not crawl /"},
	{"for", "Search Engine Crawler", "category:search", "Bingbot may not crawl /"},
	{"for", "search-engines", "category:search", "Bingbot may not crawl /"},
	{"for", "Search Engine Optimization", "category:seo", "AhrefsBot may not crawl /"},
	{"for", "seo-bots", "category:seo", "AhrefsBot may not crawl /"},
	{"for", "Page Preview", "category:preview", "facebookexternalhit may not crawl /"},
	{"for", "link-preview", "category:preview", "facebookexternalhit may not crawl /"},
	{"for", "social-media", "category:preview", "facebookexternalhit may not crawl /"},
	{"for", "Archiver", "category:archive", "archive.org_bot may not crawl /"},
	{"for", "Academic Research", "category:academic", ""},
	{"for", `"Advertising & Marketing"`, "category:ads", ""},
	{"for", `"Monitoring & Analytics"`, "category:monitoring", ""},
	{"for", "Feed Fetcher", "category:feed", ""},
	{"for", "bad-bots", "[category:ai-training, category:seo]", "GPTBot may not crawl /"},
	{"for", "scrapers", "[category:ai-training, category:seo]", "AhrefsBot may not crawl /"},
	{"for", "all", "everyone", "everyone may not crawl /"},
	{"for", "others", "everyone-else", "Googlebot may not crawl /"},
	{"for", "google", "Googlebot", "Googlebot may not crawl /"},
	{"for", "openai", "operator:OpenAI", "GPTBot may not crawl /"},
	{"for", "chatgpt", "GPTBot", "GPTBot may not crawl /"},
	{"for", "archive.org", "archive.org_bot", "archive.org_bot may not crawl /"},
	{"for", "wayback-machine", "archive.org_bot", "archive.org_bot may not crawl /"},
	{"for", "images", "Googlebot-Image", "Googlebot-Image may not crawl /"},
	{"for", "grok", "xAI-Bot", "xAI-Bot may not crawl /"},
	{"for", "category:ai-search", "category:ai-input", "category:ai-input may not crawl /"},
	{"for", "category:social", "category:preview", "facebookexternalhit may not crawl /"},
	{"for", "category:archive.org", "archive.org_bot", "archive.org_bot may not crawl /"},
	{"for", "*", `"*"`, "everyone may not crawl /"},

	// Content-Signal, AIPREF, robots meta tags, TDMRep and folklore, as usages.
	{"usage", "ai-train: /", "train-ai: /", "everyone may not train-ai /"},
	{"usage", "ai-input: /", "ai-use: /", "everyone may not ai-use /"},
	{"usage", "ai-answers: /", "ai-use: /", "everyone may not ai-use /"},
	{"usage", "ai-search: /", "ai-use: /", "everyone may not ai-use /"},
	{"usage", "genai: /", "train-ai: /", "everyone may not train-ai /"},
	{"usage", "noai: /", "train-ai: /", "everyone may not train-ai /"},
	{"usage", "text-and-data-mining: /", "train-ai: /", "everyone may not train-ai /"},
	{"usage", "noindex: /x/", "index: /x/", "everyone may not index /x/"},
	{"usage", "nofollow: /x/", "follow: /x/", "everyone may not follow /x/"},
	{"usage", "noarchive: /x/", "preserve: /x/", "everyone may not preserve /x/"},
	{"usage", "nosnippet: /x/", "present-snippet: /x/", "everyone may not present-snippet /x/"},
	{"usage", "thumbnails: /x/", "present-thumbnail: /x/", "everyone may not present-thumbnail /x/"},
	{"usage", "block: /x/", "crawl: /x/", "everyone may not crawl /x/"},
	{"usage", "scrape: /x/", "crawl: /x/", "everyone may not crawl /x/"},
	{"usage", "max-snippet: 50", "robots-tag: max-snippet:50", ""},
	{"usage", "noimageindex: /", "robots-tag: noimageindex", ""},
	{"usage", "images: /", `disallow: {crawl: ["*.jpg", "*.png", "*.webp"]}`, "everyone may not crawl /a/b.jpg"},
	{"usage", "crawl: *.jpg", `crawl: "*.jpg"`, "everyone may not crawl /a/b.jpg"},
	{"usage", "crawl: .jpg", `crawl: /*.jpg`, "everyone may not crawl /a/b.jpg"},
	{"usage", "crawl: all", "crawl: /", "everyone may not crawl /"},
	{"usage", "crawl: https://www.example.com/x/", "crawl: /x/", "everyone may not crawl /x/"},

	// Words above and other words, as keys of a rule: from Nuxt, Yoast, nginx, Apache, WAFs and robots.txt.
	{"rule", "noindex: /x/", "disallow: {index: /x/}", "everyone may not index /x/"},
	{"rule", "noindex: true", "disallow: {index: /}", "everyone may not index /"},
	{"rule", "robots: noindex", "disallow: {index: /}", "everyone may not index /"},
	{"rule", "ai-train: false", "disallow: {train-ai: /}", "everyone may not train-ai /"},
	{"rule", "ai-train: true", "allow: {train-ai: /}", "everyone may train-ai /"},
	{"rule", "deny: /x/", "disallow: {crawl: /x/}", "everyone may not crawl /x/"},
	{"rule", "block: [/a/, '*.pdf']", "disallow: {crawl: [/a/, '*.pdf']}", "everyone may not crawl /b.pdf"},
	{"rule", "path: /x/", "disallow: {crawl: /x/}", "everyone may not crawl /x/"},
	{"rule", "max-snippet: 50", "robots-tag: max-snippet:50", ""},
	{"rule", "max-image-preview: large", "robots-tag: max-image-preview:large", ""},
	{"rule", "max-video-preview: -1", "robots-tag: max-video-preview:-1", ""},
	{"rule", "unavailable_after: 2027-01-31", "allow: {index: {paths: /, time-limit: until-2027-01-31}}", ""},
	{"rule", "contentSignal: ai-train=no", "disallow: {train-ai: /}", "everyone may not train-ai /"},
	{"rule", "Content-Usage: train-ai=n", "disallow: {train-ai: /}", "everyone may not train-ai /"},
	{"rule", "rate-limit: 60/m", "limit: 60/m", ""},
	{"rule", "Request-rate: 1/5", "limit: 60/m", ""},
	{"rule", "crawl-delay: 5s", "crawl-delay: 5", ""},
	{"rule", "comment: ours", "name: ours", ""},
	{"rule", "sitemap: /sitemap.xml", "sitemaps: /sitemap.xml", ""},
	{"rule", "status: 404", "enforcement: {status: 404}", ""},
	{"rule", "content-signal: on", "publish: {content-signal: on}", ""},
	{"blocked", "block: true", "enforce: block", ""},
	{"blocked", "action: block", "enforce: block", ""},
	{"blocked", "enforce: 403", "enforce: block", ""},
	{"only", "disallow: /x/", "disallow: {crawl: /x/}", "everyone may not crawl /x/"},

	// Words that are keys of the file, outside the rules.
	{"file", "user-agent: GPTBot", "rules: [{for: GPTBot, disallow: {crawl: /}}]", "GPTBot may not crawl /"},
	{"file", "user-agent: [GPTBot, CCBot]", "rules: [{for: [GPTBot, CCBot], disallow: {crawl: /}}]", "CCBot may not crawl /"},
	{"file", "block: [GPTBot, CCBot]", "rules: [{for: [GPTBot, CCBot], disallow: {crawl: /}, enforce: block}]", "CCBot may not crawl /"},
	{"file", "disallow: [GPTBot]", "rules: [{for: [GPTBot], disallow: {crawl: /}, enforce: block}]", "GPTBot may not crawl /"},
	{"file", "disallow: /x/", "rules: [{for: everyone, disallow: {crawl: /x/}}]", "everyone may not crawl /x/"},
	{"file", "noindex: /x/", "rules: [{for: everyone, disallow: {index: /x/}}]", "everyone may not index /x/"},
	{"file", "crawl-delay: 5", "rules: [{for: everyone, crawl-delay: 5}]", ""},
	{"file", "blockAiBots: true", "rules: [{for: category:ai, disallow: {crawl: /}, enforce: block}]", "GPTBot may not crawl /"},
	{"file", "enforce: block", "enforcement: block", ""},
	{"file", "sitemap: /sitemap.xml", "sitemaps: /sitemap.xml", ""},
	{"file", "contact: rights@example.com", "rights: {contact: 'mailto:rights@example.com'}", ""},
	{"rights", "contact: rights@example.com", "contact: mailto:rights@example.com", ""},
	{"for", "unknown", "everyone-else", "GPTBot may not crawl /"},
	{"for", "Google News", "Googlebot-News", "Googlebot-News may not crawl /"},
	{"rule", "until: 2027-01-31", "allow: {index: {paths: /, time-limit: until-2027-01-31}}", ""},
	{"rule", "verified: true", "identity: verified", ""},
	{"blocked", "log: true", "enforce: log", ""},
	{"rule", "rate-limit: 10 requests per second", "limit: 10/s", ""},
	{"rule", "limit: 100/minute", "limit: 100/m", ""},
	{"rule", "except: /x/", "allow: {crawl: /x/}", "everyone may crawl /x/"},
	{"rule", "crawl: false", "disallow: {crawl: /}", "everyone may not crawl /"},
	{"rule", "robots-tag: {/x/: notranslate}", "robots-tag: [{paths: /x/, rules: notranslate}]", ""},
	{"only", "disallow: all", "disallow: {crawl: /}", "everyone may not crawl /"},
	{"only", "disallow: [train-ai, ai-answers]", "disallow: {train-ai: /, ai-use: /}", "everyone may not ai-use /"},
	{"file", "default: deny", "rules: [{for: everyone-else, disallow: {crawl: /}}]", "Googlebot may not crawl /"},
	{"file", "allow: [Googlebot, Bingbot]", "rules: [{for: [Googlebot, Bingbot], allow: {crawl: /}}]", "Googlebot may crawl /"},
	{"file", "disallow: [/x/, /y/]", "rules: [{for: everyone, disallow: {crawl: [/x/, /y/]}}]", "everyone may not crawl /y/"},
	{"usage", "crawl: [/search?q=, /x/]", `crawl: ["/search?q=", /x/]`, "everyone may not crawl /search?q=1"},
	{"usage", "crawl: [*.jpg, /x/]", `crawl: ["*.jpg", /x/]`, "everyone may not crawl /a.jpg"},
	{"file", "tdmrep: on", "publish: {tdmrep: on}", ""},
	{"file", "tests: [everyone may crawl /]", "expect: [everyone may crawl /]", ""},
}

// TestWords checks that the message about each word suggests the line. A file with this line loads, and has the meaning
// of the word.
func TestWords(t *testing.T) {
	t.Parallel()
	if len(words) < 60 {
		t.Errorf("only %d words", len(words))
	}
	for _, w := range words {
		t.Run(w.place+" "+w.word, func(t *testing.T) {
			t.Parallel()
			wrong, _ := fileWith(w.place, w.word)
			_, ds := Load("policy.yaml", []byte(wrong))
			said := ""
			for _, d := range ds {
				said += d.String() + "\n"
			}
			key, value, _ := strings.Cut(w.line, ": ")
			_, quoted, _ := strings.Cut(value, `"`) // the list value that needs quotation marks
			quoted, _, _ = strings.Cut(quoted, `"`)
			if !strings.Contains(said, w.line) && !strings.Contains(said, `"`+value+`"?`) && !strings.Contains(said, `{`+w.line+`}"?`) &&
				!strings.Contains(said, `(did you mean "`+key+`"?)`) && (quoted == "" || !strings.Contains(said, `put quotes around it: "`+quoted+`"`)) {
				t.Fatalf("no %q in\n%s", w.line, said)
			}
			right, ok := fileWith(w.place, w.line)
			if !ok {
				t.Fatalf("no place for %s", w.line)
			}
			if w.test != "" {
				right += "expect:\n  - " + w.test + "\n"
			}
			if f, ds := Load("policy.yaml", []byte(right)); f == nil || strings.Contains(ds.Text(), "did you mean") {
				t.Errorf("%s\n%s", ds.Text(), right)
			}
		})
	}
}

// TestWordsThatSayTheOpposite loads files with unknown words that remove a restriction or allow something, such as
// "noindex: false". The message about such a word must not suggest a line that disallows something.
func TestWordsThatSayTheOpposite(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"rule", "noindex: false"},
		{"rule", "block: no"},
		{"rule", "content-signal: ai-train=yes"},
		{"rule", "content-usage: train-ai=y"},
		{"file", "blockAiBots: false"},
		{"rule", "log: false"},
		{"rule", "verified: no"},
		{"rule", "until: tomorrow"},
		{"rule", "allow: noindex"},
		{"rule", "allow: {block: /x/}"},
		{"rule", "allow: {noindex: /x/}"},
	} {
		file, _ := fileWith(c[0], c[1])
		f, ds := Load("policy.yaml", []byte(file))
		for _, line := range []string{"disallow: {index", "allow: {index", "enforce: block", "enforce: log", "identity: verified", "until-", "index: /}", "disallow: {train-ai", `did you mean "crawl"`, `did you mean "index"`} {
			if f != nil || strings.Contains(ds.Text(), line) {
				t.Errorf("%s: %s", c[1], ds.Text())
			}
		}
	}
}

// TestWordsWithoutALine has words that no line of a policy file can express. The message says so. It does not suggest a
// line with another meaning, or a line that cannot be loaded.
func TestWordsWithoutALine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ place, word, says, lacks string }{
		{"blocked", "until: 2027-01-01", endless, "allow:"},
		{"blocked", "expires: 2027-01-01", endless, "allow:"},
		{"blocked", "until: tomorrow", endless, "must be "},
		{"rule", "until: 2027-01-01\n    limit: 60/m", endless, "allow:"},
		{"rule", "until: 2027-01-01\n    robots-tag: notranslate", endless, "allow:"},
		{"rule", "until: 2027-01-01\n    allow: {index: /, crawl: /}", endless, "time-limit"},
		{"rule", "until: 2027-01-01\n    allow: {index: /}", "allow: {index: {paths: /, time-limit: until-2027-01-01}}", endless},
		{"usage", "until: 2027-01-01", endless, "allow:"},
		{"usage", "expires: 2027-01-01\n      crawl: /", endless, "allow:"},
		{"file", "until: 2027-01-01", endless, "allow:"},

		{"rule", "limit: 9999999 per second", "invalid limit", "did you mean"},
		{"rule", "limit: 1000000/s", "invalid limit", "did you mean"},
		{"rule", "limit: 999999 per second", `did you mean "999999/s"`, "must have up to"},
		{"rule", "rate-limit: 9999999 per second", `"limit: 60/m"`, "9999999/s"},

		{"blocked", "except: [Googlebot, /a/]", apart, "for: ["},
		{"blocked", "except: [/a/, Googlebot]", apart, "for: ["},
		{"blocked", "unless: {crawl: /a/}", apart, "for: ["},
		{"rule", "block: [GPTBot, /a/]", apart, "enforce: block"},
		{"rule", "path: [GPTBot, /a/]", apart, "crawl: /}"},
		{"file", "allow: [/a/, Bingbot]", apart, "for: ["},
		{"file", "disallow: [Bingbot, /a/]", apart, "for: ["},
		{"file", "user-agent: [GPTBot, /a/]", apart, "for: ["},
		{"file", "block: [GPTBot, /a/]", apart, "for: ["},
		{"file", "sitemap: [/sitemap.xml, sitemap2.xml]", "sitemap", apart},
	} {
		file, _ := fileWith(c.place, c.word)
		f, ds := Load("policy.yaml", []byte(file))
		if said := ds.Text(); f != nil || !strings.Contains(said, c.says) || strings.Contains(said, c.lacks) {
			t.Errorf("%s %s: want %q and not %q\n%s", c.place, c.word, c.says, c.lacks, said)
		}
	}
}

// fileWith returns a policy file that contains a line at the given place. If the line begins with a key that belongs in
// another place, fileWith puts the line in that place instead.
func fileWith(place, line string) (file string, ok bool) {
	const rule = "version: 1\nrules:\n  - for: everyone\n    intended: [disallows-search, site-not-indexed]\n"
	key, _, _ := strings.Cut(line, ":")
	switch {
	case place == "file" || fileFields.index(&yaml.Node{Kind: yaml.ScalarNode, Value: key}) >= 0:
		return "version: 1\n" + line + "\n", true
	case place == "rights":
		return "version: 1\nrights:\n  " + line + "\n", true
	case place == "for":
		return "version: 1\nrules:\n  - for: " + line + "\n    disallow: {crawl: /}\n    intended: true\n", true
	case place == "usage" && ruleFields.index(&yaml.Node{Kind: yaml.ScalarNode, Value: key}) < 0:
		return rule + "    disallow:\n      " + line + "\n", true
	case place == "blocked":
		return "version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n    " + line + "\n", true
	}
	return rule + "    " + line + "\n", true
}

// Authors also write "refuse" and similar words for "block".
func TestOtherWordsForBlock(t *testing.T) {
	for _, word := range []string{"refuse", "deny", "reject"} {
		_, ds := Load("p.yaml", []byte("version: 1\nenforcement: "+word+"\n"))
		if !strings.Contains(ds.Text(), `did you mean "block"?`) {
			t.Errorf("%s: %s", word, ds.Text())
		}
	}
}
