// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// spec reads rules in a shorthand, one a line:
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

// The order of precedence, case by case, to be checked by hand.
func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name, rules, crawler, host, path, usage, want string // want: the verdict, then the line that decides
	}{
		{"nothing speaks: unstated", "everyone: -crawl /admin/", "", "", "/x", "crawl", "unstated"},
		{"robots.txt is always allowed", "everyone: -crawl /", "", "", "/robots.txt", "crawl", "allowed"},
		{"robots.txt has no privilege for other usages", "everyone: -index /", "", "", "/robots.txt", "index", "disallowed 1"},

		{"1: token over category", "category:ai-training: -crawl /\nBetaBot: +crawl /", "BetaBot", "", "/x", "crawl", "allowed 2"},
		{"1: token over everyone, though the pattern is shorter", "everyone: -crawl /a/b/c\nBetaBot: +crawl /a", "BetaBot", "", "/a/b/c", "crawl", "allowed 2"},
		{"1: category over everyone", "everyone: +crawl /x\ncategory:ai-training: -crawl /", "BetaBot", "", "/x", "crawl", "disallowed 2"},
		{"1: a category is the primary kind only", "category:search: -crawl /", "DeltaBot", "", "/x", "crawl", "unstated"},
		{"1: operator", "operator:alpha: -crawl /", "DeltaBot", "", "/x", "crawl", "disallowed 1"},
		{"1: tokens have no case", "bEtAbOt: -crawl /", "BETABOT", "", "/x", "crawl", "disallowed 1"},
		{"1: a narrower audience that does not speak falls through", "everyone: -crawl /admin/\nBetaBot: +crawl /open/", "BetaBot", "", "/admin/x", "crawl", "disallowed 1"},

		{"2: exact host over wildcard", "everyone@*.example.com: -crawl /\neveryone@www.example.com: +crawl /", "", "www.example.com", "/x", "crawl", "allowed 2"},
		{"2: wildcard over none", "everyone: +crawl /x\neveryone@*.example.com: -crawl /", "", "www.example.com", "/x", "crawl", "disallowed 2"},
		{"2: staging closes /events/x", "everyone: +index /events/\neveryone@*.staging.example.com: -index /", "", "a.staging.example.com", "/events/x", "index", "disallowed 2"},
		{"2: but not in production", "everyone: +index /events/\neveryone@*.staging.example.com: -index /", "", "www.example.com", "/events/x", "index", "allowed 1"},
		{"2: audience before host", "everyone@www.example.com: -crawl /\nBetaBot: +crawl /", "BetaBot", "www.example.com", "/x", "crawl", "allowed 2"},
		{"2: port and case do not matter", "everyone@www.example.com: -crawl /", "", "WWW.EXAMPLE.com:8443", "/x", "crawl", "disallowed 1"},
		{"2: a wildcard does not cover the name itself", "everyone@*.example.com: -crawl /", "", "example.com", "/x", "crawl", "unstated"},
		{"2: Unicode and A-label are one host", "everyone@b\u00fccher.example: -crawl /", "", "xn--bcher-kva.example", "/x", "crawl", "disallowed 1"},

		{"3: present-snippet over present, though the pattern is shorter", "everyone: -present /a/b; +present-snippet /", "", "", "/a/b", "present-snippet", "allowed 1"},
		{"3: present covers what is derived from it", "everyone: -present /a", "", "", "/a", "present-link", "disallowed 1"},
		{"3: not the other way round", "everyone: -present-link /a", "", "", "/a", "present", "unstated"},
		{"3: host before usage", "everyone: -present-snippet /\neveryone@example.com: +present /", "", "example.com", "/", "present-snippet", "allowed 2"},

		{"4: longest pattern", "everyone: -crawl /a; +crawl /a/b", "", "", "/a/b/c", "crawl", "allowed 1"},
		{"4: the file's order does not matter", "everyone: +crawl /a/b; -crawl /a", "", "", "/a/b/c", "crawl", "allowed 1"},
		{"4: octets after normalisation", "everyone: -crawl /%61b; +crawl /a", "", "", "/ab", "crawl", "disallowed 1"},
		{"4: wildcards count as octets", "everyone: -crawl /*b; +crawl /a", "", "", "/ab", "crawl", "disallowed 1"},

		{"5: a tie for everyone: allow", "everyone: -crawl /a*; +crawl /ab", "", "", "/ab", "crawl", "allowed 1"},
		{"5: a tie between two rules for everyone: allow", "everyone: -crawl /ab\neveryone: +crawl /ab", "", "", "/ab", "crawl", "allowed 2"},
		{"5: a tie for a token: allow", "BetaBot: -crawl /\nbetabot: +crawl /", "BetaBot", "", "/", "crawl", "allowed 2"},
		{"5: a tie between two rules of the middle tier: disallow", "category:search: +crawl /\noperator:alpha: -crawl /", "AlphaBot", "", "/", "crawl", "disallowed 2"},
		{"5: a tie within one rule of the middle tier: allow", "category:search: -crawl /a*; +crawl /ab", "AlphaBot", "", "/ab", "crawl", "allowed 1"},

		{"other: asked last", "everyone: -other /; +index /news/", "", "", "/news/", "index", "allowed 1"},
		{"other: covers what nothing spoke of", "everyone: -other /; +index /news/", "", "", "/x", "index", "disallowed 1"},
		{"other: present is asked before", "everyone: -other /; +present /", "", "", "/x", "present-link", "allowed 1"},
		{"other: of a narrower audience comes after the usage of a broader one", "everyone: +index /\nBetaBot: -other /", "BetaBot", "", "/x", "index", "allowed 1"},
		{"other: never covers crawl", "everyone: -other /", "", "", "/x", "crawl", "unstated"},
		{"other: covers AIPREF's usages", "everyone: -other /", "", "", "/x", "train-ai", "disallowed 1"},
		{"nothing is inferred: crawl and index", "everyone: -index /; -train-ai /", "", "", "/x", "crawl", "unstated"},
		{"nothing is inferred: index and search", "everyone: -index /", "", "", "/x", "search", "unstated"},

		{"a date in the future allows", "everyone: +index /e/ time-limit=until-2026-06-15", "", "", "/e/", "index", "allowed 1"},
		{"a date in the past disallows", "everyone: +index /e/ time-limit=until-2026-06-14", "", "", "/e/", "index", "disallowed 1"},
		{"days never expire", "everyone: +index /e/ time-limit=1-days", "", "", "/e/", "index", "allowed 1"},
		{"until-recrawled never expires", "everyone: +index /e/ time-limit=until-recrawled", "", "", "/e/", "index", "allowed 1"},

		{"a sub-record needs its purpose", "AlphaBot purpose=news: +preserve /", "AlphaBot", "", "/", "preserve", "unstated"},
		{"a rule that demands a verified client", "BetaBot identity=verified: +crawl /\neveryone: -crawl /", "BetaBot", "", "/x", "crawl", "disallowed 2"},
		{"a rule that refuses impostors speaks to the unknown", "BetaBot identity=not-impostor: +crawl /\neveryone: -crawl /", "BetaBot", "", "/x", "crawl", "allowed 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := spec(t, c.rules)
			p, err := policy.Compile(s)
			if err != nil {
				t.Fatal(err)
			}
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
	p, err := policy.Compile(spec(t, "everyone: +index / time-limit=until-2027-01-31"))
	if err != nil {
		t.Fatal(err)
	}
	for now, want := range map[string]policy.Verdict{
		"2027-01-31T23:59:59Z":      policy.Allowed,
		"2027-02-01T00:00:00Z":      policy.Disallowed,
		"2027-02-01T00:30:00+01:00": policy.Allowed,
	} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		if d := p.Decide(policy.Query{Path: "/", Usage: policy.Index, Now: at}); d.Verdict != want {
			t.Errorf("%s: %v, want %v", now, d.Verdict, want)
		}
	}
}

