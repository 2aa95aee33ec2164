// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// TestExpectationOfAcceptedBytes loads a policy with a test that fails after a date. If the policy file is new, the
// failing test is an error. If the same text was accepted before, it is a warning.
func TestExpectationOfAcceptedBytes(t *testing.T) {
	data := []byte(`version: 1
rules:
  - for: everyone
    allow:
      index:
        - {paths: /events/, time-limit: until-2027-01-31}
expect:
  - everyone may index /events/
`)
	before, after := time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC), time.Date(2027, 2, 1, 12, 0, 0, 0, time.UTC)
	if f, ds := LoadWith("dates.yaml", data, Options{Now: before}); f == nil || len(ds) > 0 {
		t.Fatalf("before the date: %v", ds.Error())
	}
	f, ds := LoadWith("dates.yaml", data, Options{Now: after})
	if f != nil || !strings.Contains(ds.Error(), "[expectation-failed]") {
		t.Errorf("changed after the date: %v", ds.Error())
	}
	f, ds = LoadWith("dates.yaml", data, Options{Now: after, Accepted: true})
	if f == nil || !strings.Contains(ds.Error(), "warning: this test fails") || !strings.Contains(ds.Error(), "[expectation-no-longer-holds]") {
		t.Errorf("accepted before the date: %v", ds.Error())
	}
}

// The address in a test keeps its spelling, even if it has letters that a URL should encode. An encoded slash is
// different from a plain slash (RFC 3986 section 2.2).
func TestExpectationOfAnAddress(t *testing.T) {
	const rules = "version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: \"/%2F*A\"}\n    intended: true\nexpect:\n"
	for test, passes := range map[string]bool{
		"GPTBot may not crawl https://www.example.com/%2F%41":  true,
		"GPTBot may not crawl https://www.example.com/%2F%41é": true,
		"GPTBot may crawl https://www.example.com/%2F%41é":     false,
		"GPTBot may crawl https://www.example.com//Aé":         true,
	} {
		if f, ds := Load("address.yaml", []byte(rules+"  - "+test+"\n")); (f != nil) != passes {
			t.Errorf("%s: %v", test, ds.Error())
		}
	}
}

// If a policy was served before, tests that take too long do not prevent it from loading.
func TestExpectationsThatTakeTooLong(t *testing.T) {
	testkit.Nightly(t)
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n")
	for i := range 700 {
		name := strings.Repeat("x", 1+i/26) + string(rune('a'+i%26))
		fmt.Fprintf(&b, "  - {for: %sBot, disallow: {crawl: /b%d/}}\n  - {for: everyone, hosts: h%d.example.com, disallow: {crawl: /h%d/}}\n", name, i, i, i)
	}
	b.WriteString("expect:\n")
	for i := range 40 {
		fmt.Fprintf(&b, "  - everyone may crawl /%d\n", i)
	}
	if f, ds := Load("tests.yaml", []byte(b.String())); f != nil || !strings.Contains(ds.Error(), "[too-many-rules]") {
		t.Errorf("new: %v", ds.Error())
	}
	if f, ds := LoadWith("tests.yaml", []byte(b.String()), Options{Accepted: true}); f == nil || !strings.Contains(ds.Error(), "[more-than-allowed]") {
		t.Errorf("accepted: %v", ds.Error())
	}
}

// TestExpectationsAskEveryMember checks tests about a set of crawlers, such as a category. Such a test must fail even
// if only one crawler of the set has a rule that contradicts it.
func TestExpectationsAskEveryMember(t *testing.T) {
	f, ds := Load("members.yaml", []byte(`version: 1
crawlers:
  PartnerBot: {category: feed, operator: Partner Ltd, purposes: [news]}
rules:
  - for: PartnerBot
    hosts: "*.example.org"
    disallow: {crawl: /a/}
`))
	if f == nil {
		t.Fatal(ds.Error())
	}
	for agent, fails := range map[string]bool{
		"everyone": true, "category:feed": true, "operator:Partner Ltd": true, "purpose:news": true, "PartnerBot": true,
		"category:search": false, "operator:Google": false, "purpose:other": false, "Googlebot": false, "UnknownBot": false,
	} {
		for place, reached := range map[string]bool{
			"/a/b": true, "https://www.example.org/a/b": true, "https://www.example.com/a/b": false, "/b/": false, "https://www.example.org/b": false,
		} {
			e := policy.Expectation{Anyone: true, Agent: policy.ParseAudience(agent), Allowed: true, Path: place}
			if host, path, ok := strings.Cut(strings.TrimPrefix(place, "https://"), "/"); ok && host != "" {
				e.Host, e.Path = host, "/"+path
			}
			if got := newEvaluator(f.Effect, testNow).evaluate(&e) != nil; got != (fails && reached) {
				t.Errorf("%s: fails %v", e, got)
			}
		}
	}
}

