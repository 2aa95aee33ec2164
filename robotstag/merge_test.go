// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

var (
	someTokens = []string{"*", "*", "ABot", "bbot", "c-bot", "_dbot", "360bot", "Googlebot"}
	someRules  = []string{
		"all", "index", "follow", "noindex", "none", "nofollow", "indexifembedded", "nosnippet", "noarchive", "notranslate", "noimageindex",
		"max-snippet:-1", "max-snippet:0", "max-snippet:20", "max-snippet:many", "max-video-preview:-1", "max-video-preview:7",
		"max-image-preview:none", "max-image-preview:standard", "max-image-preview:large", "noai", "foo",
		"unavailable_after: 2027-12-31T23:59:59Z", "unavailable_after: Friday, 25-Jun-27 15:00:00 GMT",
	}
	someUsage = []string{"train-ai=y", "train-ai=n", "ai-use=n", "search=y", "search=n", "bots=n", "x", `y="a,b"`}
)

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

func picks(r *rand.Rand, from []string, most int) []string {
	var p []string
	for range r.IntN(most + 1) {
		p = append(p, pick(r, from))
	}
	return p
}

func randomValues(r *rand.Rand) *Values {
	var members []Member
	for range r.IntN(4) {
		members = append(members, Member{pick(r, someTokens), robotsrule.Of(picks(r, someRules, 3)...)})
	}
	var usage Usage
	for i := range usage.Verdicts {
		usage.Verdicts[i] = policy.Verdict(r.IntN(3))
	}
	v, _ := Build(members, usage, testNow)
	return v
}

// randomHeader returns an upstream's header in which every line follows the specification of its field.
func randomHeader(r *rand.Rand) http.Header {
	h := http.Header{}
	for range r.IntN(3) {
		line := strings.Join(picks(r, someRules, 3), ", ")
		if token := pick(r, someTokens); token != "*" {
			line = token + ": " + line
		}
		h.Add(XRobotsTagField, line)
	}
	for range r.IntN(3) {
		var members []string
		for range r.IntN(3) + 1 {
			token := pick(r, someTokens)
			if token != "*" && !isKey(strings.ToLower(token)) {
				continue
			}
			text, _ := robotsTagMember(token, robotsrule.Of(picks(r, someRules, 3)...))
			if text == "" {
				text = token
			}
			members = append(members, text)
		}
		h.Add(RobotsTagField, strings.Join(members, ", "))
	}
	for range r.IntN(3) {
		h.Add(contentUsageField, strings.Join(picks(r, someUsage, 3), ", "))
	}
	return h
}

const all = AllChannels

func applied(h http.Header, vs ...*Values) (http.Header, []Problem) {
	h = h.Clone()
	var problems []Problem
	for _, v := range vs {
		problems = append(problems, Apply(h, v, all)...)
	}
	return h, problems
}

func equalHeaders(a, b http.Header) bool {
	return maps.EqualFunc(a, b, slices.Equal[[]string])
}

// agents returns all crawlers that the headers name, and one that they do not name.
func agents(t *testing.T, hs ...http.Header) []string {
	names := map[string]bool{"stranger": true}
	for _, h := range hs {
		for a := range crawlertest.XRules(h[XRobotsTagField]) {
			names[a] = true
		}
	}
	for _, token := range someTokens {
		names[strings.ToLower(token)] = true
	}
	return slices.Collect(maps.Keys(names))
}

func usageOf(t *testing.T, lines []string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, line := range lines {
		d, err := httpsfv.UnmarshalDictionary([]string{line})
		if err != nil {
			t.Fatalf("%q is no Dictionary: %v", line, err)
		}
		for _, name := range d.Names() {
			m, _ := d.Get(name)
			text, _ := httpsfv.Marshal(m)
			if found[name] != "n" {
				found[name] = text
			}
		}
	}
	return found
}

