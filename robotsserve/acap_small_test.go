// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// smallSpec returns a random policy with few rules, whose patterns often overlap.
func smallSpec(r *rand.Rand, usages []policy.Usage) *policy.Spec {
	spec := &policy.Spec{
		Publish:  policy.Publish{ACAP: policy.Full},
		Crawlers: []policy.Crawler{{Token: "AlphaBot", Operator: "Alpha", Category: "search"}},
	}
	line := 0
	for range 1 + r.IntN(5) {
		rule := policy.Rule{For: []policy.Audience{policy.ParseAudience(pick(r, "everyone", "everyone", "everyone", "AlphaBot", "category:search", "purpose:news"))}}
		if r.IntN(8) == 0 {
			rule.For = append(rule.For, policy.ParseAudience(pick(r, "everyone", "AlphaBot", "purpose:news")))
		}
		if host := pick(r, "", "", "www.example.com", "*.example.com"); host != "" {
			rule.Hosts = []policy.Host{policy.Host(host)}
		}
		if r.IntN(8) == 0 {
			rule.UsagePurposes = []string{pick(r, "news", "sports", "*s", "n*")}
		}
		seen := map[string]bool{}
		for range 1 + r.IntN(3) {
			line++
			s := policy.Statement{Pos: policy.Pos{Line: line, Column: 1}, Allow: r.IntN(2) == 0, Usage: usages[r.IntN(len(usages))]}
			text := "/" + pick(r, "", "a", "b", "ab", "*a", "*b", "*ab", "*/a", "*/", "a*b", "a*a", "b*a", "ab*a", "a/", "aa", "*a*b", "*b*a") + pick(r, "", "", "", "$")
			s.Pattern = pathpattern.MustParse(text)
			if key := s.Usage.String() + s.Pattern.Plain().String(); seen[key] {
				continue
			} else {
				seen[key] = true
			}
			if s.Usage == policy.Other {
				s.Allow = false
			}
			if s.Allow && r.IntN(4) == 0 {
				q := &policy.Qualifiers{}
				if q.SetQualifier(s.Usage, policy.QualifierTimeLimit, pick(r, "3-days", "until-recrawled")) == nil {
					s.Qualifiers = q
				}
			}
			rule.Statements = append(rule.Statements, s)
		}
		spec.Rules = append(spec.Rules, rule)
	}
	return spec
}

// allPaths returns all paths with at most n letters after the slash.
func allPaths(letters string, n int) []string {
	all, last := []string{"/"}, []string{"/"}
	for range n {
		var next []string
		for _, p := range last {
			for _, c := range letters {
				next = append(next, p+string(c))
			}
		}
		all, last = append(all, next...), next
	}
	return all
}

// notSo is a key of counts, for the number of false reports. A false report says that the ACAP records do not express a
// statement, although the records agree with the policy on all paths of the statement.
const notSo = "reported and not so"

// fault describes why the records of a policy are wrong.
type fault struct{ kind, text string }

// smallFaults compares the records with the policy for every short path.
func smallFaults(t *testing.T, spec *policy.Spec, usages []policy.Usage, paths []string, counts map[string]int) (all []fault) {
	p := compile(t, spec)
	f, problems := Render(p, "www.example.com", Options{})
	read := acap.Parse(f.Body)
	if len(read.Problems) > 0 {
		t.Fatalf("%+v", read.Problems)
	}
	so, met := map[policy.Pos]bool{}, map[string]bool{}
	for _, path := range paths {
		for _, usage := range usages {
			for _, token := range []string{"AlphaBot", "ZetaBot"} {
				for _, purpose := range []string{"", "news", "sports", "nature", "nets"} {
					q := policy.Query{Crawler: p.Crawler(token), Identity: policy.Verified, Host: "www.example.com", Path: path, Usage: usage}
					if purpose != "" {
						q.Purposes = []string{purpose}
					}
					want := p.Decide(q)
					got := read.Decide(acap.Query{Crawler: token, Purpose: purpose, Path: path, Usage: usage})
					counts["decisions"]++
					if want.Verdict == got.Verdict && slices.Equal(limits(want, usage), got.Qualifiers.Strings()) {
						continue
					}
					kind := ""
					switch {
					case want.Verdict != policy.Allowed && got.Verdict != policy.Disallowed, want.Statement == nil, !want.Statement.Allow:
						kind = "the decision is laxer"
					case got.Verdict != policy.Disallowed && len(want.Qualifiers()) > 0:
						kind = "the qualifiers are laxer"
					default:
						so[want.Statement.Pos] = true
						if code := reportedACAP(problems, want.Statement); code != "" {
							counts[code]++
							continue
						}
						kind = "stricter and not reported"
					}
					if !met[kind] {
						met[kind] = true
						all = append(all, fault{kind, fmt.Sprintf("%q, %v of %q for %q: the records say %v %q, the policy %v %q", token, usage, path, purpose,
							got.Verdict, got.Qualifiers.Strings(), want.Verdict, limits(want, usage))})
					}
				}
			}
		}
	}
	for _, problem := range problems {
		if !strings.HasPrefix(problem.Code, "acap-") {
			continue
		}
		counts["reported"]++
		if !so[problem.Pos] {
			counts[notSo]++
		}
	}
	return all
}

