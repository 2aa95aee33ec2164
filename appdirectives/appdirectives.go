// SPDX-License-Identifier: Apache-2.0

// Package appdirectives publishes a policy's directives for applications as App-Directives lines of robots.txt
// (draft-nottingham-plan-b).
package appdirectives

import (
	"iter"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
)

// Field is the key of the lines in robots.txt.
const Field = "App-Directives"

// Lines returns the App-Directives lines for a class of crawlers. purpose is the purpose that the crawlers declare, or
// "". If several lines match a path, an application uses only the line with the longest path. Therefore each line
// repeats the directives of all applications that apply to its path.
func Lines(p *policy.Policy, c *policy.Class, purpose string) ([]policy.Line, []policy.Problem) {
	var patterns []pathpattern.Pattern
	var first policy.Pos
	found := make([]*finder, 0, len(p.Apps()))
	ranks := p.Ranks(c)
	for _, app := range p.Apps() {
		f := newFinder(ranks, app, purpose)
		for _, d := range f.all {
			if patterns == nil {
				first = d.Pos
			}
			patterns = append(patterns, d.Pattern)
		}
		found = append(found, f)
	}
	if len(patterns) == 0 {
		return nil, nil
	}
	problems := hashes(found)
	cells, ok := solve.Cells(patterns, func(at pathpattern.Pattern) (v directed) {
		var texts []string
		for _, f := range found {
			if d := f.at(at); d != nil {
				texts = append(texts, d.Text)
				v.rule, v.pos = f.ruleOf[d], d.Pos
			}
		}
		slices.Sort(texts)
		v.text = strings.Join(texts, ", ")
		return v
	}, func(a, b directed) bool { return a.text == b.text })
	if !ok {
		return nil, append(problems, policy.NewProblem(policy.Error, "app-directives-cross", first,
			"the paths of the app-directives overlap in too many ways, and robots.txt can have only one directive for a path; use paths without * and $"))
	}
	slices.SortFunc(cells, func(a, b solve.Cell[directed]) int { return a.Order - b.Order })
	var lines []policy.Line
	for _, cell := range cells {
		if cell.Value.text != "" {
			line := policy.NewLine(Field, cell.Pattern, cell.Value.text)
			line.Rule, line.Pos = cell.Value.rule, cell.Value.pos
			lines = append(lines, line)
		}
	}
	return lines, problems
}

// directed holds the text of a line, and the rule and position of one of its directives.
type directed struct {
	text string
	rule *policy.Rule
	pos  policy.Pos
}

// hashes reports directives that contain "#". In robots.txt, "#" starts a comment, even within quotes.
func hashes(found []*finder) (problems []policy.Problem) {
	for _, f := range found {
		for _, d := range f.all {
			if strings.Contains(d.Text, "#") {
				problems = append(problems, policy.NewProblem(policy.Error, "app-directive-hash", d.Pos,
					`a directive of %q has a "#", which starts a comment in robots.txt; write %%23 if the application understands it, or leave the "#" out`, d.App))
			}
		}
	}
	return problems
}

// finder finds the directive of one application for the paths of a pattern.
type finder struct {
	ranks  []*pathpattern.Index[*policy.AppDirective]
	all    []*policy.AppDirective
	ruleOf map[*policy.AppDirective]*policy.Rule
}

func newFinder(ranks [][]*policy.Rule, app, purpose string) *finder {
	f := &finder{ruleOf: map[*policy.AppDirective]*policy.Rule{}}
	for _, rank := range ranks {
		var entries []pathpattern.Entry[*policy.AppDirective]
		for _, r := range rank {
			if !isFor(r, purpose) {
				continue
			}
			for i := range r.AppDirectives {
				if d := &r.AppDirectives[i]; d.App == app {
					entries = append(entries, pathpattern.Entry[*policy.AppDirective]{Pattern: d.Pattern, Value: d})
					f.all = append(f.all, d)
					f.ruleOf[d] = r
				}
			}
		}
		if len(entries) > 0 {
			f.ranks = append(f.ranks, pathpattern.NewIndex(entries, earlier))
		}
	}
	return f
}

// isFor reports whether the rule r is for clients that declare the given purpose. If purpose is "", it reports whether
// r is for clients that declare no purpose.
func isFor(r *policy.Rule, purpose string) bool {
	return len(r.UsagePurposes) == 0 || purpose != "" && slices.ContainsFunc(r.UsagePurposes, func(u string) bool { return policy.MatchPurpose(strings.ToLower(u), purpose) })
}

func earlier(a, b *policy.AppDirective) *policy.AppDirective {
	if b.Pos.Line < a.Pos.Line || b.Pos.Line == a.Pos.Line && b.Pos.Column < a.Pos.Column {
		return b
	}
	return a
}

func (f *finder) at(p pathpattern.Pattern) *policy.AppDirective {
	for _, x := range f.ranks {
		var best *policy.AppDirective
		x.Covering(p, func(d *policy.AppDirective) {
			switch {
			case best == nil || d.Pattern.Len() > best.Pattern.Len():
				best = d
			case d.Pattern.Len() == best.Pattern.Len():
				best = earlier(best, d)
			}
		})
		if best != nil {
			return best
		}
	}
	return nil
}

// For yields the directive of each application for a query's host and path, and the directive's rule.
func For(p *policy.Policy, q policy.Query) iter.Seq2[*policy.AppDirective, *policy.Rule] {
	return func(yield func(*policy.AppDirective, *policy.Rule) bool) {
		for _, app := range p.Apps() {
			if d := p.AppDirective(q, app); d != nil && !yield(d, ruleOf(p, d)) {
				return
			}
		}
	}
}

func ruleOf(p *policy.Policy, d *policy.AppDirective) *policy.Rule {
	rules := p.Spec().Rules
	for i := range rules {
		for j := range rules[i].AppDirectives {
			if &rules[i].AppDirectives[j] == d {
				return &rules[i]
			}
		}
	}
	return nil
}

// Value returns the directives of an application for a query's host and path, or "" if there are none.
func Value(p *policy.Policy, q policy.Query, app string) string {
	if d := p.AppDirective(q, app); d != nil && d.Text != d.App { // a name alone has no directives
		return d.Text
	}
	return ""
}

// Patterns returns the patterns of all directives of a rule.
func Patterns(r *policy.Rule) (all []pathpattern.Pattern) {
	for i := range r.AppDirectives {
		all = append(all, r.AppDirectives[i].Pattern)
	}
	return all
}
