// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

var testNow = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// list returns members from pairs of a token and rules.
func list(pairs ...string) []Member {
	var members []Member
	for i := 0; i < len(pairs); i += 2 {
		members = append(members, Member{pairs[i], robotsrule.Parse(pairs[i+1])})
	}
	return members
}

func kinds(problems []Problem) []Kind {
	var k []Kind
	for _, p := range problems {
		k = append(k, p.Kind)
	}
	return k
}

func TestBuild(t *testing.T) {
	for _, c := range []struct {
		name     string
		members  []Member
		usage    Usage
		rt, x    []string
		cu       []string
		problems []Kind
	}{
		{name: "nothing"},
		{
			name: "1.5 everyone", members: list("*", "noindex, nosnippet"),
			rt: []string{"*;noindex;nosnippet"}, x: []string{"noindex, nosnippet"},
		},
		{
			name: "1.5 one crawler", members: list("ExampleBot", "noindex"),
			rt: []string{"examplebot;noindex"}, x: []string{"examplebot: noindex"},
		},
		{
			name: "1.5 both, in any order", members: list("ExampleBot", "noindex", "*", "nosnippet"),
			rt: []string{"*;nosnippet, examplebot;noindex"}, x: []string{"nosnippet", "examplebot: noindex"},
		},
		{
			name: "1.5 all together", members: list("*", "unavailable_after: 31 Dec 2026 23:59:59 GMT, max-image-preview:large, max-snippet:250, max-video-preview:-1, noindex"),
			rt: []string{`*;noindex;max-snippet=250;max-image-preview=large;max-video-preview=-1;unavailable_after="2026-12-31T23:59:59Z"`},
			x:  []string{"noindex, max-snippet:250, max-image-preview:large, max-video-preview:-1, unavailable_after: 31 Dec 2026 23:59:59 GMT"},
		},
		{
			name: "only what a crawler adds", members: list("*", "noindex, max-snippet:20", "a-bot", "noindex, max-snippet:50, nofollow", "b-bot", "noindex", "c-bot", "nosnippet"),
			rt: []string{"*;noindex;max-snippet=20, a-bot;nofollow, c-bot;nosnippet"},
			x:  []string{"noindex, max-snippet:20", "a-bot: nofollow", "c-bot: nosnippet"},
		},
		{
			name: "tokens are sorted and united", members: list("zbot", "noindex", "Abot", "nofollow", "ABOT", "noindex"),
			rt: []string{"abot;noindex;nofollow, zbot;noindex"}, x: []string{"abot: noindex, nofollow", "zbot: noindex"},
		},
		{
			name: "tokens Robots-Tag cannot name", members: list("_bot", "noindex", "-bot", "noindex", "360Spider", "noindex", "MJ12bot", "noindex"),
			rt: []string{"mj12bot;noindex"}, x: []string{"-bot: noindex", "360spider: noindex", "_bot: noindex", "mj12bot: noindex"},
			problems: []Kind{NoRobotsTag, NoRobotsTag, NoRobotsTag},
		},
		{
			name: "tokens no field can name", members: list("a b", "noindex", "a:b", "noindex", "a\r\nSet-Cookie", "noindex", "", "noindex", "noindex", "noindex", "max-snippet", "nofollow"),
			problems: []Kind{BadToken, BadToken, BadToken, BadToken, BadToken, BadToken},
		},
		{name: "permissive words", members: list("*", "all, index, follow", "googlebot", "indexifembedded")},
		{
			name: "exception to noindex", members: list("*", "noindex, indexifembedded"),
			rt: []string{"*;noindex"}, x: []string{"noindex, indexifembedded"},
		},
		{
			name: "exception beside a crawler's noindex", members: list("*", "noindex, indexifembedded", "examplebot", "noindex"),
			rt: []string{"*;noindex"}, x: []string{"noindex"},
		},
		{name: "AIPREF", usage: preferences("nny"), cu: []string{"train-ai=n, ai-use=n, search=y"}},
		{name: "AIPREF unknown", usage: preferences("  n"), cu: []string{"search=n"}},
		{
			name: "a rule one field has no room for", members: list("*", "noindex, 9lives, foo:bar, a=1, max-snippet:many"),
			rt: []string{`*;noindex;a=1;foo=bar;max-snippet="many"`}, x: []string{"noindex, 9lives, a=1, foo=bar, max-snippet:many"}, problems: []Kind{RuleLost},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, problems := Build(c.members, c.usage, testNow)
			if !slices.Equal(v.RobotsTag, c.rt) || !slices.Equal(v.XRobotsTag, c.x) || !slices.Equal(v.Preferences[0], c.cu) {
				t.Errorf("got %q, %q, %q\nwant %q, %q, %q", v.RobotsTag, v.XRobotsTag, v.Preferences[0], c.rt, c.x, c.cu)
			}
			if !slices.Equal(kinds(problems), c.problems) {
				t.Errorf("problems %v, want %v", problems, c.problems)
			}
			tagRules(t, v.RobotsTag)
		})
	}
}

// An unavailable_after that has passed is written as noindex.
func TestExpired(t *testing.T) {
	members := list("*", "nofollow, unavailable_after: 2026-12-31T23:59:59Z", "examplebot", "unavailable_after: 2026-12-01T10:00:00Z", "otherbot", "unavailable_after: 2026-11-01T00:00:00Z")
	for _, c := range []struct {
		now time.Time
		x   []string
	}{
		{testNow, []string{"nofollow, unavailable_after: 31 Dec 2026 23:59:59 GMT", "examplebot: unavailable_after: 1 Dec 2026 10:00:00 GMT", "otherbot: noindex"}},
		{time.Date(2026, 12, 1, 10, 0, 1, 0, time.UTC), []string{"nofollow, unavailable_after: 31 Dec 2026 23:59:59 GMT", "examplebot: noindex", "otherbot: noindex"}},
		{time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), []string{"noindex, nofollow"}},
	} {
		if v, _ := Build(members, Usage{}, c.now); !slices.Equal(v.XRobotsTag, c.x) {
			t.Errorf("at %v: %q\nwant %q", c.now, v.XRobotsTag, c.x)
		}
	}
}

