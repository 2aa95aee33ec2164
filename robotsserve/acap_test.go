// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

var acapUsages = slices.DeleteFunc(policy.Usages(), func(u policy.Usage) bool { return u.IsRight() })

// reportedACAP returns the code of the ACAP problem about a statement, or "" if there is none.
func reportedACAP(problems []policy.Problem, s *policy.Statement) string {
	for _, p := range problems {
		if strings.HasPrefix(p.Code, "acap-") && p.Pos == s.Pos {
			return p.Code
		}
	}
	return ""
}

// caseMatters reports whether letter case decides which patterns match the path. ACAP ignores case, so a pattern may
// match the path in ACAP but not in the policy.
func caseMatters(spec *policy.Spec, path string) bool {
	for _, r := range spec.Rules {
		for _, s := range r.Statements {
			if acap.Fold(s.Pattern).Match(acap.FoldPath(path)) != s.Pattern.Match(pathpattern.NormalizePath(path)) {
				return true
			}
		}
	}
	return false
}

func TestACAPAgreesWithDecide(t *testing.T) {
	t.Logf("seed %d, %d policies of each kind", *seed, *policies)
	present := []policy.Usage{policy.Present, policy.PresentSnippet, policy.PresentLink, policy.Other}
	for _, k := range []struct {
		name    string
		options policytest.Options
		change  func(r *rand.Rand, s *policy.Spec)
	}{
		{"all usages", policytest.Options{Usages: acapUsages}, nil},
		{"crawl", policytest.Options{Usages: []policy.Usage{policy.Crawl, policy.Other}}, nil},
		{"index", policytest.Options{Usages: []policy.Usage{policy.Index}}, nil},
		{"present", policytest.Options{Usages: present, MaxRules: 16}, nil},
		{"plain", policytest.Options{Usages: acapUsages[:4], NoWildcards: true, NoHosts: true}, nil},
		{"without purposes", policytest.Options{Usages: acapUsages[:4], NoPurposes: true, NoHosts: true}, nil},
		{"case", policytest.Options{Usages: []policy.Usage{policy.Index}}, func(r *rand.Rand, s *policy.Spec) {
			for i := range s.Rules {
				for j := range s.Rules[i].Statements {
					if st := &s.Rules[i].Statements[j]; r.IntN(2) == 0 {
						st.Pattern = pathpattern.MustParse(strings.ReplaceAll(st.Pattern.String(), "a", "A"))
					}
				}
			}
		}},
	} {
		t.Run(k.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(*seed, 2))
			counts := map[string]int{}
			for range *policies {
				spec := policytest.Random(r, k.options)
				if k.change != nil {
					k.change(r, spec)
				}
				spec.Publish.ACAP = policy.Full
				p := compile(t, spec)
				host := policytest.Hosts[r.IntN(len(policytest.Hosts))]
				f, problems := Render(p, host, Options{})
				read := acap.Parse(f.Body)
				if len(read.Problems) > 0 || read.Version != "1.0" || !read.IgnoreConventional {
					t.Fatalf("%+v of\n%s", read, f.Body)
				}
				for range 8 {
					path := policytest.Path(r)
					if path == "/robots.txt" {
						continue
					}
					usage := k.options.Usages[r.IntN(len(k.options.Usages))]
					purpose := pick(r, "", "", "news", "research", "sport")
					for _, token := range tokens {
						q := policy.Query{
							Crawler: p.Crawler(token), Identity: policy.Verified, Host: host, Path: path,
							Usage: usage, Now: policytest.Now,
						}
						if purpose != "" {
							q.Purposes = []string{purpose}
						}
						want := p.Decide(q)
						got := read.Decide(acap.Query{Crawler: token, Purpose: purpose, Path: path, Usage: usage, Now: policytest.Now})
						counts["decisions"]++
						counts[want.Verdict.String()]++
						if want.Verdict == got.Verdict && slices.Equal(limits(want, usage), got.Qualifiers.Strings()) {
							continue
						}
						if usage == policy.Crawl && want.Verdict == policy.Unstated && got.Verdict == policy.Allowed {
							counts["unstated crawl said to be allowed"]++
							continue
						}
						if caseMatters(spec, path) {
							counts["case"]++
							continue
						}
						if stricter := got.Verdict == policy.Disallowed || len(want.Qualifiers()) == 0; want.Statement != nil && want.Statement.Allow && stricter {
							if code := reportedACAP(problems, want.Statement); code != "" {
								counts[code]++
								continue
							}
						}
						t.Fatalf("%q, %v of %q for %q on %q: the records say %v %q (line %+v), the policy %v %q\n%s\n%s\n%v", token, usage, path, purpose, host,
							got.Verdict, got.Qualifiers.Strings(), got.Field, want.Verdict, limits(want, usage), f.Body, describe(spec), problems)
					}
				}
			}
			t.Log(counts)
			for _, v := range []policy.Verdict{policy.Allowed, policy.Disallowed, policy.Unstated} {
				if counts[v.String()] == 0 {
					t.Errorf("no decision is %v: the generator is too narrow", v)
				}
			}
		})
	}
}