// checkOurs checks that a merged header is at least as strict as v.
func checkOurs(t *testing.T, h http.Header, v *Values) {
	t.Helper()
	for name, lines := range h {
		if n := length(lines); n > Limit {
			t.Fatalf("%s has %d bytes", name, n)
		}
		for _, l := range lines {
			if strings.ContainsAny(l, "\r\n\x00") {
				t.Fatalf("%s: %q has a control character", name, l)
			}
		}
	}
	out := usageOf(t, h[contentUsageField])
	for name, value := range usageOf(t, v.Preferences[0]) {
		if value == "n" && out[name] != "n" || out[name] == "" {
			t.Fatalf("Content-Usage is %q, ours %q", h[contentUsageField], v.Preferences[0])
		}
	}
	for _, agent := range agents(t, http.Header{XRobotsTagField: v.XRobotsTag}) {
		if got, ours := crawlertest.EvaluateX(h[XRobotsTagField], agent), crawlertest.EvaluateX(v.XRobotsTag, agent); !got.Within(ours) {
			t.Fatalf("X-Robots-Tag %q allows %s more than ours %q\n%+v\n%+v", h[XRobotsTagField], agent, v.XRobotsTag, got, ours)
		}
		if len(v.RobotsTag) == 0 {
			continue
		}
		if got, ours := evaluateTag(t, h[RobotsTagField], agent), evaluateTag(t, v.RobotsTag, agent); !got.Within(ours) {
			t.Fatalf("Robots-Tag %q allows %s more than ours %q\n%+v\n%+v", h[RobotsTagField], agent, v.RobotsTag, got, ours)
		}
	}
}

// checkUpstream checks that a merged header is at least as strict as upstream, whose lines must all be well-formed.
func checkUpstream(t *testing.T, got, upstream http.Header) {
	t.Helper()
	for _, agent := range agents(t, upstream) {
		if g, u := crawlertest.EvaluateX(got[XRobotsTagField], agent), crawlertest.EvaluateX(upstream[XRobotsTagField], agent); !g.Within(u) {
			t.Fatalf("X-Robots-Tag %q allows %s more than the upstream's %q\n%+v\n%+v", got[XRobotsTagField], agent, upstream[XRobotsTagField], g, u)
		}
		u := crawlertest.AllRights()
		for _, line := range upstream[RobotsTagField] {
			list, err := crawlertest.Read8941(line)
			if err != nil {
				t.Fatalf("the upstream's %q: %v", line, err)
			}
			for _, m := range list {
				if m.Token != "*" && strings.ToLower(m.Token) != agent {
					continue
				}
				for k, value := range m.Params {
					u = u.And(crawlertest.Evaluate([][2]string{{k, value}}))
				}
			}
		}
		if g := evaluateTag(t, got[RobotsTagField], agent); !g.Within(u) {
			t.Fatalf("Robots-Tag %q allows %s more than the upstream's %q\n%+v\n%+v", got[RobotsTagField], agent, upstream[RobotsTagField], g, u)
		}
	}
	out := usageOf(t, got[contentUsageField])
	for name, value := range usageOf(t, upstream[contentUsageField]) {
		if value == "n" && out[name] != "n" || out[name] == "" {
			t.Fatalf("Content-Usage is %q, the upstream's %q", got[contentUsageField], upstream[contentUsageField])
		}
	}
	for _, rule := range []string{"noai", "foo"} {
		before, after := crawlertest.XRules(upstream[XRobotsTagField]), crawlertest.XRules(got[XRobotsTagField])
		for agent, rules := range before {
			has := func(r [][2]string) bool { return slices.Contains(r, [2]string{rule, ""}) }
			if has(rules) && !has(after[agent]) && !has(after["*"]) {
				t.Fatalf("X-Robots-Tag %q has lost the upstream's %s for %s: %q", got[XRobotsTagField], rule, agent, upstream[XRobotsTagField])
			}
		}
	}
}

