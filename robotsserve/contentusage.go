// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"fmt"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
	"github.com/robotspolicy/caddy-robots-policy/rights"
)

// aipref is what a class may do by the categories of the AIPREF vocabulary.
type aipref struct{ finders [3]*rights.Finder }

func preferences(p *policy.Policy, c *policy.Class, purpose string) *aipref {
	a := &aipref{}
	for i, u := range policy.RightsUsages() {
		a.finders[i] = rights.NewFinder(p, c, u, purpose)
	}
	return a
}

// first is a statement to name in messages, or the zero value.
func (a *aipref) first() policy.Applied {
	for _, f := range a.finders {
		if s := f.First(); s.Statement != nil {
			return s
		}
	}
	return policy.Applied{}
}

func (a *aipref) pos() policy.Pos {
	if s := a.first().Statement; s != nil {
		return s.Pos
	}
	return policy.Pos{}
}

// contentUsage returns the Content-Usage lines of a class
// (draft-ietf-aipref-attach).
func (a *aipref) contentUsage() ([]Line, []policy.Problem) {
	var patterns []pathpattern.Pattern
	for _, f := range a.finders {
		patterns = append(patterns, f.Patterns()...)
	}
	if len(patterns) == 0 {
		return nil, nil
	}
	cells, ok := solve.Cells(patterns, func(at pathpattern.Pattern) (v cellValue) {
		var verdicts rights.Verdicts
		for i, f := range a.finders {
			d := f.At(at)
			verdicts[i] = d.Verdict
			if d.Verdict != policy.Unstated {
				v.rule = d.Rule
				if d.Statement != nil {
					v.pos = d.Statement.Pos
				}
			}
		}
		v.text = verdicts.ContentUsage()
		return v
	}, sameText)
	if ok {
		return extensionLines("Content-Usage", cells), nil
	}
	text := a.strictUsage()
	problem := policy.Problem{
		Severity: policy.Warning, Code: "content-usage-cross", Pos: a.pos(),
		Message: fmt.Sprintf("the paths for train-ai, ai-use and search cross in too many ways for robots.txt to say what holds where; it says %q for every path; use paths without * and $", text),
	}
	if text == "" {
		return nil, []policy.Problem{problem}
	}
	return []Line{{Text: "Content-Usage: " + text, Rule: a.first().Rule, Pos: a.pos(), key: "content-usage", pattern: pathpattern.All}}, []policy.Problem{problem}
}

// strictUsage says no to what is disallowed for any path.
func (a *aipref) strictUsage() string {
	verdicts := a.strictest()
	for i := range verdicts {
		if verdicts[i] == policy.Allowed {
			verdicts[i] = policy.Unstated
		}
	}
	return verdicts.ContentUsage()
}

func (a *aipref) strictest() (verdicts rights.Verdicts) {
	for i, f := range a.finders {
		verdicts[i] = f.Strictest()
	}
	return verdicts
}

// contentSignal returns the Content-Signal line of a class, which is for every path: it
// says no to what is disallowed anywhere, and yes to what is allowed everywhere. use is
// how far content may be used, or "".
func (a *aipref) contentSignal(use string) string {
	if value := a.strictest().ContentSignal(use); value != "" {
		return "Content-Signal: " + value
	}
	return ""
}