// TestExpectationAsWritten checks that the String method of a test returns the line that the test was parsed from.
func TestExpectationAsWritten(t *testing.T) {
	for _, line := range []string{
		"Googlebot may crawl /news/", "everyone may not index /", "verified category:search may not present-snippet https://www.example.com/?a=b",
		"unverified operator:Common Crawl may train-ai /x/", "purpose:news may crawl /robots.txt",
	} {
		f, ds := LoadWith("line.yaml", []byte("version: 1\nexpect: ["+fmt.Sprintf("%q", line)+"]\n"), Options{Now: testNow, Accepted: true})
		if f == nil {
			t.Errorf("%s: %v", line, ds.Error())
		} else if got := f.Spec.Expect[0].String(); got != line {
			t.Errorf("%s: read as %s", line, got)
		}
	}
}

// TestAskingOnManyHosts checks that tests for many audiences on many hosts do not examine every crawler of the catalog
// each time.
func TestAskingOnManyHosts(t *testing.T) {
	f, ds := LoadWith("hosts.yaml", []byte("version: 1\nrules:\n  - for: GPTBot\n    hosts: www.example.com\n    disallow: {crawl: /a}\n"), Options{Now: testNow})
	if f == nil {
		t.Fatal(ds.Error())
	}
	x := newEvaluator(f.Effect, testNow)
	everyone := policy.Audience{Kind: policy.ForEveryone}
	if n := testing.AllocsPerRun(10, func() {
		clear(x.asked)
		x.ask(everyone, "www.example.com")
	}); n > 20 {
		t.Errorf("%v allocations for an audience and a host that were asked about before", n)
	}
}

// BenchmarkExpectations runs 10,000 tests of different kinds. The policy is for a newspaper with staging hosts, and has
// a rule that demands a verified identity.
func BenchmarkExpectations(b *testing.B) {
	paper, err := os.ReadFile("../examples/policies/newspaper.yaml")
	if err != nil {
		b.Fatal(err)
	}
	rules, _, _ := strings.Cut(string(paper), "# Tests. If one of them fails")
	var text strings.Builder
	text.WriteString(rules + `
  - for: everyone
    hosts: ["*.staging.example.com", old.example.com]
    disallow: {index: /, crawl: /members/}
  - for: [Googlebot, operator:OpenAI, "purpose:trainai"]
    hosts: www.example.com
    identity: verified
    disallow: {crawl: /staff/}
    intended: true
expect:
`)
	agents := []string{
		"Googlebot", "GPTBot", "everyone", "category:search", "category:ai-training", "category:seo",
		"operator:OpenAI", "purpose:trainai", "verified Bingbot", "unverified ClaudeBot",
	}
	usages := []string{"crawl", "index", "present-snippet", "train-ai"}
	places := []string{"/news/%d", "/admin/%d?q=1", "https://www.example.com/staff/%d", "https://a.staging.example.com/%d", "/archive/caf%%C3%%A9/%d.html"}
	for i := range 10_000 {
		fmt.Fprintf(&text, "  - %s may %s "+places[i/40%len(places)]+"\n", agents[i%10], usages[i/10%4], i)
	}
	f, ds := LoadWith("bench.yaml", []byte(text.String()), Options{Now: testNow, Accepted: true})
	if f == nil {
		b.Fatal(ds.Error())
	}
	var tests []policy.Expectation // the tests that pass
	x := newEvaluator(f.Effect, testNow)
	for _, e := range f.Spec.Expect {
		if x.evaluate(&e) != nil {
			e.Allowed = false
		}
		if x.evaluate(&e) == nil {
			tests = append(tests, e)
		}
	}
	for len(tests) < len(f.Spec.Expect) { // replace the tests that still fail, because their crawlers have different decisions
		tests = append(tests, tests[:min(len(tests), len(f.Spec.Expect)-len(tests))]...)
	}
	b.ReportAllocs()
	for b.Loop() {
		x := newEvaluator(f.Effect, testNow)
		for i := range tests {
			if x.evaluate(&tests[i]) != nil {
				b.Fatal("a test fails")
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(tests)), "ns/line")
}