// smaller removes parts of a policy as long as the function still returns true for the remaining policy. The tests use
// it to turn a policy with a fault into a small policy with the same fault.
func smaller(spec *policy.Spec, still func(*policy.Spec) bool) *policy.Spec {
	for again := true; again; {
		again = false
		try := func(change func(*policy.Spec)) bool {
			c := *spec
			c.Rules = slices.Clone(spec.Rules)
			for i := range c.Rules {
				c.Rules[i].Statements = slices.Clone(c.Rules[i].Statements)
				c.Rules[i].For = slices.Clone(c.Rules[i].For)
			}
			change(&c)
			if still(&c) {
				spec, again = &c, true
				return true
			}
			return false
		}
		for i := 0; i < len(spec.Rules); i++ {
			if try(func(s *policy.Spec) { s.Rules = slices.Delete(s.Rules, i, i+1) }) {
				break
			}
			for j := range spec.Rules[i].Statements {
				if try(func(s *policy.Spec) { s.Rules[i].Statements = slices.Delete(s.Rules[i].Statements, j, j+1) }) ||
					spec.Rules[i].Statements[j].Qualifiers != nil && try(func(s *policy.Spec) { s.Rules[i].Statements[j].Qualifiers = nil }) {
					break
				}
			}
			if len(spec.Rules[i].For) > 1 {
				_ = try(func(s *policy.Spec) { s.Rules[i].For = s.Rules[i].For[:1] }) || try(func(s *policy.Spec) { s.Rules[i].For = s.Rules[i].For[1:] })
			}
			if spec.Rules[i].Hosts != nil {
				try(func(s *policy.Spec) { s.Rules[i].Hosts = nil })
			}
			if spec.Rules[i].UsagePurposes != nil {
				try(func(s *policy.Spec) { s.Rules[i].UsagePurposes = nil })
			}
		}
	}
	return spec
}

// The test compares the ACAP records of small random policies with the decisions of these policies, for every short
// path. The records may allow only paths that the policy allows, with the same qualifiers. If they disallow a path that
// the policy allows, a problem must report this. Only a few problems may be false reports (see notSo).
func TestACAPOfSmallPolicies(t *testing.T) {
	t.Logf("seed %d, %d policies", *seed, max(*policies/4, 5))
	for _, k := range []struct {
		name     string
		usages   []policy.Usage
		policies int
		letters  int
	}{
		{"index", []policy.Usage{policy.Index}, max(*policies/4, 5), 5},
		{"present", []policy.Usage{policy.Present, policy.PresentSnippet, policy.PresentLink}, max(*policies/8, 5), 4},
	} {
		t.Run(k.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(*seed, 21))
			counts := map[string]int{}
			paths := allPaths("ab/c", k.letters)
			for range k.policies {
				spec := smallSpec(r, k.usages)
				for _, found := range smallFaults(t, spec, k.usages, paths, counts) {
					small := smaller(spec, func(s *policy.Spec) bool {
						for _, again := range smallFaults(t, s, k.usages, paths, map[string]int{}) {
							if again.kind == found.kind {
								found = again
								return true
							}
						}
						return false
					})
					f, problems := Render(compile(t, small), "www.example.com", Options{})
					t.Fatalf("%s: %s\n%s\n%s\n%v", found.kind, found.text, acapPart(f.Body), describe(small), codes(problems))
				}
			}
			t.Log(counts)
			// A few false reports are accepted. A problem may be about paths that are longer than the tested paths. It
			// may also be about two rules that contradict each other, while a third rule decides for these paths.
			if counts["reported"] == 0 || counts[notSo]*4 > counts["reported"] && *policies >= 400 {
				t.Errorf("%d problems are reported, and %d of them are false reports", counts["reported"], counts[notSo])
			}
		})
	}
}

// smallRule returns a rule about indexing. Its entries have the form "allow PATTERN [TIME-LIMIT]" or "disallow
// PATTERN".
func smallRule(line int, audience string, statements ...string) policy.Rule {
	r := policy.Rule{For: []policy.Audience{policy.ParseAudience(audience)}}
	for i, text := range statements {
		words := strings.Fields(text)
		s := policy.Statement{Pos: policy.Pos{Line: line + i}, Allow: words[0] == "allow", Usage: policy.Index, Pattern: pathpattern.MustParse(words[1])}
		if len(words) > 2 {
			s.Qualifiers = &policy.Qualifiers{}
			if err := s.Qualifiers.SetQualifier(s.Usage, policy.QualifierTimeLimit, words[2]); err != nil {
				panic(err) // a test has an invalid time limit
			}
		}
		r.Statements = append(r.Statements, s)
	}
	return r
}

