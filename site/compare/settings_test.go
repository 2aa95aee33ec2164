// SPDX-License-Identifier: Apache-2.0

package compare_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// If two policies make the same decisions, but differ in a setting of the server, the comparison reports the setting.
func TestSettings(t *testing.T) {
	t.Parallel()
	const closed = "rules:\n  - for: everyone\n    disallow: {crawl: /admin/, train-ai: /}\n    limit: 60/m\n"
	for _, c := range []struct {
		name, old, new string
		want           []string
	}{
		{"the mode of a limit", closed + "enforcement: log\n", closed + "enforcement: block\n", []string{"enforcement.mode: log → block"}},
		{"a mode on its own or with others", closed + "enforcement: log\n", closed + "enforcement: {mode: log, status: 403}\n", nil},
		{"a waived check", closed, closed + "    intended: [site-not-indexed]\n", []string{"rules[everyone].intended: none → site-not-indexed"}},
		{"impostors", closed, closed + "enforcement: {impostors: block}\n", []string{"enforcement.impostors: none → block"}},
		{"the status", closed, closed + "enforcement: {status: 410}\n", []string{"enforcement.status: none → 410"}},
		{"a preference that is published", closed + "publish: {content-usage: off}\n", closed, []string{"publish.content-usage: off → none"}},
		{"a license", closed + "publish: {license: https://a.example/l}\n", closed + "publish: {license: https://b.example/l}\n", []string{"publish.license: https://a.example/l → https://b.example/l"}},
		{"a policy for text mining", closed + "rights: {tdm-policy: https://a.example/p, terms: https://a.example/t}\n", closed + "rights: {terms: https://a.example/t}\n", []string{"rights.tdm-policy: https://a.example/p → none"}},
		{"the user-agent of a blocked crawler", "crawlers:\n  Own: {user-agent: OwnOne}\n" + closed, "crawlers:\n  Own: {user-agent: OwnTwo}\n" + closed, []string{"crawlers.Own.user-agents: OwnOne → OwnTwo"}},
		{"one sitemap more", "sitemaps: [/a.xml]\n" + closed, "sitemaps: [/a.xml, /b.xml]\n" + closed, []string{"sitemaps: none → /b.xml"}},
		{"sitemaps in another order", "sitemaps: [/a.xml, /b.xml]\n" + closed, "sitemaps: [/b.xml, /a.xml]\n" + closed, []string{"sitemaps: /a.xml, /b.xml → /b.xml, /a.xml"}},
		{"rules of another order", closed + "  - for: GPTBot\n    disallow: {crawl: /a/}\n", "rules:\n  - for: GPTBot\n    disallow: {crawl: /a/}\n" + strings.TrimPrefix(closed, "rules:\n"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			old, now := load(t, c.old), load(t, c.new)
			d := compare.Sites(old, now, compare.Options{})
			var got []string
			for _, s := range d.Settings {
				got = append(got, s.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("settings %q, want %q", got, c.want)
			}
			var text strings.Builder
			if err := d.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			if says := text.String() == "Nothing changes.\n" || strings.HasPrefix(text.String(), "All decisions and settings remain the same"); says != (c.want == nil) {
				t.Errorf("the difference is described as %q", text.String())
			}
			if len(d.Changes) == 0 && c.want != nil && !strings.HasPrefix(text.String(), "No decision changes; these settings do:\n  "+c.want[0]+"\n") {
				t.Errorf("the first line of %q", text.String())
			}
			if d.Empty() != (c.want == nil) || len(d.Settings) != len(c.want) || !d.Complete {
				t.Errorf("same effect %v with %v", d.Empty(), d.Settings)
			}
		})
	}
}

// examples maps each key of a policy file to two policies with different values of the key. The difference must have an
// effect on the server.
var examples = map[string][2]string{
	"version":   {}, // only one value is valid
	"catalog":   {"rules: RULES\n", "catalog: 2026-01-01\nrules: RULES\n"},
	"sitemaps":  {"sitemaps: /a.xml\n", "sitemaps: {www.example.com: /a.xml}\n"},
	"resources": {"resources: {set: /a/}\nrules: [{for: everyone, disallow: {crawl: [set, /c/]}}]\n", "resources: {set: /b/}\nrules: [{for: everyone, disallow: {crawl: [set, /c/]}}]\n"},
	"expect":    {"rules: RULES\n", "rules: RULES\nexpect: Googlebot may crawl /\n"},

	"usages":                         {"usages: {fair: {usage: present-snippet, max-length: 50-chars}}\nrules: [{for: everyone, allow: {fair: /}}]\n", "usages: {few: {usage: present-snippet, max-length: 50-chars}}\nrules: [{for: everyone, allow: {few: /}}]\n"},
	"usages.usage":                   ofUsage("present-snippet, time-limit: 5-days", "present-link, time-limit: 5-days"),
	"usages.max-length":              ofUsage("present-snippet, max-length: 50-chars", "present-snippet, max-length: 60-chars"),
	"usages.time-limit":              ofUsage("index, time-limit: 5-days", "index, time-limit: 6-days"),
	"usages.must-use-resource":       ofUsage("index, must-use-resource: /a", "index, must-use-resource: /b"),
	"usages.must-include-resource":   ofUsage("present, must-include-resource: /a", "present, must-include-resource: /b"),
	"usages.prohibited-context":      ofUsage("present-original, time-limit: 5-days", "present-original, time-limit: 5-days, prohibited-context: within-user-frame"),
	"usages.required-context":        ofUsage("present-original, time-limit: 5-days", "present-original, time-limit: 5-days, required-context: within-original-frame"),
	"usages.prohibited-modification": ofUsage("present, prohibited-modification: format", "present, prohibited-modification: style"),

	"crawlers":                     {"rules: RULES\n", "crawlers: {Own: {}}\nrules: RULES\n"},
	"crawlers.user-agent":          ofCrawler("user-agent: Aaaa", "user-agent: Bbbb"),
	"crawlers.category":            ofCrawler("category: seo", "category: search"),
	"crawlers.results":             ofCrawler("category: search, results: web", "category: search, results: ai"),
	"crawlers.operator":            ofCrawler("operator: A", "operator: B"),
	"crawlers.follows":             ofCrawler("follows: Googlebot", "follows: Bingbot"),
	"crawlers.ignores-star":        ofCrawler("ignores-star: true", "ignores-star: false"),
	"crawlers.reads-meta":          ofCrawler("reads-meta: true", "reads-meta: false"),
	"crawlers.purposes":            ofCrawler("purposes: ai", "purposes: search"),
	"crawlers.robots-only":         ofCrawler("robots-only: true", "robots-only: false"),
	"crawlers.address-lists":       ofCrawler("address-lists: https://a.example/a.json", "address-lists: https://a.example/b.json"),
	"crawlers.reverse-dns":         ofCrawler("reverse-dns: .a.example.com", "reverse-dns: .b.example.com"),
	"crawlers.signature-directory": ofCrawler("signature-directory: https://a.example", "signature-directory: https://b.example"),
	"crawlers.intended":            ofCrawler("category: seo", "category: seo, intended: [blocks-search]"),

	"rules":                               ofRule("disallow: {crawl: /a/}", "disallow: {crawl: /b/}"),
	"rules.name":                          ofRule("disallow: {crawl: /a/}", "disallow: {crawl: /a/}, name: x"),
	"rules.for":                           {"rules: [{for: GPTBot, disallow: {crawl: /a/}}]\n", "rules: [{for: CCBot, disallow: {crawl: /a/}}]\n"},
	"rules.hosts":                         ofRule("disallow: {crawl: /a/}", "disallow: {crawl: /a/}, hosts: a.example.com"),
	"rules.identity":                      {"rules: [{for: everyone, disallow: {crawl: /a/}}, {for: Googlebot, allow: {crawl: /a/}}]\n", "rules: [{for: everyone, disallow: {crawl: /a/}}, {for: Googlebot, allow: {crawl: /a/}, identity: verified}]\n"},
	"rules.usage-purposes":                ofRule("disallow: {index: /a/}", "disallow: {index: /a/}, usage-purposes: news"),
	"rules.allow":                         ofRule("disallow: {crawl: /a/}", "disallow: {crawl: /a/}, allow: {crawl: /a/b/}"),
	"rules.disallow":                      ofRule("disallow: {crawl: /a/}", "disallow: {crawl: [/a/, /b/]}"),
	"rules.allow.paths":                   ofRule("allow: {index: {paths: /a/, time-limit: 5-days}}", "allow: {index: {paths: /b/, time-limit: 5-days}}"),
	"rules.allow.max-length":              ofRule("allow: {present-snippet: /}", "allow: {present-snippet: {paths: /, max-length: 50-words}}"),
	"rules.allow.time-limit":              ofRule("allow: {index: {paths: /, time-limit: until-recrawled}}", "allow: {index: {paths: /, time-limit: until-2999-01-01}}"),
	"rules.allow.must-use-resource":       ofRule("allow: {index: /}", "allow: {index: {paths: /, must-use-resource: /a}}"),
	"rules.allow.must-include-resource":   ofRule("allow: {present: /}", "allow: {present: {paths: /, must-include-resource: /a}}"),
	"rules.allow.prohibited-context":      ofRule("allow: {present-original: /}", "allow: {present-original: {paths: /, prohibited-context: within-user-frame}}"),
	"rules.allow.required-context":        ofRule("allow: {present-original: /}", "allow: {present-original: {paths: /, required-context: within-original-frame}}"),
	"rules.allow.prohibited-modification": ofRule("allow: {present: /}", "allow: {present: {paths: /, prohibited-modification: any}}"),
	"rules.disallow.paths":                ofRule("disallow: {index: {paths: /a/}}", "disallow: {index: {paths: /b/}}"),
	"rules.app-directives":                ofRule("app-directives: 'app;x=1'", "app-directives: 'app;x=2'"),
	"rules.app-directives.paths":          ofRule("app-directives: [{paths: /a/, directives: 'app;x=1'}]", "app-directives: [{paths: /b/, directives: 'app;x=1'}]"),
	"rules.app-directives.directives":     ofRule("app-directives: [{paths: /a/, directives: 'app;x=1'}]", "app-directives: [{paths: /a/, directives: 'app;x=2'}]"),
	"rules.robots-tag":                    ofRule("robots-tag: 'max-image-preview:large'", "robots-tag: 'max-image-preview:standard'"),
	"rules.robots-tag.paths":              ofRule("robots-tag: [{paths: /a/, rules: noindex}]", "robots-tag: [{paths: /b/, rules: noindex}]"),
	"rules.robots-tag.rules":              ofRule("robots-tag: [{paths: /a/, rules: noindex}]", "robots-tag: [{paths: /a/, rules: nofollow}]"),
	"rules.crawl-delay":                   ofRule("crawl-delay: 5", "crawl-delay: 6"),
	"rules.limit":                         ofRule("limit: 5/m", "limit: 6/m"),
	"rules.limit.rate":                    ofRule("limit: {rate: 5/m, burst: 5}", "limit: {rate: 5/h, burst: 5}"),
	"rules.limit.burst":                   ofRule("limit: {rate: 5/m, burst: 5}", "limit: {rate: 5/m, burst: 6}"),
	"rules.enforce":                       ofRule("disallow: {crawl: /a/}, enforce: log", "disallow: {crawl: /a/}, enforce: block"),
	"rules.intended":                      ofRule("disallow: {crawl: /a/}", "disallow: {crawl: /a/}, intended: [disallows-search]"),
	"rules.requests":                      ofRule("requests: {re-crawl: /a}", "requests: {re-crawl: /b}"),
	"rules.requests.re-crawl":             ofRule("requests: {re-crawl: /a}", "requests: {re-crawl: /b}"),
	"rules.requests.take-down":            ofRule("requests: {take-down: /a}", "requests: {re-crawl: /a}"),
	"rules.permissions-reference":         ofRule("permissions-reference: /a", "permissions-reference: /b"),

	"enforcement":             ofKey("enforcement", "off", "log"),
	"enforcement.mode":        ofKey("enforcement", "{mode: log, status: 410}", "{mode: block, status: 410}"),
	"enforcement.status":      ofKey("enforcement", "{status: 401}", "{status: 410}"),
	"enforcement.impostors":   ofKey("enforcement", "{impostors: log}", "{impostors: block}"),
	"enforcement.message":     ofKey("enforcement", "{message: a}", "{message: b}"),
	"enforcement.retry-after": ofKey("enforcement", "{retry-after: 5}", "{retry-after: 6}"),
	"enforcement.action":      ofKey("enforcement", "{mode: log}", "{mode: log, action: close}"),

	"publish":                       ofKey("publish", "{acap: off}", "{acap: full}"),
	"publish.lines":                 ofKey("publish", `{lines: "Host: a.example"}`, `{lines: "Host: b.example"}`),
	"rules.allow.over-site":         ofRule("allow: {index: [{paths: /a/}]}", "allow: {index: [{paths: /a/, over-site: true}]}"),
	"publish.acap":                  ofKey("publish", "{acap: off}", "{acap: full}"),
	"publish.everyone":              ofKey("publish", "{everyone: plain}", "{everyone: named}"),
	"publish.groups":                ofKey("publish", "{groups: short}", "{groups: all}"),
	"publish.preamble":              ofKey("publish", "{preamble: a}", "{preamble: b}"),
	"publish.user-agent-purpose":    ofKey("publish", "{user-agent-purpose: off}", "{user-agent-purpose: on}"),
	"publish.content-usage":         ofKey("publish", "{content-usage: off}", "{content-usage: on}"),
	"publish.content-signal":        ofKey("publish", "{content-signal: on}", "{content-signal: full}"),
	"publish.controls":              ofKey("publish", "{controls: {Bingbot: noarchive}}", "{controls: {Bingbot: off}}"),
	"publish.usage-tokens":          ofKey("publish", "{usage-tokens: {search: a}}", "{usage-tokens: {search: b}}"),
	"publish.usage-tokens.search":   ofKey("publish", "{usage-tokens: {search: a}}", "{usage-tokens: {search: b}}"),
	"publish.usage-tokens.ai-use":   ofKey("publish", "{usage-tokens: {ai-use: a}}", "{usage-tokens: {ai-use: b}}"),
	"publish.usage-tokens.train-ai": ofKey("publish", "{usage-tokens: {train-ai: a}}", "{usage-tokens: {train-ai: b}}"),
	"publish.noai":                  ofKey("publish", "{noai: off}", "{noai: on}"),
	"publish.tdmrep":                ofKey("publish", "{tdmrep: off}", "{tdmrep: on}"),
	"publish.rsl":                   ofKey("publish", "{rsl: on}", "{rsl: /l.xml}"),
	"publish.license":               ofKey("publish", "{license: https://a.example/a}", "{license: https://a.example/b}"),
	"publish.action-requests":       ofKey("publish", "{action-requests: off}", "{action-requests: on}"),

	"rights":                 ofKey("rights", "{copyright: A}", "{copyright: B}"),
	"rights.copyright":       ofKey("rights", "{copyright: A}", "{copyright: B}"),
	"rights.contact":         ofKey("rights", "{contact: 'mailto:a@a.example'}", "{contact: 'mailto:b@a.example'}"),
	"rights.terms":           ofKey("rights", "{terms: https://a.example/a}", "{terms: https://a.example/b}"),
	"rights.tdm-policy":      ofKey("rights", "{tdm-policy: https://a.example/a}", "{tdm-policy: https://a.example/b}"),
	"rights.offers":          ofOffer("", ", users: education"),
	"rights.offers.usage":    {offers + "{usage: train-ai, payment: purchase, url: https://a.example/o}\n", offers + "{usage: ai-use, payment: purchase, url: https://a.example/o}\n"},
	"rights.offers.payment":  {offers + "{usage: train-ai, payment: purchase, url: https://a.example/o}\n", offers + "{usage: train-ai, payment: use, url: https://a.example/o}\n"},
	"rights.offers.url":      {offers + "{usage: train-ai, payment: purchase, url: https://a.example/o}\n", offers + "{usage: train-ai, payment: purchase, url: https://a.example/p}\n"},
	"rights.offers.amount":   ofOffer(", amount: 5, currency: EUR", ", amount: 6, currency: EUR"),
	"rights.offers.currency": ofOffer(", amount: 5, currency: EUR", ", amount: 5, currency: USD"),
	"rights.offers.users":    ofOffer(", users: education", ", users: commercial"),
}

// someRules replaces RULES in the examples. offers is the beginning of examples with an offer of a license.
const (
	someRules = "[{for: everyone, disallow: {crawl: /a/, train-ai: /, ai-use: /}}]"
	offers    = "rules: RULES\npublish: {rsl: on}\nrights:\n  offers: "
)

func ofUsage(old, now string) [2]string {
	both := func(usage string) string {
		return "usages: {fair: {usage: " + usage + "}}\nrules: [{for: everyone, allow: {fair: /}}]\n"
	}
	return [2]string{both(old), both(now)}
}

func ofCrawler(old, now string) [2]string {
	both := func(row string) string {
		return "crawlers: {Own: {" + row + "}}\nrules: [{for: [Own, everyone], disallow: {crawl: /a/}}]\n"
	}
	return [2]string{both(old), both(now)}
}

func ofRule(old, now string) [2]string {
	both := func(keys string) string { return "rules: [{for: everyone, " + keys + "}]\n" }
	return [2]string{both(old), both(now)}
}

func ofKey(key, old, now string) [2]string {
	return [2]string{"rules: RULES\n" + key + ": " + old + "\n", "rules: RULES\n" + key + ": " + now + "\n"}
}

func ofOffer(old, now string) [2]string {
	both := func(rest string) string {
		return offers + "{usage: train-ai, payment: purchase, url: https://a.example/o" + rest + "}\n"
	}
	return [2]string{both(old), both(now)}
}

// keysOf returns the keys that a schema describes. The entries of all usages have the same keys, so keysOf lists these
// keys only for one usage.
func keysOf(root, schema map[string]any, at string) (keys []string) {
	if ref, ok := schema["$ref"].(string); ok {
		return keysOf(root, root["$defs"].(map[string]any)[ref[strings.LastIndexByte(ref, '/')+1:]].(map[string]any), at)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, value := range properties {
		key := strings.TrimPrefix(at+"."+name, ".")
		if _, isUsage := policy.ParseUsage(name); isUsage && (at == "rules.allow" || at == "rules.disallow") {
			key = at
		}
		keys = append(append(keys, key), keysOf(root, value.(map[string]any), key)...)
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if sub, ok := schema[name].(map[string]any); ok {
			keys = append(keys, keysOf(root, sub, at)...)
		}
	}
	if some, ok := schema["anyOf"].([]any); ok {
		for _, sub := range some {
			keys = append(keys, keysOf(root, sub.(map[string]any), at)...)
		}
	}
	return keys
}

// If any key of a policy changes, the comparison reports a change.
func TestEveryKeyIsCompared(t *testing.T) {
	t.Parallel()
	var schema map[string]any
	if err := json.Unmarshal(policyfile.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	keys := keysOf(schema, schema, "")
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if len(keys) < 90 {
		t.Errorf("the schema has only %d keys", len(keys))
	}
	for _, u := range policy.Usages() {
		if u != policy.Other {
			keys = append(keys, "rules.allow."+u.String())
		}
		keys = append(keys, "rules.disallow."+u.String())
	}
	for _, key := range keys {
		texts, ok := examples[key]
		if verb, usage, found := strings.Cut(strings.TrimPrefix(key, "rules."), "."); !ok && found {
			texts = ofRule(verb+": {"+usage+": /a/}", verb+": {"+usage+": /b/}")
			if usage == policy.Crawl.String() && verb == "allow" { // without a disallow entry, the allow entry would not change anything
				texts = ofRule("disallow: {crawl: /}, allow: {crawl: /a/}", "disallow: {crawl: /}, allow: {crawl: /b/}")
			}
		} else if !ok {
			t.Errorf("there is no example of the key %s", key)
		}
		if texts[0] == texts[1] {
			continue
		}
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			a, b := load(t, strings.ReplaceAll(texts[0], "RULES", someRules)), load(t, strings.ReplaceAll(texts[1], "RULES", someRules))
			for old, now := range map[*site.Site]*site.Site{a: b, b: a} {
				d := compare.Sites(old, now, compare.Options{})
				if words := d.Words(); len(d.Changes)+len(d.Settings) == 0 || words[0] == "nothing changes" {
					t.Errorf("the comparison says %q", words)
				}
			}
			if d := compare.Sites(a, a, compare.Options{}); !slices.Equal(d.Words(), []string{"nothing changes"}) {
				t.Errorf("a policy compared with itself: %q", d.Words())
			}
		})
	}
}

// In the text, losses of web search come before other losses, even if they do not count against the search-loss limit.
func TestSectionOfUncountedLosses(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	d := compare.Sites(load(t, base), load(t, base+"      follow: /\n      train-ai: /\n"), compare.Options{})
	if err := d.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	want := "Search engines lose (not counted by the search-loss limit):\n  everyone may no longer follow links of the whole site\n\n" +
		"Others lose:\n  everyone may no longer train AI with the whole site\n"
	if text.String() != want {
		t.Errorf("got %q", text.String())
	}
}