// A disallow entry has a host, so it overrides an allow entry on the paths that both match. The two patterns overlap in
// more ways than the records can list. The records must not allow a path that the policy disallows, so they leave out
// the allow entry, and a problem reports this.
func TestACAPCrossingInManyWays(t *testing.T) {
	statement := func(allow bool, pattern string) []policy.Statement {
		return []policy.Statement{{Pos: policy.Pos{Line: len(pattern)}, Allow: allow, Usage: policy.Index, Pattern: pathpattern.MustParse(pattern)}}
	}
	spec := &policy.Spec{Publish: policy.Publish{ACAP: policy.Full}, Rules: []policy.Rule{
		{For: []policy.Audience{{}}, Hosts: []policy.Host{"www.example.com"}, Statements: statement(false, "/*a*b*a*b*a*b")},
		{For: []policy.Audience{{}}, Statements: statement(true, "/b*a*b*a*b*a*a*c")},
	}}
	p := compile(t, spec)
	f, problems := Render(p, "www.example.com", Options{})
	read := acap.Parse(f.Body)
	met := 0
	r := rand.New(rand.NewPCG(*seed, 14))
	for range 400 {
		path := "/b"
		for range 20 {
			path += pick(r, "a", "b", "c")
		}
		want := p.Decide(policy.Query{Host: "www.example.com", Path: path, Usage: policy.Index}).Verdict
		got := read.Decide(acap.Query{Crawler: "AlphaBot", Path: path, Usage: policy.Index}).Verdict
		if want == policy.Disallowed && spec.Rules[1].Statements[0].Pattern.Match(path) {
			met++
		}
		if want == policy.Disallowed && got != want {
			t.Fatalf("%q: the records say %v, the policy %v\n%s", path, got, want, f.Body)
		}
	}
	if met == 0 || reportedACAP(problems, &spec.Rules[1].Statements[0]) != "acap-undecidable" {
		t.Errorf("%d paths of both patterns, %v", met, problems)
	}
}

