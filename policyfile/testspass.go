// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// These are the codes for a failing test. The first code is for a new policy text, and the second code is for a
// previously accepted text.
const (
	codeTestFails    = "expectation-failed"
	codeTestFailsNow = "expectation-no-longer-holds"
)

// notRun holds the codes for tests that did not run. The first code is for a new policy text, and the second code is
// for a previously accepted text.
var notRun = []string{"too-many-rules", "more-than-allowed"}

// IsFailedTest reports whether a diagnostic is about a failing test of the policy.
func (d *Diagnostic) IsFailedTest() bool {
	return d.Code == codeTestFails || d.Code == codeTestFailsNow
}

// testsSubject holds the facts that [testsPass] judges.
type testsSubject struct {
	Failing claim.Known[int] `gap:"tests-not-run" what:"the tests were not run"`
	Tests   int
}

// testsPass is the claim that the tests in a policy pass.
var testsPass = claim.Register("tests-pass", func(s testsSubject) claim.Finding {
	failing, _ := s.Failing.Get()
	f := claim.Finding{Fails: failing > 0, Text: english.Count(s.Tests, "test") + " passed", Unjudged: "It cannot be judged whether " + english.Count(s.Tests, "test") + " pass"}
	if f.Fails {
		f.Text = fmt.Sprintf("%d of %s failed", failing, english.Count(s.Tests, "test"))
	}
	return f
})

// TestResult is a test of a policy with its result. If the test did not run, it is not known whether it passes.
type TestResult struct {
	policy.Expectation
	Outcome claim.Outcome
	Message string // the message of a failing test
}

// TestResults returns the result of each test, based on the diagnostics about the policy.
func TestResults(tests []policy.Expectation, ds Diagnostics) []TestResult {
	all := make([]TestResult, len(tests))
	outcome := claim.Holds
	for i, e := range tests {
		for j := range ds {
			if ds[j].Pos == e.Pos && slices.Contains(notRun, ds[j].Code) {
				outcome = claim.CannotBeJudged // the test did not run, and neither did the tests after it
			}
		}
		all[i] = TestResult{Expectation: e, Outcome: outcome}
		failed := func(d Diagnostic) bool { return d.Pos == e.Pos && d.IsFailedTest() }
		if at := slices.IndexFunc(ds, failed); at >= 0 {
			all[i].Outcome, all[i].Message = claim.Fails, ds[at].Message
		}
	}
	return all
}

// TestsPass judges whether the tests of a policy pass, based on its diagnostics. For a policy without tests, it returns
// the zero Claim.
func TestsPass(tests []policy.Expectation, ds Diagnostics) claim.Claim {
	if len(tests) == 0 {
		return claim.Claim{}
	}
	count := map[claim.Outcome]int{}
	for _, r := range TestResults(tests, ds) {
		count[r.Outcome]++
	}
	var c claim.Coverage
	if n := count[claim.CannotBeJudged]; n > 0 {
		c.Gaps = append(c.Gaps, claim.Gap{
			Name: "tests-not-run", Count: int64(n), What: english.Count(n, "test") + " could not be run, because there are too many combinations of crawlers and hosts",
			Close: "in the tests, write addresses with a host instead of paths",
		})
	}
	return claim.Judge(testsPass, testsSubject{claim.Read(count[claim.Fails], c), len(tests)})
}
