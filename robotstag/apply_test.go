// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// apply merges members and preferences into a header with the lines of one field. It returns the lines of the field,
// and the kinds of the problems.
func apply(members []Member, usage Usage, name string, lines ...string) ([]string, []Kind) {
	v, _ := Build(members, usage, testNow)
	h := http.Header{}
	if lines != nil {
		h[name] = lines
	}
	problems := Apply(h, v, AllChannels)
	return h[name], kinds(problems)
}

func TestMergeRobotsTag(t *testing.T) {
	ours := list("*", "noindex", "ourbot", "nofollow")
	for _, c := range []struct {
		name     string
		upstream []string
		want     string
		problems []Kind
	}{
		{"nothing", nil, "*;noindex, ourbot;nofollow", nil},
		{"-03 example", []string{"*;nosnippet, ExampleBot;noindex"}, "*;noindex;nosnippet, ourbot;nofollow", nil},
		{"other crawlers", []string{"otherbot;nosnippet, OURBOT;nosnippet"}, "*;noindex, otherbot;nosnippet, ourbot;nofollow;nosnippet", nil},
		{"duplicate tokens", []string{"a;nosnippet, a;nofollow", "a;noarchive"}, "*;noindex, a;nofollow;nosnippet;noarchive, ourbot;nofollow", nil},
		{"minimum of limits", []string{"*;max-snippet=50", "*;max-snippet=20"}, "*;noindex;max-snippet=20, ourbot;nofollow", nil},
		{"unknown rules", []string{"*;noai;foo=3"}, "*;noindex;foo=3;noai, ourbot;nofollow", nil},
		{"never relaxed", []string{"*;noindex=?0, *;index"}, "*;noindex, ourbot;nofollow", nil},
		{"malformed line among good ones", []string{"*;nosnippet", `b;noindex;c="`, "a;nofollow"}, "*;noindex;nosnippet, a;nofollow, b;c, ourbot;nofollow", []Kind{Repaired}},
		{"legacy: parses as two tokens", []string{"nosnippet, nofollow"}, "*;noindex;nofollow;nosnippet", []Kind{Repaired}},
		{"legacy: agent glued on", []string{"googlebot:nosnippet"}, "*;noindex, googlebot;nosnippet, ourbot;nofollow", []Kind{Repaired}},
		{"legacy: agent with a space", []string{"googlebot: nosnippet, noarchive"}, "*;noindex, googlebot;nosnippet;noarchive, ourbot;nofollow", []Kind{Repaired}},
		{"legacy: value", []string{"max-snippet:250"}, "*;noindex;max-snippet=250, ourbot;nofollow", []Kind{Repaired}},
		{"legacy: date with a comma", []string{"unavailable_after: Friday, 25-Jun-27 15:00:00 EST"}, `*;noindex;unavailable_after="2027-06-25T20:00:00Z", ourbot;nofollow`, []Kind{Repaired}},
		{"colon in a parameter", []string{"*;max-snippet:250"}, "*;noindex;max-snippet=250, ourbot;nofollow", []Kind{Repaired}},
		{"semicolons only", []string{"nofollow;nosnippet"}, "*;noindex;nofollow;nosnippet", []Kind{Repaired}},
		{"agent and parameters", []string{"googlebot:nosnippet;noarchive"}, "*;noindex, googlebot;nosnippet;noarchive, ourbot;nofollow", []Kind{Repaired}},
		{"-02 first example", []string{"*;noindex;nosnippet, ExampleBot;"}, "*;noindex;nosnippet, ourbot;nofollow", []Kind{Repaired}},
		{"-02 second example", []string{";noindex;nosnippet, ExampleBot=;"}, "*;noindex;nosnippet, ourbot;nofollow", []Kind{Repaired}},
		{"-02 by its text", []string{"*=(nosnippet nofollow), examplebot=(noarchive)"}, "*;noindex;nofollow;nosnippet, examplebot;noarchive", []Kind{Repaired}},
		{"one rule behind an equals sign", []string{"examplebot=nosnippet, max-snippet=3"}, "*;noindex;max-snippet=3, examplebot;nosnippet, ourbot;nofollow", []Kind{Repaired}},
		{"a list of rules for a rule", []string{"nofollow=(nosnippet)"}, "*;noindex;nofollow;nosnippet", []Kind{Repaired}},
		{"capitals in rules", []string{"ExampleBot;NOFOLLOW"}, "*;noindex, examplebot;nofollow, ourbot;nofollow", []Kind{Repaired}},
		{"token as a string", []string{`"ExampleBot";nofollow`}, "*;noindex, examplebot;nofollow, ourbot;nofollow", []Kind{Repaired}},
		{"token that has no key", []string{`"_bot";nofollow, foo/1;nofollow`}, "*;noindex, ourbot;nofollow", []Kind{Repaired, BadToken, BadToken}},
		{"comma in a string, in a line to repair", []string{`*;note="a, b";nosnippet, ExampleBot;`}, `*;noindex;nosnippet;note="a, b", ourbot;nofollow`, []Kind{Repaired}},
		{"comma in a string", []string{`*;note="a, b;c=(";nosnippet`}, `*;noindex;nosnippet;note="a, b;c=(", ourbot;nofollow`, nil},
		{"what RFC 8941 has not", []string{"*;unavailable_after=@1798761599"}, `*;noindex;unavailable_after="2026-12-31T23:59:59Z", ourbot;nofollow`, nil},
		{"comma at the end", []string{"*;nosnippet, "}, "*;noindex;nosnippet, ourbot;nofollow", []Kind{Repaired}},
		{"product tokens without rules", []string{"examplebot, otherbot"}, "*;noindex, ourbot;nofollow", nil},
		{"empty lines", []string{"", " "}, "*;noindex, ourbot;nofollow", nil},
		{"legacy date beside an equals sign", []string{"unavailable_after: 25 Jun 2027 15:00:00 GMT, max-snippet=9"}, `*;noindex;max-snippet=9;unavailable_after="2027-06-25T15:00:00Z", ourbot;nofollow`, []Kind{Repaired}},
		{"a token that can be no crawler's", []string{"1;nofollow", "<b>;nosnippet"}, "*;noindex;nofollow;nosnippet", []Kind{Repaired, Repaired}},
		{"a number among members", []string{"*;nosnippet, 42"}, "*;noindex;nosnippet, ourbot;nofollow", []Kind{Malformed, Repaired}},
		{"nothing but a number", []string{"42"}, "*;noindex, ourbot;nofollow", []Kind{Malformed}},
		{"white space before semicolons", []string{"*; nosnippet ; nofollow"}, "*;noindex;nofollow;nosnippet", []Kind{Repaired}},
		{"an odd parameter", []string{"*;nosnippet;4=5;nofollow, googlebot; noarchive ;"}, "*;noindex;nofollow;nosnippet, googlebot;noarchive", []Kind{Repaired, RuleLost}},
		{"white space for semicolons", []string{"* nosnippet nofollow", "googlebot = noarchive"}, "*;noindex;nofollow;nosnippet, googlebot;noarchive", []Kind{Repaired, Repaired}},
		{"white space for commas", []string{"nosnippet nofollow, noarchive"}, "*;noindex;nofollow;nosnippet;noarchive", []Kind{Repaired}},
		{"a String without an end", []string{`*;x="a, googlebot;nosnippet`}, "*;noindex;x=a, googlebot;nosnippet, ourbot;nofollow", []Kind{Repaired}},
		{"a date without quotes", []string{"*;unavailable_after=Sat, 26 Dec 2026 12:00:00 GMT, a;nosnippet"}, `*;noindex;unavailable_after="2026-12-26T12:00:00Z", a;nosnippet, ourbot;nofollow`, []Kind{Repaired}},
		{"two dates, one readable", []string{`*;unavailable_after="26 Dec 2026 12:00 Europe/Berlin";max-snippet=many`, `*;unavailable_after="20270101T000000Z";max-snippet=9`}, `*;max-snippet=many, *;unavailable_after="26 Dec 2026 12:00 Europe/Berlin", *;noindex;max-snippet=9;unavailable_after="2027-01-01T00:00:00Z", ourbot;nofollow`, nil},
		{"one parameter, two values", []string{"*;foo=1", "*;foo=2"}, "*;foo=2, *;noindex;foo=1, ourbot;nofollow", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := apply(ours, Usage{}, RobotsTagField, c.upstream...)
			if !slices.Equal(got, []string{c.want}) || !slices.Equal(problems, c.problems) {
				t.Errorf("got %q, %v\nwant %q, %v", got, problems, c.want, c.problems)
			}
			tagRules(t, got)
		})
	}
}

