// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// TestExpectationOfAcceptedBytes: a test that a date has broken keeps a changed file
// from loading, and not one that was accepted before.
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

// TestExpectationsAskEveryMember: one crawler that is treated differently breaks a
// test about all.
func TestExpectationsAskEveryMember(t *testing.T) {
	f, ds := Load("members.yaml", []byte(`version: 1
crawlers:
  PartnerBot: {kind: feed, operator: Partner Ltd, purposes: [news]}
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
			if got := newEvaluator(f.Policy, testNow).evaluate(&e) != nil; got != (fails && reached) {
				t.Errorf("%s: fails %v", e, got)
			}
		}
	}
}

// TestExpectationAsWritten: what String writes is read as the same test.
func TestExpectationAsWritten(t *testing.T) {
	for _, line := range []string{
		"Googlebot may crawl /news/", "everyone may not index /", "verified category:search may not present-snippet https://www.example.com/?a=b",
		"claimed operator:Common Crawl may train-ai /x/", "purpose:news may crawl /robots.txt",
	} {
		f, ds := LoadWith("line.yaml", []byte("version: 1\nexpect: ["+fmt.Sprintf("%q", line)+"]\n"), Options{Now: testNow, Accepted: true})
		if f == nil {
			t.Errorf("%s: %v", line, ds.Error())
		} else if got := f.Spec.Expect[0].String(); got != line {
			t.Errorf("%s: read as %s", line, got)
		}
	}
}

func BenchmarkExpectations(b *testing.B) {
	var text strings.Builder
	text.WriteString("version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: /members/}\n  - for: category:search\n    allow: {crawl: /members/free/}\n")
	text.WriteString("  - for: everyone\n    hosts: staging.example.com\n    disallow: {crawl: /}\n    intended: true\n")
	agents := []string{"Googlebot", "everyone", "category:search", "operator:OpenAI"}
	text.WriteString("expect:\n")
	for i := range 10_000 {
		agent := agents[i%len(agents)]
		fmt.Fprintf(&text, "  - %s may not crawl /members/%d/\n", agent, i)
	}
	f, ds := Load("bench.yaml", []byte(text.String()))
	if f == nil {
		b.Fatal(ds.Error())
	}
	b.ReportAllocs()
	for b.Loop() {
		x := newEvaluator(f.Policy, testNow)
		for i := range f.Spec.Expect {
			if x.evaluate(&f.Spec.Expect[i]) != nil {
				b.Fatal("a test fails")
			}
		}
	}
}