func TestBuildLimits(t *testing.T) {
	var many []Member
	for i := range 2000 {
		many = append(many, Member{fmt.Sprintf("crawler-%04d", i), robotsrule.Of("noindex")})
	}
	many = append(many, list("*", "nofollow")...)
	v, problems := Build(many, Usage{}, testNow)
	if !slices.Equal(v.RobotsTag, []string{"*;noindex;nofollow"}) || !slices.Equal(v.XRobotsTag, []string{"noindex, nofollow"}) {
		t.Errorf("what does not fit is not said to everyone: %.200q, %.200q", v.RobotsTag, v.XRobotsTag)
	}
	if len(problems) == 0 || len(problems) > 2*maxProblems+2 || !slices.Contains(kinds(problems), TooLong) {
		t.Errorf("problems: %v", kinds(problems))
	}
	for i := range many { // some of these members do not fit, but only the last ones
		if i < 100 {
			many[i].Rules = robotsrule.Of("nosnippet")
		}
	}
	if v, _ = Build(many, Usage{}, testNow); length(v.RobotsTag) < 100*len("crawler-0000;nosnippet, ") || tagRules(t, v.RobotsTag)["crawler-0099"] == nil || tagRules(t, v.RobotsTag)["crawler-0100"] != nil {
		t.Errorf("%.200q", v.RobotsTag)
	}
	if tagRules(t, v.RobotsTag)["*"] == nil || v.XRobotsTag[0] != "noindex, nofollow" {
		t.Errorf("everyone's member is not the first: %q", v.XRobotsTag[0])
	}
	long := robotsrule.Of("noindex", "foo"+strings.Repeat("o", Limit))
	v, problems = Build([]Member{{"*", long}}, Usage{}, testNow)
	if !slices.Equal(v.RobotsTag, []string{"*;noindex"}) || !slices.Equal(kinds(problems), []Kind{TooLong, TooLong}) {
		t.Errorf("%q, %v", v.RobotsTag, problems)
	}
}

func TestProblemString(t *testing.T) {
	for _, k := range []Kind{Malformed, Repaired, TooLong, Unread, BadToken, NoRobotsTag, RuleLost} {
		p := addProblem(nil, k, RobotsTagField, strings.Repeat("é", 500))[0]
		if s := p.String(); len(s) > 400 || !strings.Contains(s, "é") || strings.Contains(s, "\ufffd") || strings.HasSuffix(s, ".") {
			t.Errorf("%s: %q", k, s)
		}
	}
}

// TestSharing shows why Apply copies values. Handlers that run later may change the values in place, for example
// Caddy's header directive when it replaces text.
func TestSharing(t *testing.T) {
	v, _ := Build(list("*", "noindex", "examplebot", "nofollow"), preferences("n"), testNow)
	h := http.Header{}
	Apply(h, v, AllChannels)
	for name, lines := range h {
		for i := range lines {
			lines[i] = "changed"
		}
		h[name] = append(lines, "added")
	}
	if v.RobotsTag[0] != "*;noindex, examplebot;nofollow" || v.XRobotsTag[1] != "examplebot: nofollow" || v.Preferences[0][0] != "train-ai=n" {
		t.Fatalf("the values were changed: %q, %q, %q", v.RobotsTag, v.XRobotsTag, v.Preferences[0])
	}
	if len(h) != 3 || h[XRobotsTagField][1] != "changed" || h[RobotsTagField][1] != "added" {
		t.Fatalf("one field's lines run into another's: %q", h)
	}
}

// length returns the length of lines after an intermediary has joined them.
func length(lines []string) int { return len(strings.Join(lines, separator)) }

// A line of X-Robots-Tag in the syntax of Robots-Tag has the same meaning as in Robots-Tag (draft-illyes-repext section
// 2.1.1).
func TestXRobotsTagInTheNewSyntax(t *testing.T) {
	for line, want := range map[string]map[string]string{
		"*;noindex;nosnippet":             {Everyone: "noindex, nosnippet"},
		"*;noindex, ExampleBot;nofollow":  {Everyone: "noindex", "examplebot": "nofollow"},
		"noindex, nofollow":               {Everyone: "noindex, nofollow"},
		"examplebot: noindex; x":          {"examplebot": "noindex; x"},
		"noindex;nofollow":                {Everyone: "noindex;nofollow"},
		"googlebot: nofollow, *;noindex":  {"googlebot": "nofollow, *;noindex"},
		"*;unknown-rule":                  {Everyone: "*;unknown-rule"},
		"ExampleBot;max-snippet=50, *;ok": {"examplebot": "max-snippet:50"},
	} {
		found, problems := readXRobotsTag([]string{line})
		got := map[string]string{}
		for token, rules := range found {
			if rules.WithoutUnknown() == rules || token == Everyone && want[Everyone] != "" || token != Everyone && want[token] != "" {
				got[token] = rules.String()
			}
		}
		for token, rules := range want {
			if got[token] != rules || len(problems) > 0 {
				t.Errorf("%q: %q for %s, want %q (%v)", line, got[token], token, rules, problems)
			}
		}
	}
}
