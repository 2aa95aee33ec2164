// SPDX-License-Identifier: Apache-2.0

package robotstag_test

import (
	"slices"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

var (
	everyone = policy.Audience{}
	botA     = policy.Audience{Kind: policy.ForToken, Name: "BotA"}
	june     = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
)

func say(allow bool, u policy.Usage, pattern string, qualifiers ...string) policy.Statement {
	s := policy.Statement{Allow: allow, Usage: u, Pattern: pathpattern.MustParse(pattern)}
	for i := 0; i < len(qualifiers); i += 2 {
		if s.Qualifiers == nil {
			s.Qualifiers = &policy.Qualifiers{}
		}
		if err := s.Qualifiers.SetQualifier(u, policy.QualifierName(qualifiers[i]), qualifiers[i+1]); err != nil {
			panic(err)
		}
	}
	return s
}

func compile(t *testing.T, rules ...policy.Rule) *policy.Policy {
	t.Helper()
	p := policy.Compile(&policy.Spec{Rules: rules, Publish: policy.Publish{ContentUsage: policy.On}, Crawlers: []policy.Crawler{
		{Token: "BotA"}, {Token: "BotA-Extended", RobotsOnly: true, Category: "ai-training"}, {Token: "BotB", Category: "ai-training"},
	}})
	return p
}

// Each case has a statement of a policy, and the robots control rules that it leads to. Some statements do not lead to
// any rules.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name  string
		s     policy.Statement
		want  string
		lost  []string
		until string
	}{
		{"crawl has no header", say(false, policy.Crawl, "/"), "", nil, ""},
		{"follow", say(false, policy.Follow, "/"), "nofollow", nil, ""},
		{"index", say(false, policy.Index, "/"), "noindex", nil, ""},
		{"preserve", say(false, policy.Preserve, "/"), "noarchive", nil, ""},
		{"snippet", say(false, policy.PresentSnippet, "/"), "nosnippet", nil, ""},
		{"thumbnail", say(false, policy.PresentThumbnail, "/"), "max-image-preview:none, max-video-preview:0", nil, ""},
		{"link", say(false, policy.PresentLink, "/"), "noindex", nil, ""},
		{"original", say(false, policy.PresentOriginal, "/"), "", nil, ""},
		{"present is all that is derived from it", say(false, policy.Present, "/"), "noindex, noarchive, nosnippet, max-image-preview:none, max-video-preview:0", nil, ""},
		{"other is every usage but crawl", say(false, policy.Other, "/"), "noindex, nofollow, noarchive, nosnippet, max-image-preview:none, max-video-preview:0", nil, ""},
		{"train-ai is no robots control rule", say(false, policy.TrainAI, "/"), "", nil, ""},
		{"a date to come", say(true, policy.Index, "/", "time-limit", "until-2026-12-31"), "unavailable_after: 31 Dec 2026 23:59:59 GMT", nil, "2027-01-01T00:00:00Z"},
		{"a date behind", say(true, policy.Index, "/", "time-limit", "until-2026-06-14"), "noindex", nil, ""},
		{"a date for snippets", say(true, policy.PresentSnippet, "/", "time-limit", "until-2026-06-15"), "", nil, "2026-06-16T00:00:00Z"},
		{"days", say(true, policy.Index, "/", "time-limit", "3-days"), "", []string{"time-limit=3-days"}, ""},
		{"until recrawled", say(true, policy.Index, "/", "time-limit", "until-recrawled"), "", nil, ""},
		{"characters", say(true, policy.PresentSnippet, "/", "max-length", "250-chars"), "max-snippet:250", nil, ""},
		{"no characters", say(true, policy.PresentSnippet, "/", "max-length", "0-chars"), "nosnippet", nil, ""},
		{"words: as many characters as cannot be more words", say(true, policy.PresentSnippet, "/", "max-length", "30-words"), "max-snippet:59", nil, ""},
		{"no words", say(true, policy.PresentSnippet, "/", "max-length", "0-words"), "nosnippet", nil, ""},
		{"translation", say(true, policy.Present, "/", "prohibited-modification", "translation"), "notranslate", nil, ""},
		{"modifications", say(true, policy.Present, "/", "prohibited-modification", "any"), "notranslate", []string{"prohibited-modification=any"}, ""},
		{"style", say(true, policy.PresentOriginal, "/", "prohibited-modification", "style"), "", []string{"prohibited-modification=style"}, ""},
		{"a resource to use", say(true, policy.Index, "/", "must-use-resource", "/abstract"), "", []string{"must-use-resource=/abstract"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := compile(t, policy.Rule{For: []policy.Audience{everyone}, Statements: []policy.Statement{c.s}})
			q := policy.Query{Path: "/x", Now: june}
			got, until := robotstag.Rules(p, q)
			if !got.Equal(robotsrule.Parse(c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if text := until.Format(time.RFC3339); text != c.until && !(until.IsZero() && c.until == "") {
				t.Errorf("changes at %s, want %q", text, c.until)
			}
			q.Usage = c.s.Usage
			if lost := robotstag.Lost(c.s.Usage, p.Decide(q)); !slices.Equal(lost, c.lost) {
				t.Errorf("lost %q, want %q", lost, c.lost)
			}
		})
	}
}

// A header cannot express a condition on the identity. Therefore the strictest of the decisions for all identities
// applies.
func TestRulesOfIdentities(t *testing.T) {
	p := compile(t,
		policy.Rule{For: []policy.Audience{everyone}, Statements: []policy.Statement{say(false, policy.Index, "/"), say(false, policy.TrainAI, "/")}},
		policy.Rule{For: []policy.Audience{everyone}, Identity: policy.DemandVerified, Statements: []policy.Statement{say(true, policy.Index, "/x"), say(true, policy.TrainAI, "/x")}},
	)
	q := policy.Query{Path: "/x", Now: june}
	if got, _ := robotstag.Rules(p, q); got.String() != "noindex" {
		t.Errorf("got %q", got)
	}
	if got, _ := robotstag.Preferences(p, q); rights.ContentUsage.Text(got.Verdicts(), "") != "train-ai=n" {
		t.Errorf("got %q", got.Verdicts())
	}
}

func TestPreferences(t *testing.T) {
	p := compile(t,
		policy.Rule{For: []policy.Audience{everyone}, Statements: []policy.Statement{
			say(false, policy.TrainAI, "/"), say(true, policy.AIUse, "/open/"), say(true, policy.Search, "/open/"), say(false, policy.Index, "/"),
		}},
		policy.Rule{For: []policy.Audience{botA}, Statements: []policy.Statement{say(false, policy.Search, "/")}},
	)
	for path, want := range map[string]string{"/": "train-ai=n", "/open/": "train-ai=n, ai-use=y, search=y"} {
		if got, _ := robotstag.Preferences(p, policy.Query{Path: path}); rights.ContentUsage.Text(got.Verdicts(), "") != want {
			t.Errorf("%s: got %q, want %q", path, got.Verdicts(), want)
		}
	}
}

// A preference only appears in header fields of vocabularies that the policy publishes. This is the same as for the
// lines of robots.txt.
func TestPreferencesAreSwitchedOff(t *testing.T) {
	rules := []policy.Rule{{Statements: []policy.Statement{say(false, policy.TrainAI, "/")}, For: []policy.Audience{everyone}}}
	p := policy.Compile(&policy.Spec{Rules: rules, Publish: policy.Publish{ContentSignal: policy.On}})
	got, _ := robotstag.Preferences(p, policy.Query{Path: "/"})
	v, _ := robotstag.Build(nil, robotstag.Usage{Verdicts: got.Verdicts(), Publish: &p.Spec().Publish}, june)
	if v.Preferences[0] != nil || !slices.Equal(v.Preferences[1], []string{"ai-train=no"}) {
		t.Errorf("got %q", v.Preferences)
	}
}

// The words noai and noimageai are only for everyone, because their readers do not look for members with their names.
func TestNoAI(t *testing.T) {
	rules := []policy.Rule{
		{For: []policy.Audience{everyone}, Statements: []policy.Statement{say(false, policy.TrainAI, "/art/")}},
		{For: []policy.Audience{botA}, Statements: []policy.Statement{say(false, policy.TrainAI, "/"), say(false, policy.Index, "/")}},
	}
	for path, want := range map[string][]string{"/": {"bota: noindex"}, "/art/": {"noai, noimageai", "bota: noindex"}} {
		for _, on := range []policy.Switch{policy.On, policy.Off} {
			p := policy.Compile(&policy.Spec{Rules: rules, Publish: policy.Publish{NoAI: on}, Crawlers: []policy.Crawler{{Token: "BotA"}}})
			members, _ := robotstag.Members(p, policy.Query{Path: path, Now: june})
			v, _ := robotstag.Build(members, robotstag.Usage{}, june)
			if on == policy.Off {
				want = []string{"bota: noindex"}
			}
			if !slices.Equal(v.XRobotsTag, want) {
				t.Errorf("%s, %d: got %q, want %q", path, on, v.XRobotsTag, want)
			}
		}
	}
}

// Control tokens do not get a member, because no client with such a name reads headers. A rule for a category has a
// member for each of its crawlers.
func TestMembers(t *testing.T) {
	p := compile(t,
		policy.Rule{For: []policy.Audience{everyone}, Statements: []policy.Statement{say(false, policy.PresentSnippet, "/")}},
		policy.Rule{For: []policy.Audience{{Kind: policy.ForCategory, Name: "ai-training"}, botA}, Statements: []policy.Statement{say(false, policy.Index, "/a")}},
	)
	members, _ := robotstag.Members(p, policy.Query{Path: "/a"})
	var got []string
	for _, m := range members {
		got = append(got, m.Token+" "+m.Rules.String())
	}
	want := []string{"* nosnippet", "BotA noindex", "BotB noindex"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