func TestACAPOfConflictsOfThree(t *testing.T) {
	host := func(r policy.Rule) policy.Rule { r.Hosts = []policy.Host{"www.example.com"}; return r }
	forNews := func(r policy.Rule) policy.Rule { r.UsagePurposes = []string{"news"}; return r }
	for _, tt := range []struct {
		name, path, purpose, want string
		reported                  []string
		rules                     []policy.Rule
	}{
		{
			"an allow entry without qualifiers does not outlive a stronger one with them", "//ab", "", "disallowed",
			[]string{"warning acap-undecidable 1", "warning acap-undecidable 2"},
			[]policy.Rule{smallRule(1, "everyone", "allow /*/a 3-days", "allow /*b", "disallow /*a")},
		},
		{
			"but where no prohibition speaks both stand", "//cb", "", "allowed time-limit=3-days",
			[]string{"warning acap-undecidable 1", "warning acap-undecidable 2"},
			[]policy.Rule{smallRule(1, "everyone", "allow /*/c 3-days", "allow /*b", "disallow /*a")},
		},
		{
			"an allow entry with qualifiers that ties with another rule decides before one without that does not", "/b", "news", "allowed time-limit=3-days", nil,
			[]policy.Rule{smallRule(1, "purpose:news", "allow /*b 3-days", "allow /b$"), smallRule(5, "purpose:news", "disallow /a/")},
		},
		{
			"what is prohibited of a purpose's permission is prohibited for that purpose alone", "/a/ab/", "", "allowed",
			[]string{"warning acap-purpose 1"},
			[]policy.Rule{
				host(forNews(smallRule(1, "category:search", "allow /a*a", "disallow /*/"))), smallRule(5, "AlphaBot", "disallow /*/a$"), smallRule(10, "category:search", "disallow /a/", "allow /a*b"),
			},
		},
		{
			"nothing is reported where a stronger one decides", "/cb", "", "allowed", nil,
			[]policy.Rule{smallRule(1, "everyone", "disallow /*a", "allow /*b", "disallow /*b*a")},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := compile(t, &policy.Spec{Publish: policy.Publish{ACAP: policy.Full}, Crawlers: []policy.Crawler{{Token: "AlphaBot", Category: "search"}}, Rules: tt.rules})
			f, problems := Render(p, "www.example.com", Options{})
			d := acap.Parse(f.Body).Decide(acap.Query{Crawler: "AlphaBot", Purpose: tt.purpose, Path: tt.path, Usage: policy.Index})
			if got := strings.TrimSpace(d.Verdict.String() + " " + strings.Join(d.Qualifiers.Strings(), " ")); got != tt.want {
				t.Errorf("%q, want %q\n%s", got, tt.want, f.Body)
			}
			if got := slices.Compact(codes(problems)); !slices.Equal(got, tt.reported) {
				t.Errorf("reported %q, want %q", got, tt.reported)
			}
		})
	}
}

// The records must not allow a path that the policy disallows, even if the patterns of an allow entry and a disallow
// entry overlap, such as /x*ab and /x*a*a*c$. This is difficult in two cases. In the first case, ACAP applies the allow
// entry, because it is narrower than every pattern for the paths that both entries match. In the second case, the
// policy has too many statements, so the records do not list such paths.
func TestACAPProhibitionsHold(t *testing.T) {
	bounded := smallRule(10, "everyone")
	for i := range 120 {
		bounded.Statements = append(bounded.Statements, smallRule(11+i, "everyone", fmt.Sprintf("allow /b%d", i)).Statements...)
	}
	bounded.Statements = append(bounded.Statements, smallRule(500, "everyone", "allow /z").Statements...)
	strong := smallRule(1, "everyone", "disallow /*a$")
	strong.Hosts = []policy.Host{"www.example.com"}
	for _, tt := range []struct {
		name, path, purpose string
		rules               []policy.Rule
		reported            int // the line of the statement that is lost
	}{
		{"the allow entry is narrower than where they meet", "/xacabcc", "news", []policy.Rule{smallRule(1, "purpose:news", "disallow /x*a*a*c$"), smallRule(5, "everyone", "allow /x*ab")}, 5},
		{"another prohibition is for a purpose", "/zca", "", []policy.Rule{smallRule(5, "purpose:news", "disallow /z"), strong, bounded}, 500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := compile(t, &policy.Spec{Publish: policy.Publish{ACAP: policy.Full}, Rules: tt.rules})
			f, problems := Render(p, "www.example.com", Options{})
			got := acap.Parse(f.Body).Decide(acap.Query{Crawler: "AlphaBot", Purpose: tt.purpose, Path: tt.path, Usage: policy.Index})
			if got.Verdict != policy.Disallowed {
				t.Errorf("%v\n%s", got.Verdict, f.Body)
			}
			if !slices.ContainsFunc(problems, func(p policy.Problem) bool { return p.Pos.Line == tt.reported }) {
				t.Errorf("reported %q", codes(problems))
			}
		})
	}
}