// An allow entry overrides two disallow entries. For paths that match both disallow entries, the records would need a
// pattern that is narrower than both. If there is no such pattern, the records cannot express the allow entry, and a
// problem must report this. It must not be reported if there is such a pattern, or if no path matches both disallow
// entries.
func TestACAPSeveralProhibitions(t *testing.T) {
	rule := func(allow bool, patterns ...string) (r policy.Rule) {
		r.For = []policy.Audience{{}}
		for _, p := range patterns {
			r.Statements = append(r.Statements, policy.Statement{Pos: policy.Pos{Line: len(p)}, Allow: allow, Usage: policy.Index, Pattern: pathpattern.MustParse(p)})
		}
		return r
	}
	host := func(r policy.Rule) policy.Rule { r.Hosts = []policy.Host{"www.example.com"}; return r }
	forNews := func(r policy.Rule) policy.Rule { r.UsagePurposes = []string{"news"}; return r }
	for _, tt := range []struct {
		name, path, want string
		rules            []policy.Rule
	}{
		{"none is narrower than both", "/x/abba", "acap-undecidable", []policy.Rule{rule(true, "/*a$"), rule(false, "/*/a", "/*ab")}},
		{"none is narrower than two of three", "/y/abba", "acap-undecidable", []policy.Rule{rule(true, "/*a$"), rule(false, "/x", "/*/a", "/*ab")}},
		{"one of them for a purpose", "/x/abba", "acap-purpose", []policy.Rule{rule(true, "/*a$"), rule(false, "/*/a"), forNews(rule(false, "/*ab"))}},
		{"one is narrower than both", "/x/yba", "", []policy.Rule{rule(true, "/*a$"), rule(false, "/x/", "/x/y")}},
		{"they do not meet", "/x/a", "", []policy.Rule{rule(true, "/*a$"), rule(false, "/x/", "/y/", "/z/")}},
		{"the winner alone decides", "/x/abba", "", []policy.Rule{host(rule(true, "/x/abba$")), rule(false, "/*/a", "/*ab")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := &policy.Spec{Publish: policy.Publish{ACAP: policy.Full}, Crawlers: []policy.Crawler{{Token: "AlphaBot"}}, Rules: tt.rules}
			p := compile(t, spec)
			f, problems := Render(p, "www.example.com", Options{})
			allowed := &tt.rules[0].Statements[0]
			if got := reportedACAP(problems, allowed); got != tt.want {
				t.Errorf("reported %q, want %q: %v\n%s", got, tt.want, problems, f.Body)
			}
			q := policy.Query{Crawler: p.Crawler("AlphaBot"), Identity: policy.Verified, Purposes: []string{"news"}, Host: "www.example.com", Path: tt.path, Usage: policy.Index}
			if want := p.Decide(q); want.Verdict != policy.Allowed {
				t.Fatalf("the policy says %v", want.Verdict)
			}
			got := acap.Parse(f.Body).Decide(acap.Query{Crawler: "AlphaBot", Purpose: "news", Path: tt.path, Usage: policy.Index})
			if (got.Verdict == policy.Allowed) != (tt.want == "") {
				t.Errorf("the records say %v\n%s", got.Verdict, f.Body)
			}
		})
	}
}

// If a policy has a statement about "present", and a rule names a derived usage, such as present-link, the records
// repeat the statement for present-link. Some qualifiers of the statement are not valid for every derived usage (ACAP
// 1.0 section 2.5.5), so the records lack them there.
func TestACAPQualifiersOfPresent(t *testing.T) {
	q := &policy.Qualifiers{}
	for name, value := range map[policy.QualifierName]string{policy.QualifierProhibitedModification: "any", policy.QualifierTimeLimit: "3-days"} {
		if err := q.SetQualifier(policy.Present, name, value); err != nil {
			t.Fatal(err)
		}
	}
	spec := &policy.Spec{Publish: policy.Publish{ACAP: policy.Full}, Rules: []policy.Rule{{For: []policy.Audience{{}}, Statements: []policy.Statement{
		{Allow: true, Usage: policy.Present, Pattern: pathpattern.All, Qualifiers: q},
		{Usage: policy.PresentLink, Pattern: pathpattern.MustParse("/a/")},
	}}}}
	f, problems := Render(compile(t, spec), "", Options{})
	read := acap.Parse(f.Body)
	if len(read.Problems) > 0 {
		t.Fatalf("%+v of\n%s", read.Problems, f.Body)
	}
	if !slices.ContainsFunc(problems, func(p policy.Problem) bool { return p.Code == "acap-modification" }) {
		t.Errorf("the loss of present-link is not reported: %v", problems)
	}
	for u, want := range map[policy.Usage]int{policy.PresentOriginal: 2, policy.PresentSnippet: 2, policy.PresentLink: 1} {
		if d := read.Decide(acap.Query{Path: "/x", Usage: u}); d.Verdict != policy.Allowed || len(d.Qualifiers.Strings()) != want {
			t.Errorf("%v: %+v, want %d qualifiers", u, d, want)
		}
	}
}

