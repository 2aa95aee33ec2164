// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// spec parses rules in a short notation. Each line has the form:
//
//	AUDIENCE[,AUDIENCE][@HOST] [identity=X] [purpose=X]: +usage PATTERN [qualifier=value]; -usage PATTERN
func spec(t *testing.T, text string) *policy.Spec {
	t.Helper()
	s := &policy.Spec{Crawlers: policytest.Crawlers}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		head, body, _ := strings.Cut(strings.TrimSpace(line), ": ")
		r := policy.Rule{Pos: policy.Pos{Line: i + 1, Column: 1}}
		for j, word := range strings.Fields(head) {
			switch name, value, _ := strings.Cut(word, "="); {
			case j == 0:
				who, host, ok := strings.Cut(word, "@")
				for a := range strings.SplitSeq(who, ",") {
					r.For = append(r.For, policy.ParseAudience(a))
				}
				if ok {
					h, err := policy.ParseHost(host)
					if err != nil {
						t.Fatal(err)
					}
					r.Hosts = []policy.Host{h}
				}
			case name == "identity":
				r.Identity, _ = policy.ParseDemand(value)
			case name == "purpose":
				r.UsagePurposes = []string{value}
			}
		}
		for part := range strings.SplitSeq(body, ";") {
			f := strings.Fields(part)
			u, ok := policy.ParseUsage(f[0][1:])
			if !ok {
				t.Fatalf("no usage: %q", f[0])
			}
			st := policy.Statement{Pos: r.Pos, Allow: f[0][0] == '+', Usage: u, Pattern: pathpattern.MustParse(f[1])}
			for _, q := range f[2:] {
				name, value, _ := strings.Cut(q, "=")
				if st.Qualifiers == nil {
					st.Qualifiers = &policy.Qualifiers{}
				}
				if err := st.Qualifiers.SetQualifier(u, policy.QualifierName(name), value); err != nil {
					t.Fatal(err)
				}
			}
			r.Statements = append(r.Statements, st)
		}
		s.Rules = append(s.Rules, r)
	}
	return s
}