func TestMergeXRobotsTag(t *testing.T) {
	ours := list("*", "noindex", "ourbot", "nofollow")
	for _, c := range []struct {
		name     string
		upstream []string
		want     []string
	}{
		{"nothing", nil, []string{"noindex", "ourbot: nofollow"}},
		{"permissive", []string{"index, follow", "all"}, []string{"noindex", "ourbot: nofollow"}},
		{"Nextcloud", []string{"noindex, nofollow"}, []string{"noindex, nofollow"}},
		{"agents kept apart", []string{"googlebot: nofollow", "otherbot: noindex, nosnippet"}, []string{"noindex", "googlebot: nofollow", "otherbot: nosnippet", "ourbot: nofollow"}},
		{"an agent swallows what follows", []string{"nosnippet, googlebot: nofollow, noarchive"}, []string{"noindex, nosnippet", "googlebot: nofollow, noarchive", "ourbot: nofollow"}},
		{"two agents in a line", []string{"a: nofollow, b: nosnippet"}, []string{"noindex", "a: nofollow", "b: nosnippet", "ourbot: nofollow"}},
		{"values are no agents", []string{"max-snippet:20, unavailable_after: 25 Jun 2027 15:00:00 PST, max-image-preview:none"}, []string{"noindex, max-snippet:20, max-image-preview:none, unavailable_after: 25 Jun 2027 23:00:00 GMT", "ourbot: nofollow"}},
		{"agent and date", []string{"googlebot: unavailable_after: Friday, 25-Jun-27 15:00:00 EST, nosnippet"}, []string{"noindex", "googlebot: nosnippet, unavailable_after: 25 Jun 2027 20:00:00 GMT", "ourbot: nofollow"}},
		{"no space", []string{"GoogleBot:nofollow"}, []string{"noindex", "googlebot: nofollow", "ourbot: nofollow"}},
		{"exception spread over lines", []string{"googlebot: noindex", "googlebot: indexifembedded"}, []string{"noindex", "ourbot: nofollow"}},
		{"exception never softens ours", []string{"indexifembedded", "googlebot: indexifembedded"}, []string{"noindex", "ourbot: nofollow"}},
		{"minimum of limits", []string{"max-snippet:50", "max-snippet:20, max-video-preview:-1"}, []string{"noindex, max-snippet:20, max-video-preview:-1", "ourbot: nofollow"}},
		{"unknown rules", []string{"noai, noimageai, foo"}, []string{"noindex, foo, noai, noimageai", "ourbot: nofollow"}},
		{"everyone by name", []string{"*: nosnippet"}, []string{"noindex, nosnippet", "ourbot: nofollow"}},
		{"our crawler", []string{"OurBot: nosnippet"}, []string{"noindex", "ourbot: nofollow, nosnippet"}},
		{"names Robots-Tag cannot hold", []string{"_bot: nosnippet"}, []string{"noindex", "_bot: nosnippet", "ourbot: nofollow"}},
		{"no name at all", []string{"a b c: nofollow"}, []string{"noindex, a b c:nofollow", "ourbot: nofollow"}},
		{"Bing reads both as nocache", []string{"noarchive", "nocache"}, []string{"noindex, noarchive", "ourbot: nofollow"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := apply(ours, Usage{}, XRobotsTagField, c.upstream...)
			if !slices.Equal(got, c.want) || problems != nil {
				t.Errorf("got %q, %v\nwant %q", got, problems, c.want)
			}
		})
	}
	if got, _ := apply(list("ourbot", "nofollow"), Usage{}, XRobotsTagField, "googlebot: noindex", "googlebot: indexifembedded"); !slices.Equal(got, []string{"googlebot: noindex, indexifembedded", "ourbot: nofollow"}) {
		t.Errorf("an upstream's own exception is lost: %q", got)
	}
}

