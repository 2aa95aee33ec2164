// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve/acap"
)

// extensions returns the lines of a class that extend RFC 9309.
func extensions(p *policy.Policy, c *policy.Class, purpose string) (lines []string, problems []policy.Problem) {
	lines, problems = appDirectives(p, c, purpose)
	publish := p.Spec().Publish
	if publish.ContentUsage == policy.Off && publish.ContentSignal == policy.Off {
		return lines, problems
	}
	prefs := preferences(p, c, purpose)
	if publish.ContentUsage != policy.Off {
		usage, told := prefs.contentUsage()
		lines, problems = append(lines, usage...), append(problems, told...)
	}
	if publish.ContentSignal != policy.Off {
		if signal := prefs.contentSignal(); signal != "" {
			lines = append(lines, signal)
		}
	}
	return lines, problems
}

// appDirectives returns the App-Directives lines of a class
// (draft-nottingham-plan-b). The longest path replaces what shorter ones say, so
// that each line carries the directives of every application for its path.
func appDirectives(p *policy.Policy, c *policy.Class, purpose string) ([]string, []policy.Problem) {
	apps := p.Apps()
	if len(apps) == 0 {
		return nil, nil
	}
	ranks := p.Ranks(c)
	found := make([]*appFinder, len(apps))
	var patterns []pathpattern.Pattern
	var first *policy.AppDirective
	for i, app := range apps {
		found[i] = newAppFinder(ranks, app, purpose)
		for _, d := range found[i].all {
			patterns = append(patterns, d.Pattern)
			if first == nil {
				first = d
			}
		}
	}
	if len(patterns) == 0 {
		return nil, nil
	}
	problems := hashes(found)
	cells, ok := tile(patterns, func(at pathpattern.Pattern) string {
		var list httpsfv.List
		for _, f := range found {
			if d := f.at(at); d != nil {
				list = append(list, d.Item)
			}
		}
		return marshal(list)
	})
	if !ok {
		return nil, append(problems, policy.Problem{
			Severity: policy.Error, Code: "app-directives-cross", Pos: first.Pos,
			Message: "the paths of the app-directives cross in too many ways, and robots.txt can only say one thing for a path; use paths without * and $",
		})
	}
	return extensionLines("App-Directives: ", cells), problems
}

// hashes finds directives that robots.txt cannot carry, as "#" starts a comment
// there, also within quotes.
func hashes(found []*appFinder) (problems []policy.Problem) {
	for _, f := range found {
		for _, d := range f.all {
			if strings.Contains(marshal(httpsfv.List{d.Item}), "#") {
				problems = append(problems, policy.Problem{
					Severity: policy.Error, Code: "app-directive-hash", Pos: d.Pos,
					Message: fmt.Sprintf(`a directive of %q has a "#", and crawlers take what follows it in robots.txt for a comment; write %%23 if the application reads that, or leave it out`, d.App),
				})
			}
		}
	}
	return problems
}

// extensionLines prints cells. The path "/" is left out: a line without a path
// is for all.
func extensionLines(key string, cells []cell) []string {
	slices.SortFunc(cells, func(a, b cell) int { return a.order - b.order })
	var lines []string
	for _, c := range cells {
		if c.value == "" {
			continue
		}
		path := c.text + " "
		if c.text == "/" {
			path = ""
		}
		lines = append(lines, key+path+c.value)
	}
	return lines
}