// Each case can be checked by hand against "When in doubt, disallowed" in docs/reference/policy-file.md.
func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name, rules, crawler, host, path, usage, want string // want: the verdict, then the line that decides
	}{
		{"nothing matches: unstated", "everyone: -crawl /admin/", "", "", "/x", "crawl", "unstated"},
		{"robots.txt is always allowed", "everyone: -crawl /", "", "", "/robots.txt", "crawl", "allowed"},
		{"robots.txt has no privilege for other usages", "everyone: -index /", "", "", "/robots.txt", "index", "disallowed 1"},

		{"audience: a token overrides a category", "category:ai-training: -crawl /\nBetaBot: +crawl /", "BetaBot", "", "/x", "crawl", "allowed 2"},
		{"audience: a token overrides everyone within", "everyone: -crawl /a/\nBetaBot: +crawl /a/b/", "BetaBot", "", "/a/b/c", "crawl", "allowed 2"},
		{"audience: a token that allows more does not", "everyone: -crawl /a/b/c\nBetaBot: +crawl /a", "BetaBot", "", "/a/b/c", "crawl", "disallowed 1"},
		{"audience: everyone does not override a category", "everyone: +crawl /x\ncategory:ai-training: -crawl /", "BetaBot", "", "/x", "crawl", "disallowed 2"},
		{"audience: a category is the primary kind only", "category:search: -crawl /", "DeltaBot", "", "/x", "crawl", "unstated"},
		{"audience: operator", "operator:alpha: -crawl /", "DeltaBot", "", "/x", "crawl", "disallowed 1"},
		{"audience: tokens have no case", "bEtAbOt: -crawl /", "BETABOT", "", "/x", "crawl", "disallowed 1"},
		{"audience: a category and an operator never override each other", "category:search: +crawl /news/\noperator:alpha: -crawl /", "AlphaBot", "", "/news/a", "crawl", "disallowed 2"},
		{"audience: nor two purposes", "purpose:news: -crawl /\npurpose:research: +crawl /a/", "DeltaBot", "", "/a/", "crawl", "disallowed 1"},
		{"audience: one category with itself goes by length", "category:search: -crawl /\ncategory:search: +crawl /a/", "AlphaBot", "", "/a/", "crawl", "allowed 2"},

		{"family: the head's rules reach a member", "AlphaBot: -crawl /search", "AlphaBot-Image", "", "/search", "crawl", "disallowed 1"},
		{"family: not a crawler of another operator", "AlphaBot: -crawl /", "ZetaBot", "", "/x", "crawl", "unstated"},
		{"family: a rule for the member overrides, whatever the path", "AlphaBot: -crawl /a/b/\nAlphaBot-Image: +crawl /", "AlphaBot-Image", "", "/a/b/c", "crawl", "allowed 2"},
		{"family: the head does not override the member's", "AlphaBot: +crawl /a/\nAlphaBot-Image: -crawl /", "AlphaBot-Image", "", "/a/b", "crawl", "disallowed 2"},
		{"family: closer than a category", "category:search: -crawl /a\nAlphaBot: +crawl /a", "AlphaBot-Image", "", "/a", "crawl", "allowed 2"},

		{"everyone-else: yields to a token, whatever the path", "everyone-else: -crawl /members/\nAlphaBot: +crawl /", "AlphaBot", "", "/members/", "crawl", "allowed 2"},
		{"everyone-else: and to its family", "everyone-else: -crawl /members/\nAlphaBot: +crawl /", "AlphaBot-Image", "", "/members/", "crawl", "allowed 2"},
		{"everyone-else: not to a category", "everyone-else: -crawl /members/\ncategory:search: +crawl /", "AlphaBot", "", "/members/", "crawl", "disallowed 1"},
		{"everyone-else: not where the token's rule does not match", "everyone-else: -crawl /\nAlphaBot: +crawl /a/", "AlphaBot", "", "/b/", "crawl", "disallowed 1"},
		{"everyone-else: not from a wider host", "everyone-else@www.example.com: -crawl /\nAlphaBot: +crawl /", "AlphaBot", "www.example.com", "/", "crawl", "disallowed 1"},
		{"everyone-else: with everyone one audience", "everyone-else: -crawl /a\neveryone: +crawl /a/b", "", "", "/a/b", "crawl", "allowed 2"},
		{"everyone-else: its permission never overrides everyone", "everyone: -crawl /a\neveryone-else: +crawl /a/b", "", "", "/a/b", "crawl", "disallowed 1"},

		{"host: exact over wildcard", "everyone@*.example.com: -crawl /\neveryone@www.example.com: +crawl /", "", "www.example.com", "/x", "crawl", "allowed 2"},
		{"host: the longer suffix is narrower", "everyone@*.example.com: -crawl /\neveryone@*.b.example.com: +crawl /", "", "a.b.example.com", "/x", "crawl", "allowed 2"},
		{"host: the shorter one does not override it", "everyone@*.example.com: +crawl /\neveryone@*.b.example.com: -crawl /", "", "a.b.example.com", "/x", "crawl", "disallowed 2"},
		{"host: no host does not override a wildcard", "everyone: +crawl /x\neveryone@*.example.com: -crawl /", "", "www.example.com", "/x", "crawl", "disallowed 2"},
		{"host: staging closes /events/x", "everyone: +index /events/\neveryone@*.staging.example.com: -index /", "", "a.staging.example.com", "/events/x", "index", "disallowed 2"},
		{"host: but not in production", "everyone: +index /events/\neveryone@*.staging.example.com: -index /", "", "www.example.com", "/events/x", "index", "allowed 1"},
		{"host: a token's rule for every host does not open a disallowed host", "everyone@www.example.com: -crawl /\nBetaBot: +crawl /", "BetaBot", "www.example.com", "/x", "crawl", "disallowed 1"},
		{"host: an open host does not allow it for a banned token", "everyone@www.example.com: +crawl /\nBetaBot: -crawl /", "BetaBot", "www.example.com", "/x", "crawl", "disallowed 2"},
		{"host: port and case do not matter", "everyone@www.example.com: -crawl /", "", "WWW.EXAMPLE.com:8443", "/x", "crawl", "disallowed 1"},
		{"host: a wildcard does not cover the name itself", "everyone@*.example.com: -crawl /", "", "example.com", "/x", "crawl", "unstated"},
		{"host: Unicode and A-label are one host", "everyone@b\u00fccher.example: -crawl /", "", "xn--bcher-kva.example", "/x", "crawl", "disallowed 1"},

		{"usage: present-snippet overrides present within", "everyone: -present /a/; +present-snippet /a/b", "", "", "/a/b", "present-snippet", "allowed 1"},
		{"usage: not with a wider pattern", "everyone: -present /a/b; +present-snippet /", "", "", "/a/b", "present-snippet", "disallowed 1"},
		{"usage: present does not override present-snippet", "everyone: -present-snippet /; +present /a", "", "", "/a", "present-snippet", "disallowed 1"},
		{"usage: present covers what is derived from it", "everyone: -present /a", "", "", "/a", "present-link", "disallowed 1"},
		{"usage: not the other way round", "everyone: -present-link /a", "", "", "/a", "present", "unstated"},
		{"usage: and host, both at least as narrow", "everyone: -present-snippet /\neveryone@example.com: +present /", "", "example.com", "/", "present-snippet", "disallowed 1"},

		{"path: longest pattern", "everyone: -crawl /a; +crawl /a/b", "", "", "/a/b/c", "crawl", "allowed 1"},
		{"path: the order of the file does not matter", "everyone: +crawl /a/b; -crawl /a", "", "", "/a/b/c", "crawl", "allowed 1"},
		{"path: bytes after normalization", "everyone: -crawl /%61b; +crawl /a", "", "", "/ab", "crawl", "disallowed 1"},
		{"path: wildcards count as bytes", "everyone: -crawl /*b; +crawl /a", "", "", "/ab", "crawl", "disallowed 1"},
		{"path: a tie allows", "everyone: -crawl /a*; +crawl /ab", "", "", "/ab", "crawl", "allowed 1"},
		{"path: a tie between two rules allows", "everyone: -crawl /ab\neveryone: +crawl /ab", "", "", "/ab", "crawl", "allowed 2"},
		{"path: a tie in one category allows", "category:search: -crawl /a*; +crawl /ab", "AlphaBot", "", "/ab", "crawl", "allowed 1"},
		{"path: of another audience, within a prefix", "everyone: -crawl /reports/\nBetaBot: +crawl /reports/*.pdf$", "BetaBot", "", "/reports/a.pdf", "crawl", "allowed 2"},
		{"path: of another audience, a longer one outside", "everyone: -crawl /app/\nBetaBot: +crawl /*.stylesheet$", "BetaBot", "", "/app/a.stylesheet", "crawl", "disallowed 1"},
		{"path: of another audience, within wildcards", "everyone: -crawl /*.pdf$\nBetaBot: +crawl /reports/*.pdf$", "BetaBot", "", "/reports/a.pdf", "crawl", "allowed 2"},
		{"path: of another audience, partly within wildcards", "everyone: -crawl /*.pdf$\nBetaBot: +crawl /reports/", "BetaBot", "", "/reports/a.pdf", "crawl", "disallowed 1"},
		{"path: * alone is /*", "everyone: -crawl /a/\ncategory:search: +crawl /*", "AlphaBot", "", "/a/x", "crawl", "disallowed 1"},
		{"path: a pattern that begins with * counts as /*", "everyone: -crawl /\nBetaBot: +crawl */x", "BetaBot", "", "/a/x", "crawl", "allowed 2"},

		{"other: asked last", "everyone: -other /; +index /news/", "", "", "/news/", "index", "allowed 1"},
		{"other: covers what nothing matches", "everyone: -other /; +index /news/", "", "", "/x", "index", "disallowed 1"},
		{"other: present is asked before", "everyone: -other /; +present /", "", "", "/x", "present-link", "allowed 1"},
		{"other: of a closer audience comes after the usage of a wider one", "everyone: +index /\nBetaBot: -other /", "BetaBot", "", "/x", "index", "allowed 1"},
		{"other: never covers crawl", "everyone: -other /", "", "", "/x", "crawl", "unstated"},
		{"other: covers AIPREF's usages", "everyone: -other /", "", "", "/x", "train-ai", "disallowed 1"},
		{"nothing is inferred: crawl and index", "everyone: -index /; -train-ai /", "", "", "/x", "crawl", "unstated"},
		{"nothing is inferred: index and search", "everyone: -index /", "", "", "/x", "search", "unstated"},

		{"a date in the future allows", "everyone: +index /e/ time-limit=until-2026-06-15", "", "", "/e/", "index", "allowed 1"},
		{"a date in the past disallows", "everyone: +index /e/ time-limit=until-2026-06-14", "", "", "/e/", "index", "disallowed 1"},
		{"a date in the past and the same without a date", "everyone: +index /e/ time-limit=until-2026-06-14\neveryone: +index /e/", "", "", "/e/", "index", "disallowed 1"},
		{"a date in the past, set aside by a narrower permission", "everyone: +index /e/ time-limit=until-2026-06-14; +index /e/f", "", "", "/e/f", "index", "allowed 1"},
		{"a passed permission overrides nothing", "everyone: -index /\nBetaBot: +index / time-limit=until-2026-06-14", "BetaBot", "", "/e/", "index", "disallowed 2"},
		{"days never expire", "everyone: +index /e/ time-limit=1-days", "", "", "/e/", "index", "allowed 1"},
		{"until-recrawled never expires", "everyone: +index /e/ time-limit=until-recrawled", "", "", "/e/", "index", "allowed 1"},

		{"a sub-record needs its purpose", "AlphaBot purpose=news: +preserve /", "AlphaBot", "", "/", "preserve", "unstated"},
		{"a rule that demands a verified client", "BetaBot identity=verified: +crawl /\neveryone: -crawl /", "BetaBot", "", "/x", "crawl", "disallowed 2"},
		{"a rule that blocks impostors reaches the unknown", "BetaBot identity=not-impostor: +crawl /\neveryone: -crawl /", "BetaBot", "", "/x", "crawl", "allowed 1"},

		{"the narrowest prohibition is named: by audience", "everyone: -crawl /a/b\nBetaBot: -crawl /", "BetaBot", "", "/a/b", "crawl", "disallowed 2"},
		{"the narrowest prohibition is named: then by host", "everyone: -crawl /a/b\neveryone@example.com: -crawl /", "", "example.com", "/a/b", "crawl", "disallowed 2"},
		{"the narrowest prohibition is named: then by usage", "everyone: -present /a/b; +index /\neveryone: -present-link /", "", "", "/a/b", "present-link", "disallowed 2"},
		{"the narrowest prohibition is named: then by path", "everyone: -crawl /\neveryone: -crawl /a", "", "", "/a/b", "crawl", "disallowed 2"},
		{"the narrowest prohibition is named: then by line", "everyone: -crawl /a\neveryone: -crawl /a", "", "", "/a/b", "crawl", "disallowed 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := spec(t, c.rules)
			p := policy.Compile(s)
			u, ok := policy.ParseUsage(c.usage)
			if !ok {
				t.Fatal(c.usage)
			}
			d := p.Decide(policy.Query{Crawler: p.Crawler(c.crawler), Host: c.host, Path: c.path, Usage: u, Now: policytest.Now})
			got := d.Verdict.String()
			if d.Rule != nil {
				got += " " + string(rune('0'+d.Rule.Pos.Line))
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if a := policytest.Decide(s, policytest.Question{Token: c.crawler, Host: c.host, Path: c.path, Usage: u, Now: policytest.Now}); a.Verdict != d.Verdict {
				t.Errorf("the naive evaluator says %v", a.Verdict)
			}
		})
	}
}

