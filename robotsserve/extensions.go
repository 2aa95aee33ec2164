// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
	"github.com/robotspolicy/caddy-robots-policy/rights"
)

// extensions returns the lines of a class that extend RFC 9309.
func extensions(p *policy.Policy, c *policy.Class, host, purpose string) (lines []Line, problems []policy.Problem) {
	lines, problems = appDirectives(p, c, purpose)
	publish := &p.Spec().Publish
	usage, signal := &rights.ContentUsage, &rights.ContentSignal
	if !usage.On(publish) && !signal.On(publish) {
		return lines, problems
	}
	prefs := preferences(p, c, host, purpose)
	if usage.On(publish) {
		stated, found := prefs.byPath(usage)
		lines, problems = append(lines, stated...), append(problems, found...)
	}
	if signal.On(publish) {
		if text := signal.Text(prefs.strictest(), publish.ContentSignalUse); text != "" {
			lines = append(lines, Line{Text: signal.Field + ": " + text, Rule: prefs.first().Rule, Pos: prefs.pos()})
		}
	}
	return lines, problems
}

// appDirectives returns the App-Directives lines of a class (draft-nottingham-plan-b). The line
// with the longest path replaces shorter ones, so each carries the directives of every application.
func appDirectives(p *policy.Policy, c *policy.Class, purpose string) ([]Line, []policy.Problem) {
	var patterns []pathpattern.Pattern
	var first policy.Pos
	found := make([]*appFinder, 0, len(p.Apps()))
	ranks := p.Ranks(c)
	for _, app := range p.Apps() {
		f := newAppFinder(ranks, app, purpose)
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
	cells, ok := solve.Cells(patterns, func(at pathpattern.Pattern) (v cellValue) {
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
	}, sameText)
	if !ok {
		return nil, append(problems, policy.NewProblem(policy.Error, "app-directives-cross", first,
			"the paths of the app-directives cross in too many ways, and robots.txt can only say one thing for a path; use paths without * and $"))
	}
	return extensionLines("App-Directives", cells), problems
}

// hashes reports directives with "#", which starts a comment in robots.txt, even within quotes.
func hashes(found []*appFinder) (problems []policy.Problem) {
	for _, f := range found {
		for _, d := range f.all {
			if strings.Contains(d.Text, "#") {
				problems = append(problems, policy.NewProblem(policy.Error, "app-directive-hash", d.Pos,
					`a directive of %q has a "#", which starts a comment in robots.txt; write %%23 if the application reads that, or leave it out`, d.App))
			}
		}
	}
	return problems
}

// extensionLines prints cells. A line without a path is for all paths.
func extensionLines(key string, cells []solve.Cell[cellValue]) []Line {
	slices.SortFunc(cells, func(a, b solve.Cell[cellValue]) int { return a.Order - b.Order })
	var lines []Line
	for _, c := range cells {
		if c.Value.text == "" {
			continue
		}
		path := c.Pattern.String() + " "
		if c.Pattern == pathpattern.All {
			path = ""
		}
		lines = append(lines, Line{Text: key + ": " + path + c.Value.text, Rule: c.Value.rule, Pos: c.Value.pos, key: strings.ToLower(key), pattern: c.Pattern})
	}
	return lines
}

// cellValue is what a line says for a path, and where that comes from.
type cellValue struct {
	text string
	rule *policy.Rule
	pos  policy.Pos
}

func sameText(a, b cellValue) bool { return a.text == b.text }

// appFinder finds the directive of one application for the paths of a pattern.
type appFinder struct {
	ranks  []*pathpattern.Index[*policy.AppDirective]
	all    []*policy.AppDirective
	ruleOf map[*policy.AppDirective]*policy.Rule
}

func newAppFinder(ranks [][]*policy.Rule, app, purpose string) *appFinder {
	f := &appFinder{ruleOf: map[*policy.AppDirective]*policy.Rule{}}
	for _, rank := range ranks {
		var entries []pathpattern.Entry[*policy.AppDirective]
		for _, r := range rank {
			if !speaksOf(r, purpose) {
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

// speaksOf reports whether a rule is for clients that name a purpose ("" for none).
func speaksOf(r *policy.Rule, purpose string) bool {
	return len(r.UsagePurposes) == 0 || purpose != "" && slices.ContainsFunc(r.UsagePurposes, func(u string) bool { return policy.MatchPurpose(strings.ToLower(u), purpose) })
}

func earlier(a, b *policy.AppDirective) *policy.AppDirective {
	if b.Pos.Line < a.Pos.Line || b.Pos.Line == a.Pos.Line && b.Pos.Column < a.Pos.Column {
		return b
	}
	return a
}

func (f *appFinder) at(p pathpattern.Pattern) *policy.AppDirective {
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

// aipref says what a class may do, by category of the AIPREF vocabulary.
type aipref struct {
	*rights.Client
	all []policy.Applied
}

func preferences(p *policy.Policy, c *policy.Class, host, purpose string) *aipref {
	a := &aipref{Client: rights.NewClient(p, c, host, purpose)}
	for _, u := range policy.RightsUsages() {
		a.all = append(a.all, a.Statements(u)...)
	}
	return a
}

// first is a statement to name in messages, or the zero value.
func (a *aipref) first() policy.Applied {
	if len(a.all) == 0 {
		return policy.Applied{Statement: &policy.Statement{}}
	}
	return a.all[0]
}

func (a *aipref) pos() policy.Pos { return a.first().Statement.Pos }

// byPath returns the lines of a class in a vocabulary whose lines can have paths.
func (a *aipref) byPath(f *rights.Vocabulary) ([]Line, []policy.Problem) {
	if len(a.all) == 0 {
		return nil, nil
	}
	var patterns []pathpattern.Pattern
	for i := range a.all {
		patterns = append(patterns, a.all[i].Statement.Pattern)
	}
	form := solve.Form[rights.Preferences]{
		Value: a.Preferences, Alike: rights.Preferences.Alike,
		Same: func(a, b rights.Preferences) bool { return a.Verdicts() == b.Verdicts() },
	}
	if cells, ok := form.Cells(patterns); ok {
		said := make([]solve.Cell[cellValue], len(cells))
		for i, c := range cells {
			v := cellValue{text: f.Text(c.Value.Verdicts(), "")}
			for _, d := range c.Value {
				if d.Statement != nil {
					v.rule, v.pos = d.Rule, d.Statement.Pos
				}
			}
			said[i] = solve.Cell[cellValue]{Pattern: c.Pattern, Value: v, Order: c.Order}
		}
		return extensionLines(f.Field, said), nil
	}
	text := f.Text(a.disallowed(), "")
	problem := policy.NewProblem(policy.Warning, "content-usage-cross", a.pos(),
		"the paths for train-ai, ai-use and search cross in too many ways for robots.txt. It says %q for every path; use paths without * and $", text)
	if text == "" {
		return nil, []policy.Problem{problem}
	}
	return []Line{{Text: f.Field + ": " + text, Rule: a.first().Rule, Pos: a.pos(), key: f.LineKey(), pattern: pathpattern.All}}, []policy.Problem{problem}
}

// disallowed is what is disallowed for any path.
func (a *aipref) disallowed() rights.Verdicts { return a.strictest().Restrictions() }

// strictest says no to what is disallowed for any path, and yes to what is allowed for all.
func (a *aipref) strictest() (verdicts rights.Verdicts) {
	for i, u := range policy.RightsUsages() {
		verdicts[i] = a.Strictest(u)
	}
	return verdicts
}