func TestMergeContentUsage(t *testing.T) {
	ours := preferences("n y")
	for _, c := range []struct {
		name     string
		upstream []string
		want     string
		problems []Kind
	}{
		{"nothing", nil, "train-ai=n, search=y", nil},
		{"any no is no", []string{"train-ai=y, search=n"}, "train-ai=n, search=n", nil},
		{"unknown in ours", []string{"ai-use=n"}, "train-ai=n, ai-use=n, search=y", nil},
		{"no is not flipped by a later line", []string{"ai-use=n", "ai-use=y"}, "train-ai=n, ai-use=n, search=y", nil},
		{"nor by a later member", []string{"ai-use=n, ai-use=y"}, "train-ai=n, ai-use=n, search=y", nil},
		{"values that are no preference", []string{`ai-use, search="n", train-ai=no`}, `train-ai=n, ai-use, search="n"`, nil},
		{"malformed line", []string{"ai-use = n", "search=n"}, "train-ai=n, ai-use=n, search=n", []Kind{Repaired}},
		{"a malformed member voids no other", []string{"search=n, AI-Use=n"}, "train-ai=n, ai-use=n, search=n", []Kind{Repaired}},
		{"a number among members", []string{"search=n, 42, ai-use=y"}, "train-ai=n, search=n", []Kind{Repaired, Malformed}},
		{"semicolons for commas", []string{"search=y; ai-use: no; bots = N"}, "train-ai=n, ai-use=n, search=y, bots=n", []Kind{Repaired}},
		{"comma at the end", []string{"search=n,"}, "train-ai=n, search=n", []Kind{Repaired}},
		{"labels to come", []string{`bots=n;x="a,b", foo=(a b)`, "bots=y"}, `train-ai=n, search=y, bots=n;x="a,b", foo=(a b)`, nil},
		{"parameters stay", []string{"search=n;x=1, ai-use=y;y"}, "train-ai=n, ai-use=y;y, search=n;x=1", nil},
		{"long parameters", []string{"search=n;x=" + strings.Repeat("1", 1200)}, "train-ai=n, search=n", []Kind{Repaired}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := apply(nil, ours, contentUsageField, c.upstream...)
			if !slices.Equal(got, []string{c.want}) || !slices.Equal(problems, c.problems) {
				t.Errorf("got %q, %v\nwant %q, %v", got, problems, c.want, c.problems)
			}
		})
	}
}

