// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// If a test of a policy fails or was not run, the claim does not say that all tests passed.
func TestTestsPass(t *testing.T) {
	t.Parallel()
	const rules = "version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /a/}\nexpect:\n"
	for _, c := range []struct {
		name, text string
		notRun     bool // true if the second test is not run
		want       claim.Outcome
		says       string
	}{
		{"pass", rules + "  - GPTBot may not crawl /a/\n", false, claim.Holds, "1 test passed"},
		{"one fails", rules + "  - GPTBot may not crawl /a/\n  - GPTBot may crawl /a/\n", false, claim.Fails, "1 of 2 tests failed"},
		{"one was not run", rules + "  - GPTBot may not crawl /a/\n  - everyone may crawl /b/\n", true, claim.CannotBeJudged, "It cannot be judged whether 2 tests pass"},
	} {
		f, ds := LoadWith("p.yaml", []byte(c.text), Options{Accepted: true})
		if f == nil {
			t.Fatalf("%s: %v", c.name, ds.Text())
		}
		if c.notRun {
			ds = append(ds, Diagnostic{Pos: f.Spec.Expect[1].Pos, Code: "more-than-allowed", Severity: policy.Warning})
		}
		results := TestResults(f.Spec.Expect, ds)
		if last := results[len(results)-1].Outcome; last != c.want {
			t.Errorf("%s: the last test: %v", c.name, last)
		}
		if got := TestsPass(f.Spec.Expect, ds); got.Outcome() != c.want || got.Text() != c.says {
			t.Errorf("%s: %v: %s", c.name, got.Outcome(), got.Text())
		}
	}
	if TestsPass(nil, nil).Made() {
		t.Error("a claim about no tests")
	}
}