// Crawlers find the action requests of the policy in the ACAP records, and an import restores them. If ActionRequests
// is not on, or ACAP is off, no action request is published.
func TestActionRequests(t *testing.T) {
	spec := &policy.Spec{
		Crawlers: []policy.Crawler{{Token: "AlphaBot"}, {Token: "BetaBot"}},
		Rules: []policy.Rule{
			{For: []policy.Audience{{}}, Requests: []policy.ActionRequest{{Action: policy.TakeDown, Path: "/bad.html"}}},
			{For: []policy.Audience{{Kind: policy.ForToken, Name: "AlphaBot"}}, Requests: []policy.ActionRequest{{Action: policy.ReCrawl, Path: "/new.html"}}},
			{
				For: []policy.Audience{{Kind: policy.ForToken, Name: "AlphaBot"}}, UsagePurposes: []string{"news"},
				Statements: []policy.Statement{{Usage: policy.Index, Pattern: pathpattern.All}},
			},
		},
		Publish: policy.Publish{ACAP: policy.Auto, ActionRequests: policy.On},
	}
	f := render(t, compile(t, spec), "")
	want := []acap.Request{{Action: policy.TakeDown, Path: "/bad.html"}, {Action: policy.ReCrawl, Path: "/new.html"}}
	read := acap.Parse(f.Body)
	if len(read.Problems) > 0 || len(read.Records) != 2 {
		t.Fatalf("%+v of\n%s", read, f.Body)
	}
	for i, rec := range read.Records {
		if len(rec.Requests) != 1 || rec.Requests[0].Action != want[i].Action || rec.Requests[0].Path != want[i].Path {
			t.Errorf("record %d: %+v", i, rec.Requests)
		}
	}
	checkACAP(t, f.Body)
	again := mustImport(t, f.Body)
	if got := render(t, compile(t, again), ""); acapPart(got.Body) != acapPart(f.Body) {
		t.Errorf("imported\n%s\nwant\n%s", got.Body, f.Body)
	}
	for _, publish := range []policy.Publish{{ACAP: policy.Full}, {ACAP: policy.Auto}, {ACAP: policy.Off, ActionRequests: policy.On}} {
		spec.Publish = publish
		if f := render(t, compile(t, spec), ""); strings.Contains(string(f.Body), "ACAP-request") {
			t.Errorf("%+v: published in\n%s", publish, f.Body)
		}
	}
	for _, line := range []string{"ACAP-request-delete: /x", "ACAP-request-take-down: x", "ACAP-request-take-down: /x*", "ACAP-usage-purpose: a\nACAP-allow-index: /\nACAP-request-re-crawl: /x"} {
		if read := acap.Parse([]byte("ACAP-crawler: *\n" + line + "\n")); len(read.Problems) != 1 || len(read.Records[0].Requests) != 0 {
			t.Errorf("%q: %+v", line, read)
		}
	}
}

// acapPart returns the ACAP records of a file, without the records that switch off the Allow and Disallow lines and that
// allow crawling of all paths.
func acapPart(body []byte) string {
	i := bytes.Index(body, []byte("\r\nACAP-"))
	if i < 0 {
		return ""
	}
	return strings.NewReplacer("ACAP-ignore-conventional-records\r\n\r\n", "", "ACAP-allow-crawl: /\r\n", "").Replace(string(body[i:]))
}

// One rule is for everyone and for a purpose, so the records contain the allow entries of this rule twice. For the
// purpose, the allow entries in its sub-record decide. The weaker allow entries for everyone do not apply there, and no
// path is disallowed.
func TestACAPRuleForEveryoneAndAPurpose(t *testing.T) {
	framed := new(policy.Qualifiers)
	if err := framed.SetQualifier(policy.PresentOriginal, policy.QualifierProhibitedContext, "within-user-frame"); err != nil {
		t.Fatal(err)
	}
	statements := []policy.Statement{
		{Pos: policy.Pos{Line: 1}, Allow: true, Usage: policy.PresentOriginal, Pattern: pathpattern.MustParse("/")},
		{Pos: policy.Pos{Line: 2}, Allow: true, Usage: policy.PresentOriginal, Pattern: pathpattern.MustParse("/aa"), Qualifiers: framed},
	}
	p := compile(t, &policy.Spec{Publish: policy.Publish{ACAP: policy.Full, UserAgentPurpose: policy.On}, Rules: []policy.Rule{
		{For: []policy.Audience{{}, {Kind: policy.ForPurpose, Name: "news"}}, Statements: statements},
	}})
	f, problems := Render(p, "www.example.com", Options{})
	read := acap.Parse(f.Body)
	for _, purpose := range []string{"", "news"} {
		for path, qualifiers := range map[string]string{"/aab": "prohibited-context=within-user-frame", "/b": ""} {
			got := read.Decide(acap.Query{Crawler: "AlphaBot", Path: path, Usage: policy.PresentOriginal, Purpose: purpose})
			if got.Verdict != policy.Allowed || strings.Join(got.Qualifiers.Strings(), " ") != qualifiers {
				t.Errorf("%q for %q: %+v\n%s%v", path, purpose, got, f.Body, problems)
			}
		}
	}
}