// marshal is a List with members and parameters in a fixed order.
func marshal(list httpsfv.List) string {
	texts := make([]string, 0, len(list))
	for _, m := range list {
		text, err := httpsfv.Marshal(httpsfv.List{sorted(m.(httpsfv.Item))})
		if err != nil {
			continue // the policy file's reader takes only what can be written
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

func sorted(item httpsfv.Item) httpsfv.Item {
	if item.Params == nil {
		return item
	}
	names := slices.Sorted(slices.Values(item.Params.Names()))
	params := httpsfv.NewParams()
	for _, n := range names {
		v, _ := item.Params.Get(n)
		params.Add(n, v)
	}
	return httpsfv.Item{Value: item.Value, Params: params}
}

// appFinder finds the directive of one application for the paths of a pattern.
type appFinder struct {
	ranks []*pathpattern.Index[*policy.AppDirective]
	all   []*policy.AppDirective
}

func newAppFinder(ranks []policy.Rank, app, purpose string) *appFinder {
	f := &appFinder{}
	for _, rank := range ranks {
		var entries []pathpattern.Entry[*policy.AppDirective]
		for _, r := range rank.Rules {
			if !speaksOf(r, purpose) {
				continue
			}
			for i := range r.AppDirectives {
				if d := &r.AppDirectives[i]; d.App == app {
					entries = append(entries, pathpattern.Entry[*policy.AppDirective]{Pattern: d.Pattern, Value: d})
					f.all = append(f.all, d)
				}
			}
		}
		if len(entries) > 0 {
			f.ranks = append(f.ranks, pathpattern.NewIndex(entries, earlier))
		}
	}
	return f
}

// speaksOf reports whether a rule speaks to those who name a purpose, "" for
// none.
func speaksOf(r *policy.Rule, purpose string) bool {
	return len(r.UsagePurposes) == 0 || purpose != "" && slices.ContainsFunc(r.UsagePurposes, func(u string) bool { return acap.MatchPurpose(u, purpose) })
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

// aipref is what a class is told of the categories of the AIPREF vocabulary.
type aipref struct {
	finders  [3]layerFinder
	patterns []pathpattern.Pattern
	pos      policy.Pos
}

var categories = [...]policy.Usage{policy.TrainAI, policy.AIUse, policy.Search}

func preferences(p *policy.Policy, c *policy.Class, purpose string) *aipref {
	a := &aipref{}
	for i, u := range categories {
		layers := p.Layers(c, u, purpose)
		for j := range layers {
			for _, r := range layers[j].Statements {
				if len(a.patterns) == 0 {
					a.pos = r.Statement.Pos
				}
				a.patterns = append(a.patterns, r.Statement.Pattern)
			}
		}
		a.finders[i] = newLayerFinder(layers)
	}
	return a
}

// contentUsage returns the Content-Usage lines of a class
// (draft-ietf-aipref-attach).
func (a *aipref) contentUsage() ([]string, []policy.Problem) {
	if len(a.patterns) == 0 {
		return nil, nil
	}
	cells, ok := tile(a.patterns, func(at pathpattern.Pattern) string {
		var parts []string
		for i, u := range categories {
			if s := a.finders[i].at(at); s != nil {
				parts = append(parts, u.String()+"="+yesNo(s.Allow, "y", "n"))
			}
		}
		return strings.Join(parts, ", ")
	})
	if ok {
		return extensionLines("Content-Usage: ", cells), nil
	}
	var parts []string
	for i, v := range a.strictest() {
		if v == -1 {
			parts = append(parts, categories[i].String()+"=n")
		}
	}
	problem := policy.Problem{
		Severity: policy.Warning, Code: "content-usage-cross", Pos: a.pos,
		Message: fmt.Sprintf("the paths for train-ai, ai-use and search cross in too many ways for robots.txt to say what holds where; it says %q for every path; use paths without * and $", strings.Join(parts, ", ")),
	}
	if len(parts) == 0 {
		return nil, []policy.Problem{problem}
	}
	return []string{"Content-Usage: " + strings.Join(parts, ", ")}, []policy.Problem{problem}
}

// contentSignal returns the Content-Signal line of a class, which is for every
// path: it says no to what is disallowed anywhere, and yes to what is allowed
// everywhere.
func (a *aipref) contentSignal() string {
	names := [...]string{"ai-train", "ai-input", "search"}
	var parts []string
	values := a.strictest()
	for _, i := range []int{2, 1, 0} {
		if values[i] != 0 {
			parts = append(parts, names[i]+"="+yesNo(values[i] > 0, "yes", "no"))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Content-Signal: " + strings.Join(parts, ", ")
}

// strictest is what can be said of each category for all paths at once: -1 for
// what is disallowed anywhere, 1 for what is allowed everywhere.
func (a *aipref) strictest() (values [3]int) {
	for i := range categories {
		f := &a.finders[i]
		if s := f.at(pathpattern.All); s != nil && s.Allow {
			values[i] = 1
		}
		for _, l := range f.layers {
			for _, r := range l.Statements {
				if !f.at(r.Statement.Pattern).Allow {
					values[i] = -1
				}
			}
		}
	}
	return values
}

func yesNo(yes bool, y, n string) string {
	if yes {
		return y
	}
	return n
}

// layerFinder decides about the paths of a pattern by layers.
type layerFinder struct {
	layers []policy.Layer
	index  []*pathpattern.Index[[]policy.Ref]
}

func newLayerFinder(layers []policy.Layer) layerFinder {
	f := layerFinder{layers: layers}
	for _, l := range layers {
		entries := make([]pathpattern.Entry[[]policy.Ref], len(l.Statements))
		for i, r := range l.Statements {
			entries[i] = pathpattern.Entry[[]policy.Ref]{Pattern: r.Statement.Pattern, Value: []policy.Ref{r}}
		}
		f.index = append(f.index, pathpattern.NewIndex(entries, func(a, b []policy.Ref) []policy.Ref { return slices.Concat(a, b) }))
	}
	return f
}

// at is the statement that decides about paths that match p and, of the
// policy's patterns, only those that cover it. It is nil for none.
func (f *layerFinder) at(p pathpattern.Pattern) *policy.Statement {
	for i, x := range f.index {
		var tied []policy.Ref
		x.Covering(p, func(refs []policy.Ref) {
			for _, r := range refs {
				switch n := r.Statement.Pattern.Len(); {
				case len(tied) == 0 || n > tied[0].Statement.Pattern.Len():
					tied = append(tied[:0], r)
				case n == tied[0].Statement.Pattern.Len():
					tied = append(tied, r)
				}
			}
		})
		if len(tied) > 0 {
			// Decides names the first of several in the order of the file.
			slices.SortStableFunc(tied, func(a, b policy.Ref) int {
				return slices.Index(f.layers[i].Statements, a) - slices.Index(f.layers[i].Statements, b)
			})
			return f.layers[i].Decides(tied).Statement
		}
	}
	return nil
}