func TestMergeContentSignal(t *testing.T) {
	field := rights.ContentSignal.Field
	signals := func(verdicts, use string) Usage {
		u := preferences(verdicts)
		u.Publish = &policy.Publish{ContentSignal: policy.On, ContentSignalUse: use}
		return u
	}
	unpublished := preferences("n y")
	for _, c := range []struct {
		name     string
		ours     Usage
		upstream []string
		want     []string
		problems []Kind
	}{
		{"alone", signals("n y", ""), nil, []string{"search=yes, ai-train=no"}, nil},
		{"with a use", signals("n  ", "reference"), nil, []string{"ai-train=no, use=reference"}, nil},
		{"use alone", signals("   ", "immediate"), nil, []string{"use=immediate"}, nil},
		{"any no is no", signals("n y", ""), []string{"ai-train=yes, search=no, ai-input=yes"}, []string{"search=no, ai-input=yes, ai-train=no"}, nil},
		{"names and words in any case", signals("n y", ""), []string{"AI-Train = Yes , Search=NO"}, []string{"search=no, ai-train=no"}, nil},
		{"no is not flipped by a later line", signals("y  ", ""), []string{"ai-train=no", "ai-train=yes"}, []string{"ai-train=no"}, nil},
		{"a narrower use stays", signals("n  ", "full"), []string{"use=reference"}, []string{"ai-train=no, use=reference"}, nil},
		{"a wider use does not", signals("n  ", "immediate"), []string{"use=full"}, []string{"ai-train=no, use=immediate"}, nil},
		{"a use to come", signals("n  ", "full"), []string{"use=some"}, []string{"ai-train=no, use=some"}, nil},
		{"a use in a malformed line", signals("n  ", "full"), []string{"search=yes; use=reference, 42, use=immediate"}, []string{"ai-train=no, use=immediate"}, []Kind{Repaired, Malformed}},
		{"labels to come", signals("n  ", ""), []string{"ai-agent=no"}, []string{"ai-train=no, ai-agent=no"}, nil},
		{"words that are no preference", signals("y  ", ""), []string{"ai-train=n"}, []string{"ai-train=n"}, nil},
		{"not published, and the upstream has none", unpublished, nil, nil, nil},
		{"not published, and the upstream allows", unpublished, []string{"ai-train=yes, search=no"}, []string{"search=no, ai-train=no"}, nil},
		{"not published, and nothing is disallowed", preferences("y y"), []string{"AI-train=no; x"}, []string{"AI-train=no; x"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := apply(nil, c.ours, field, c.upstream...)
			if !slices.Equal(got, c.want) || !slices.Equal(problems, c.problems) {
				t.Errorf("got %q, %v\nwant %q, %v", got, problems, c.want, c.problems)
			}
		})
	}
}