// A rule is for a purpose and also has usage purposes. The records must agree with the policy for a crawler that the
// catalog lists with the purpose, and for a crawler that has to name its purpose.
func TestACAPConditionOfPurposeRule(t *testing.T) {
	rule := policy.Rule{
		For: []policy.Audience{{Kind: policy.ForPurpose, Name: "research"}}, UsagePurposes: []string{"News"},
		Statements: []policy.Statement{{Allow: true, Usage: policy.Follow, Pattern: pathpattern.MustParse("/b")}},
	}
	plain := rule
	plain.UsagePurposes, plain.Statements = nil, []policy.Statement{{Usage: policy.Follow, Pattern: pathpattern.MustParse("/c")}}
	p := compile(t, &policy.Spec{
		Publish: policy.Publish{ACAP: policy.Full}, Rules: []policy.Rule{rule, plain},
		Crawlers: []policy.Crawler{{Token: "DeltaBot", Purposes: []string{"research"}}, {Token: "AlphaBot"}},
	})
	f, _ := Render(p, "www.example.com", Options{})
	records := acap.Parse(f.Body)
	for _, q := range []acap.Query{
		{Crawler: "DeltaBot", Purpose: "news", Path: "/b", Usage: policy.Follow},
		{Crawler: "DeltaBot", Path: "/b", Usage: policy.Follow},
		{Crawler: "DeltaBot", Path: "/c", Usage: policy.Follow},
		{Crawler: "AlphaBot", Purpose: "news", Path: "/b", Usage: policy.Follow},
		{Crawler: "AlphaBot", Path: "/c", Usage: policy.Follow},
		{Crawler: "AlphaBot", Purpose: "research", Path: "/c", Usage: policy.Follow},
	} {
		asked := policy.Query{Crawler: p.Crawler(q.Crawler), Host: "www.example.com", Path: q.Path, Usage: q.Usage, Identity: policy.Verified}
		if q.Purpose != "" {
			asked.Purposes = []string{q.Purpose}
		}
		if got, want := records.Decide(q).Verdict, p.Decide(asked).Verdict; got != want {
			t.Errorf("%+v: the records say %v, the policy %v\n%s", q, got, want, f.Body)
		}
	}
}

// A usage purpose with a wildcard, here "*s", also matches "news", the purpose that another rule is for. The records
// must agree with the policy where both rules apply.
func TestACAPPurposesWithWildcards(t *testing.T) {
	p := compile(t, &policy.Spec{
		Publish: policy.Publish{ACAP: policy.Full}, Crawlers: []policy.Crawler{{Token: "AlphaBot"}},
		Rules: []policy.Rule{
			{
				For:        []policy.Audience{{Kind: policy.ForPurpose, Name: "news"}},
				Statements: []policy.Statement{{Usage: policy.Index, Pattern: pathpattern.MustParse("/*/$")}},
			},
			{
				For: []policy.Audience{{Kind: policy.ForEveryone}}, UsagePurposes: []string{"*s"},
				Statements: []policy.Statement{{Allow: true, Usage: policy.Index, Pattern: pathpattern.MustParse("/a*b")}},
			},
		},
	})
	f, _ := Render(p, "www.example.com", Options{})
	q := acap.Query{Crawler: "AlphaBot", Purpose: "news", Path: "/ab/", Usage: policy.Index}
	asked := policy.Query{Crawler: p.Crawler("AlphaBot"), Purposes: []string{"news"}, Host: "www.example.com", Path: "/ab/", Usage: policy.Index, Identity: policy.Verified}
	if got, want := acap.Parse(f.Body).Decide(q).Verdict, p.Decide(asked).Verdict; got != want || want != policy.Disallowed {
		t.Errorf("the records say %v, the policy %v\n%s", got, want, f.Body)
	}
}