// checkLaws checks that merging twice has the same result as merging once, and that the order of two merges does not
// matter. It makes exceptions for headers that do not fit, and for fields that the policy does not publish.
func checkLaws(t *testing.T, h http.Header, a, b *Values) {
	t.Helper()
	once, problems := applied(h, a)
	twice, again := applied(once, a)
	if !equalHeaders(once, twice) && !slices.Contains(kinds(problems), TooLong) {
		t.Fatalf("applied twice, %q is not %q", twice, once)
	}
	if slices.ContainsFunc(again, func(p Problem) bool { return p.Kind == Malformed || p.Kind == Repaired || p.Kind == BadToken }) && len(a.RobotsTag) > 0 && len(a.Preferences[0]) > 0 {
		t.Fatalf("%q is not well-formed: %v", once, again)
	}
	ab, p1 := applied(once, b)
	ba, p2 := applied(h, b, a)
	if !equalHeaders(ab, ba) && !slices.Contains(kinds(slices.Concat(problems, p1, p2)), TooLong) {
		t.Fatalf("on %q, %q and %q give %q, the other way round %q", h, a.XRobotsTag, b.XRobotsTag, ab, ba)
	}
}

func TestMergeProperties(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range testkit.Rounds(500, 5_000) {
		a, b, h := randomValues(r), randomValues(r), randomHeader(r)
		merged, _ := applied(h, a)
		checkOurs(t, merged, a)
		if len(a.RobotsTag) > 0 && len(a.XRobotsTag) > 0 {
			checkUpstream(t, merged, h)
		}
		checkLaws(t, h, a, b)
	}
}

// TestFieldsAgree checks that Robots-Tag and X-Robots-Tag have the same meaning, for crawlers that both fields can
// name.
func TestFieldsAgree(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range testkit.Rounds(400, 4_000) {
		v := randomValues(r)
		for _, agent := range agents(t) {
			if agent != "*" && !isKey(agent) {
				continue
			}
			x, rt := crawlertest.EvaluateX(v.XRobotsTag, agent), evaluateTag(t, v.RobotsTag, agent)
			rt.Embed = rt.Embed || x.Embed // Robots-Tag does not have indexifembedded
			if x != rt {
				t.Fatalf("for %s, %q means %+v and %q means %+v", agent, v.XRobotsTag, x, v.RobotsTag, rt)
			}
		}
	}
}

func FuzzMerge(f *testing.F) {
	for i, line := range []string{
		"*;noindex;nosnippet, ExampleBot;", ";noindex;nosnippet, ExampleBot=;", "*=(noindex nosnippet), examplebot=()", "noindex, nofollow",
		"googlebot:noindex", "googlebot: noindex, max-snippet:250", "unavailable_after: Friday, 25-Jun-10 15:00:00 EST, otherbot: none",
		`*;noindex;a="x, y";b=%"f%c3%bc";c=@5`, "train-ai=y, train-ai=n, x=(a b)", "indexifembedded", "max-snippet:, a:b:c:noindex, =:",
		"acap allow-index, foo=bar, noindex", "\"_bot\";noindex, a/b;none, *:noindex",
	} {
		f.Add(uint64(i), line, "noindex, indexifembedded")
		f.Add(uint64(i)<<32, "*;nosnippet", line)
	}
	f.Fuzz(func(t *testing.T, seed uint64, line, more string) {
		r := rand.New(rand.NewPCG(seed, 2))
		a, b, h := randomValues(r), randomValues(r), randomHeader(r)
		for _, name := range []string{RobotsTagField, XRobotsTagField, contentUsageField} {
			h[name] = append(h[name], line, more)
		}
		for _, v := range []*Values{a, b} {
			full := *v
			if len(v.RobotsTag) == 0 || len(v.XRobotsTag) == 0 || len(v.Preferences[0]) == 0 {
				built, _ := Build(list("*", "nofollow", "bbot", "noindex"), preferences("n"), testNow)
				full = *built
			}
			merged, problems := applied(h, &full)
			checkOurs(t, merged, &full)
			if len(problems) > 6*maxProblems {
				t.Fatalf("%d problems", len(problems))
			}
		}
		checkLaws(t, h, a, b)
	})
}