func TestPurposes_ACAP_2_3_3(t *testing.T) {
	p, err := policy.Compile(spec(t, `
		AlphaBot purpose=News: +preserve /
		everyone purpose=http://news.search.*/*: +index /
		purpose:agent: -crawl /`))
	if err != nil {
		t.Fatal(err)
	}
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
		{policy.PresentOriginal, "prohibited-modification", "colour", false},
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

func TestCompileLimits(t *testing.T) {
	r := policy.Rule{}
	for i := range 2000 {
		name := strings.Repeat("a", 1+i%50) + strings.Repeat("b", i/50)
		r.For = append(r.For, policy.Audience{Kind: policy.ForToken, Name: name})
		r.Hosts = append(r.Hosts, policy.Host(name+".example"))
	}
	if _, err := policy.Compile(&policy.Spec{Rules: []policy.Rule{r}}); err != policy.ErrTooLarge {
		t.Errorf("4 million combinations: %v", err)
	}
}

func TestHostKey(t *testing.T) {
	p, err := policy.Compile(spec(t, `
		everyone@www.example.com: -crawl /
		everyone@*.example.com: -crawl /a
		everyone@*.b.example.com: -crawl /b`))
	if err != nil {
		t.Fatal(err)
	}
	keys := map[int]string{}
	for _, h := range []string{"www.example.com", "x.example.com", "x.b.example.com", "example.org"} {
		k := p.HostKey(h)
		if other, ok := keys[k]; ok {
			t.Errorf("%s and %s have the key %d", h, other, k)
		}
		keys[k] = h
	}
	if p.HostKey("WWW.example.com.:80") != p.HostKey("www.example.com") || p.HostKey("y.z.example.com") != p.HostKey("x.example.com") || p.HostKey("") != 0 {
		t.Error("hosts to which the same rules speak have different keys")
	}
}