func TestTimeLimit_ACAP_2_5_3_1_LastDayIncluded(t *testing.T) {
	p := policy.Compile(spec(t, "everyone: +index / time-limit=until-2027-01-31"))
	for moment, want := range map[string]policy.Verdict{
		"2027-01-31T23:59:59Z":      policy.Allowed,
		"2027-02-01T00:00:00Z":      policy.Disallowed,
		"2027-02-01T00:30:00+01:00": policy.Allowed,
	} {
		at, err := time.Parse(time.RFC3339, moment)
		if err != nil {
			t.Fatal(err)
		}
		if d := p.Decide(policy.Query{Path: "/", Usage: policy.Index, Now: at}); d.Verdict != want {
			t.Errorf("%s: %v, want %v", moment, d.Verdict, want)
		}
	}
}

func TestPurposes_ACAP_2_3_3(t *testing.T) {
	p := policy.Compile(spec(t, `
		AlphaBot purpose=News: +preserve /
		everyone purpose=http://news.search.*/*: +index /
		purpose:agent: -crawl /`))
	for _, c := range []struct {
		purpose string
		usage   policy.Usage
		want    policy.Verdict
	}{
		{"news", policy.Preserve, policy.Allowed},
		{"newsletter", policy.Preserve, policy.Unstated},
		{"http://news.search.example/uk", policy.Index, policy.Allowed},
		{"http://web.search.example/uk", policy.Index, policy.Unstated},
		{"agent", policy.Crawl, policy.Disallowed},
		{"other", policy.Crawl, policy.Unstated},
	} {
		d := p.Decide(policy.Query{Crawler: p.Crawler("AlphaBot"), Purposes: []string{c.purpose}, Path: "/x", Usage: c.usage})
		if d.Verdict != c.want {
			t.Errorf("%s for %q: %v, want %v", c.usage, c.purpose, d.Verdict, c.want)
		}
	}
}

