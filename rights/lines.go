// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
)

// Lines returns the lines that state the client's decisions in the syntax of the vocabulary f, for the client's group
// in robots.txt. It also returns problems if the lines cannot express the decisions exactly.
func (f *Vocabulary) Lines(c *Client) ([]policy.Line, []policy.Problem) {
	if f.Crossing != "" {
		return f.byPath(c)
	}
	text := f.Text(c.strictest(), f.UseOf(&c.Policy.Spec().Publish))
	if text == "" {
		return nil, nil
	}
	return []policy.Line{f.everywhere(c, text)}, nil
}

// StrictLine returns the value of a single line for all paths, or "" if nothing is disallowed. It disallows each usage
// that the policy disallows on at least one path.
func (f *Vocabulary) StrictLine(c *Client) string { return f.Text(c.strictest().Restrictions(), "") }

// everywhere returns the line with this text for all paths.
func (f *Vocabulary) everywhere(c *Client, text string) policy.Line {
	l := policy.NewLine(f.Field, pathpattern.All, text)
	if all := c.all(); len(all) > 0 {
		l.Rule, l.Pos = all[0].Rule, all[0].Statement.Pos
	}
	return l
}

func (f *Vocabulary) byPath(c *Client) ([]policy.Line, []policy.Problem) {
	all := c.all()
	if len(all) == 0 {
		return nil, nil
	}
	patterns := make([]pathpattern.Pattern, len(all))
	for i, a := range all {
		patterns[i] = a.Statement.Pattern
	}
	form := solve.Form[Preferences]{
		Value: c.Preferences, Alike: Preferences.Alike,
		Same: func(a, b Preferences) bool { return a.Verdicts() == b.Verdicts() },
	}
	cells, ok := form.Cells(patterns)
	if !ok {
		text := f.StrictLine(c)
		line := f.everywhere(c, text)
		problems := []policy.Problem{policy.NewProblem(policy.Warning, f.Crossing, line.Pos,
			"the paths for train-ai, ai-use and search overlap in too many ways for robots.txt. So robots.txt states %q for every path; use paths without * and $", text)}
		if text == "" {
			return nil, problems
		}
		return []policy.Line{line}, problems
	}
	slices.SortFunc(cells, func(a, b solve.Cell[Preferences]) int { return a.Order - b.Order })
	var lines []policy.Line
	for _, cell := range cells {
		text := f.Text(cell.Value.Verdicts(), "")
		if text == "" {
			continue
		}
		line := policy.NewLine(f.Field, cell.Pattern, text)
		for _, d := range cell.Value {
			if d.Statement != nil {
				line.Rule, line.Pos = d.Rule, d.Statement.Pos
			}
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// strictest returns the result of Strictest for each usage.
func (c *Client) strictest() (verdicts Verdicts) {
	for i, u := range policyUsages {
		verdicts[i] = c.Strictest(u)
	}
	return verdicts
}