func TestApplyChannels(t *testing.T) {
	full, _ := Build(list("*", "noindex"), preferences("n"), testNow)
	empty, _ := Build(nil, Usage{}, testNow)
	upstream := http.Header{RobotsTagField: {"noindex, nofollow"}, XRobotsTagField: {"nofollow"}, contentUsageField: {"search=n"}, "Vary": {"Accept"}}
	for _, c := range []struct {
		name string
		v    *Values
		o    Channels
		want http.Header
	}{
		{"nil values", nil, AllChannels, upstream},
		{"no channel", full, 0, upstream},
		{"nothing to say", empty, AllChannels, upstream},
		{"one channel", full, XRobotsTag, http.Header{RobotsTagField: {"noindex, nofollow"}, XRobotsTagField: {"noindex, nofollow"}, contentUsageField: {"search=n"}, "Vary": {"Accept"}}},
		{"merge", full, AllChannels, http.Header{RobotsTagField: {"*;noindex;nofollow"}, XRobotsTagField: {"noindex, nofollow"}, contentUsageField: {"train-ai=n, search=n"}, "Vary": {"Accept"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := upstream.Clone()
			Apply(h, c.v, c.o)
			if len(h) != len(c.want) {
				t.Errorf("got %q, want %q", h, c.want)
			}
			for name, want := range c.want {
				if !slices.Equal(h[name], want) {
					t.Errorf("%s: got %q, want %q", name, h[name], want)
				}
			}
		})
	}
}

func TestMergeLimits(t *testing.T) {
	ours := list("*", "noindex", "ourbot", "nofollow")
	longRules := "otherbot;" + strings.Repeat("x", Limit-60)
	for _, c := range []struct {
		name     string
		upstream []string
		want     string // a text that the result must contain
		problem  Kind
	}{
		{"300 lines", slices.Repeat([]string{"*;nosnippet"}, 300), "*;noindex;nosnippet, ourbot;nofollow", ""},
		{"64 KiB in one line", []string{"*;nosnippet" + strings.Repeat(", somebot;nofollow", 4000)}, "*;noindex;nosnippet, ourbot;nofollow, somebot;nofollow", Unread},
		{"64 KiB in one member", []string{"*;nosnippet;a=\"" + strings.Repeat(",", 64<<10) + `"`}, "*;noindex;nosnippet;a, ourbot;nofollow", Unread},
		{"a member that does not fit", []string{"*;nosnippet", longRules, "abot;noarchive"}, "*;noindex;nosnippet, abot;noarchive, ourbot;nofollow", TooLong},
		{"unknown rules that do not fit", []string{"*;nosnippet;" + strings.Repeat("x", Limit)}, "*;noindex;nosnippet, ourbot;nofollow", TooLong},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := apply(ours, Usage{}, RobotsTagField, c.upstream...)
			if c.problem == "" && problems != nil || c.problem != "" && !slices.Contains(problems, c.problem) {
				t.Errorf("problems: %v, want %q", problems, c.problem)
			}
			if !slices.Equal(got, []string{c.want}) {
				t.Errorf("got %.200q, want %q", got, c.want)
			}
		})
	}
	if got, problems := apply(ours, Usage{}, RobotsTagField, append(slices.Repeat([]string{"*;a=\"" + strings.Repeat("x", 200) + `"`}, 300), "*;nosnippet")...); strings.Contains(got[0], "nosnippet") || !slices.Contains(problems, Unread) {
		t.Errorf("more than %d bytes are read: %q, %v", readLimit, got, problems)
	}
	// The merged rules for everyone include the rule for ourbot, so ourbot does not need a member. The rules for
	// everyone need two members here, because the rule foo has two values.
	if got, problems := apply(list("*", "noindex", "ourbot", "foo:2"), Usage{}, RobotsTagField, "*;foo=1, *;foo=2"); !slices.Equal(got, []string{"*;foo=2, *;noindex;foo=1"}) || problems != nil {
		t.Errorf("%q, %v", got, problems)
	}
	// The policy's rules for crawlers almost fill the field. When the upstream's rules for everyone are added, one of
	// the crawlers does not fit.
	var full []Member
	for i := range (Limit - 20) / len("crawler-0000;noindex, ") {
		full = append(full, Member{fmt.Sprintf("crawler-%04d", i), robotsrule.Of("noindex")})
	}
	for i := range full[len(full)-5:] {
		full[len(full)-1-i].Rules = robotsrule.Of("nosnippet")
	}
	if got, problems := apply(full, Usage{}, RobotsTagField, "*;unavailable_after=@4102444800;noarchive"); !slices.Contains(problems, TooLong) ||
		!strings.HasPrefix(got[0], "*;nosnippet;noarchive;unavailable_after=\"2100-01-01T00:00:00Z\", crawler-0000;noindex, ") || length(got) > Limit {
		t.Errorf("%v, %.200q", problems, got)
	}
	many := make([]string, 300)
	for i := range many {
		many[i] = strings.Repeat("z", 20+i%100) + "bot" + strings.Repeat("y", i/100) + ": nosnippet"
	}
	got, problems := apply(ours, Usage{}, XRobotsTagField, many...)
	if length(got) > Limit || got[0] != "noindex" || !strings.Contains(strings.Join(got, ", "), "ourbot: nofollow") || !slices.Contains(problems, TooLong) && !slices.Contains(problems, Unread) {
		t.Errorf("%d bytes, %v: %.200q", length(got), problems, got)
	}
}