func TestQualifiers_ACAP_2_5(t *testing.T) {
	for _, c := range []struct {
		usage       policy.Usage
		name, value string
		ok          bool
	}{
		{policy.Index, "time-limit", "until-2027-01-31", true},
		{policy.Index, "time-limit", "until-2027-02-30", false},
		{policy.Index, "time-limit", "until-recrawl", false},
		{policy.Index, "time-limit", "3-days", true},
		{policy.Index, "time-limit", "+3-days", false},
		{policy.Index, "max-length", "3-chars", false},
		{policy.Crawl, "time-limit", "3-days", false},
		{policy.PresentSnippet, "max-length", "250-chars", true},
		{policy.PresentSnippet, "max-length", "30-words", true},
		{policy.PresentSnippet, "max-length", "30", false},
		{policy.PresentThumbnail, "max-length", "30-words", false},
		{policy.PresentOriginal, "prohibited-modification", "style", true},
		{policy.PresentOriginal, "prohibited-modification", "color", false},
		{policy.PresentOriginal, "prohibited-context", "within-user-frame", true},
		{policy.PresentSnippet, "prohibited-context", "within-user-frame", false},
		{policy.PresentOldCopy, "required-context", "within-original-frame", true},
		{policy.Index, "must-use-resource", "the-acap:extract:class:abstract", true},
		{policy.Index, "must-use-resource", "a#b", false},
		{policy.Preserve, "must-use-resource", "/a", false},
		{policy.Present, "must-include-resource", "the-acap:credit:id:by", true},
		{policy.Index, "weather", "fine", false},
	} {
		var q policy.Qualifiers
		if err := q.SetQualifier(c.usage, policy.QualifierName(c.name), c.value); (err == nil) != c.ok {
			t.Errorf("%s %s=%s: %v", c.usage, c.name, c.value, err)
		}
	}
	var q policy.Qualifiers
	if q.SetQualifier(policy.Present, "prohibited-modification", "style") != nil ||
		q.SetQualifier(policy.Present, "prohibited-modification", "format") != nil ||
		q.SetQualifier(policy.Present, "prohibited-modification", "any") == nil {
		t.Error("prohibited-modification may be repeated, but not with any")
	}
}

func TestHostKey(t *testing.T) {
	p := policy.Compile(spec(t, `
		everyone@www.example.com: -crawl /
		everyone@*.example.com: -crawl /a
		everyone@*.b.example.com: -crawl /b`))
	keys := map[int]string{}
	for _, h := range []string{"www.example.com", "x.example.com", "x.b.example.com", "example.org"} {
		k := p.HostKey(h)
		if other, ok := keys[k]; ok {
			t.Errorf("%s and %s have the key %d", h, other, k)
		}
		keys[k] = h
	}
	if p.HostKey("WWW.example.com:80") != p.HostKey("www.example.com") || p.HostKey("y.z.example.com") != p.HostKey("x.example.com") || p.HostKey("") != 0 {
		t.Error("hosts to which the same rules speak have different keys")
	}
}