// In X-Robots-Tag, readers take the word before a colon as the name of a crawler if it is not the name of a known rule.
// So an unknown rule must be written with an equals sign, as in z=1. This is also necessary at the end of a malformed
// value and within quotation marks, because some readers ignore quotation marks.
func TestUnknownRuleIsNoUserAgent(t *testing.T) {
	v, _ := Build(list("*", "noarchive"), Usage{}, testNow)
	for theirs, want := range map[string]string{
		"max-snippet:z:1, z=1": "noarchive, max-snippet:z:1, z=1",
		`"z=1;nosnippet`:       `noarchive, "z=1;nosnippet`,
		// The text after the comma is part of the malformed date, and not a rule for a user agent.
		"unavailable_after:0000000, 00!a:1": "noarchive, unavailable_after:0000000, 00!a:1",
	} {
		h := http.Header{XRobotsTagField: {theirs}}
		Apply(h, v, AllChannels)
		if got := h[XRobotsTagField]; !slices.Equal(got, []string{want}) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

var contentUsageField = rights.ContentUsage.Field

// preferences returns preferences for the field Content-Usage. The three letters stand for train-ai, ai-use and search.
// Each is y (allowed), n (disallowed) or a space (unstated).
func preferences(letters string) Usage {
	u := Usage{Publish: &policy.Publish{ContentUsage: policy.On}}
	for i, c := range letters {
		u.Verdicts[i] = map[rune]policy.Verdict{'y': policy.Allowed, 'n': policy.Disallowed}[c]
	}
	return u
}

// If only the policy or only the upstream has a preference for a usage, this preference applies. If both have a
// preference, the stricter one applies (draft-ietf-aipref-vocab section 5.1).
func TestCombine(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"nny", "   ", "nny"}, {"   ", "nny", "nny"}, {"n  ", " n ", "nn "}, {"yyy", "n n", "nyn"}, {"  y", "  n", "  n"}, {" y ", "   ", " y "},
	} {
		if got := preferences(c.a).Combine(preferences(c.b).Verdicts); got != preferences(c.want).Verdicts {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
}

// If the policy adds Robots-Tag to a response, Robots-Tag must also have the upstream's rules from X-Robots-Tag. A
// reader that supports both fields may ignore the older one (draft-illyes-repext-02, Application Layer Response
// Header).
func TestOldNameInTheNewOne(t *testing.T) {
	ours, _ := Build(list("*", "nofollow"), Usage{}, testNow)
	for name, tt := range map[string]struct {
		x        []string
		channels Channels
		want     string
	}{
		"everyone":              {[]string{"noindex"}, AllChannels, "*;noindex;nofollow"},
		"only the new name":     {[]string{"noindex"}, RobotsTag, "*;noindex;nofollow"},
		"a crawler":             {[]string{"otherbot: noindex"}, AllChannels, "*;nofollow, otherbot;noindex"},
		"unknown rules":         {[]string{"foo, noindex"}, AllChannels, "*;noindex;nofollow"},
		"permissions":           {[]string{"all, index"}, AllChannels, "*;nofollow"},
		"the same":              {[]string{"nofollow"}, AllChannels, "*;nofollow"},
		"a name that is no key": {[]string{"9bot: noindex"}, AllChannels, "*;nofollow"},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{XRobotsTagField: tt.x}
			for range 2 {
				if problems := Apply(h, ours, tt.channels); len(problems) > 0 && name != "unknown rules" {
					t.Error(problems)
				}
				if got := h.Get(RobotsTagField); got != tt.want {
					t.Errorf("%q, want %q", got, tt.want)
				}
			}
		})
	}
}
