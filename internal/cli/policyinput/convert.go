// SPDX-License-Identifier: Apache-2.0

package policyinput

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// Modeline is a comment that tells editors the schema of a policy file.
const Modeline = "yaml-language-server: $schema=https://raw.githubusercontent.com/robotspolicy/caddy-robots-policy/main/docs/site-policy.schema.json"

// Converted is the result of converting a robots.txt to a policy file.
type Converted struct {
	Text []byte
	File *policyfile.File
	// Imported is the parsed robots.txt that Text was made from. Its Spec also has the tests of the policy file.
	Imported *robotstxt.Imported
	Notes    []robotstxt.Note // about lines that were left out, or whose meaning in the policy differs slightly

	name   string
	data   []byte // the robots.txt
	judged *Questions
	needed bool // true if statements with the warning "changes-nothing" could not be removed safely
}

// Convert returns a policy file with the same meaning as a robots.txt. The policy file contains the comments of the
// robots.txt, and tests. The tests are for search engines, and for crawlers that may not crawl the site. If the data is
// not a robots.txt, the error wraps ErrInvalid.
func Convert(name string, data []byte) (*Converted, error) {
	if isPolicyFile("", data) {
		return nil, fmt.Errorf("%w robots.txt %s: %w", ErrInvalid, name, errPolicy)
	}
	im, err := importFile(data)
	if err != nil {
		return nil, fmt.Errorf("%w robots.txt %s: %w", ErrInvalid, name, err)
	}
	c := &Converted{name: name, data: data, Imported: im, Notes: slices.Clone(im.Notes)}
	warnings, err := c.settle()
	if err != nil {
		return nil, err
	}
	for _, d := range warnings {
		if line, ok := c.line(d.Pos); ok && d.Severity == policy.Warning {
			c.Notes = append(c.Notes, robotstxt.Note{Line: line, Message: "the policy that import makes from this file has a warning (line numbers in the warning are those in the policy): " + d.Message, Wrong: true, Cause: d.Code})
		}
	}
	for _, p := range c.File.Effect.Robots.Check() {
		if p.Severity != policy.Hint {
			line, _ := c.line(p.Pos)
			c.Notes = append(c.Notes, robotstxt.Note{Line: line, Message: fmt.Sprintf("%s [%s]", p.Message, p.Code), Cause: p.Code})
		}
	}
	c.Notes = append(c.Notes, c.preferenceNotes()...)
	slices.SortStableFunc(c.Notes, func(a, b robotstxt.Note) int { return a.Line - b.Line })
	return c, nil
}

// preferenceNotes returns notes about preferences that the policy applies to more crawlers than the original
// robots.txt.
func (c *Converted) preferenceNotes() (notes []robotstxt.Note) {
	if !c.Imported.HasPreferences() {
		return nil
	}
	q := c.Judge()
	for i := range q.Differences {
		if d := &q.Differences[i]; d.New.Preference != "" {
			notes = append(notes, robotstxt.Note{Line: d.Stated, Message: fmt.Sprintf("in the robots.txt that the policy produces, %s also applies to %s, for %s. "+
				"In a robots.txt, a crawler uses only its own group, and in this group the line with the longest path. But a policy combines all rules for a crawler", d.New.Written, someCrawlers(d, maxNamed), d.Path)})
		}
	}
	return notes
}

// maxNamed limits the number of crawlers that a note names.
const maxNamed = 20

// importFile imports a robots.txt with the built-in catalog.
func importFile(data []byte) (*robotstxt.Imported, error) {
	return robotstxt.Import(data, policyfile.CatalogCrawlers())
}

// statement is a statement and the index of its rule.
type statement struct {
	rule int
	policy.Statement
}

// guards lists safety checks of policy files that warn about disallowed search engines. A rule of a policy can state
// that this is intended. A robots.txt cannot state it, so the conversion adds the statement to the rules.
var guards = []string{"disallows-search", "site-not-indexed"}

// maxRounds limits how often settle writes the policy again to avoid warnings. maxSettled limits the total number of
// allow and disallow entries in all these rounds.
const (
	maxRounds  = 100
	maxSettled = 40_000
)

// settle writes the policy file. If the policy has warnings that accept can resolve, it changes the policy and writes
// the file again. Such warnings are about entries without effect, and about search engines that the robots.txt
// disallows, too. settle returns the remaining diagnostics, but never errors in the policy.
func (c *Converted) settle() (policyfile.Diagnostics, error) {
	statements := 1
	for i := range c.Imported.Spec.Rules {
		statements += len(c.Imported.Spec.Rules[i].Statements)
	}
	for range max(1, min(maxRounds, maxSettled/statements)) {
		ds, err := c.print()
		if err != nil {
			return nil, err
		}
		if ds.Count(policy.Warning) == 0 || !c.accept(ds) {
			break
		}
	}
	c.Imported.Spec.Expect = expectations(c.File.Policy)
	return c.print()
}

// print writes the text of the policy file and loads it.
func (c *Converted) print() (ds policyfile.Diagnostics, err error) {
	header := Modeline + "\n\nConverted from " + c.name + ". Review it, then run: caddy robots-policy check FILE"
	c.Text = policyfile.PrintWith(c.Imported.Spec, policyfile.PrintOptions{Header: header, Comments: c.Imported.Comments, LineComments: c.Imported.LineComments, KeyComments: map[string]string{"publish": switchedOff(&c.Imported.Spec.Publish)}})
	c.File, ds = policyfile.Load("the converted policy", c.Text)
	if ds.HasErrors() {
		return nil, fmt.Errorf("converting %s failed; please report it with the file:\n%w", c.name, ds)
	}
	return ds, nil
}

// defaultPublish returns the channels of a policy file that does not mention them.
var defaultPublish = sync.OnceValue(func() *policy.Publish {
	empty, _ := policyfile.Load("an empty policy", []byte("version: 1\n"))
	return &empty.Spec.Publish
})

// switchedOff returns a comment for a policy converted from a robots.txt. The comment lists the channels that are on by
// default, but off in the settings p of this policy.
func switchedOff(p *policy.Publish) string {
	var why []string
	for _, v := range rights.Vocabularies {
		if v.On(defaultPublish()) && !v.On(p) {
			why = append(why, v.Key+" is off, because this robots.txt has no "+v.Field+" lines.")
		}
	}
	if p.Controls == policy.Off {
		why = append(why, "controls is off: import does not add the controls against AI that crawler operators offer.")
	}
	return strings.Join(why, "\n")
}

// accept tries to resolve the warnings in ds. It removes statements without effect. If a safety check in guards warns
// about a rule, it marks the rule as intended. It returns true if it resolved at least one warning.
func (c *Converted) accept(ds policyfile.Diagnostics) bool {
	did := false
	var idle []statement
	for _, d := range ds {
		if d.Severity != policy.Warning {
			continue
		}
		at, s := c.at(d.Pos)
		if at < 0 {
			continue
		}
		rule := &c.Imported.Spec.Rules[at]
		switch {
		case d.Code == "changes-nothing":
			if s != nil {
				idle = append(idle, statement{at, *s})
			}
		case slices.Contains(guards, d.Code) && !slices.Contains(rule.IntendedChecks, d.Code) && c.Imported.Stricter == "":
			rule.IntendedChecks, did = append(rule.IntendedChecks, d.Code), true
		}
	}
	return did || c.drop(idle)
}

// drop removes statements that seem to have no effect. After that, it compares the decisions of the new policy with the
// decisions of the old policy. If a decision has changed, or if the comparison is not complete, it restores the
// statements and returns false.
func (c *Converted) drop(idle []statement) bool {
	if len(idle) == 0 || c.needed {
		return false
	}
	before, had, comments := c.File, c.Imported.Spec.Rules, c.Imported.Comments
	rules := slices.Clone(had)
	for i := range rules {
		rules[i].Statements = slices.DeleteFunc(slices.Clone(rules[i].Statements), func(s policy.Statement) bool { return slices.Contains(idle, statement{i, s}) })
	}
	c.Imported.Spec.Rules = rules
	c.Imported.DropEmptyRules()
	if _, err := c.print(); err == nil {
		if changes, complete := compare.Decisions(before.Policy, c.File.Policy, compare.Options{}); complete && len(changes) == 0 {
			return true
		}
	}
	c.Imported.Spec.Rules, c.Imported.Comments, c.File, c.needed = had, comments, before, true
	return false
}

// at finds the rule and the statement at a position of the converted policy file. It returns the index of the rule in
// c.Imported.Spec, and the statement. The index is -1 if no rule is at the position. at relies on the fact that the
// loaded file contains the imported rules in the same order.
func (c *Converted) at(pos policy.Pos) (int, *policy.Statement) {
	rules := c.File.Spec.Rules
	found := -1
	for i := range rules {
		if rules[i].Pos.Line <= pos.Line {
			found = i
		}
	}
	if found < 0 || found >= len(c.Imported.Spec.Rules) {
		return -1, nil
	}
	r := &c.Imported.Spec.Rules[found]
	for i := range rules[found].Statements {
		s := &rules[found].Statements[i]
		if s.Pos.Line != pos.Line {
			continue
		}
		for j := range r.Statements {
			if t := &r.Statements[j]; t.Usage == s.Usage && t.Pattern == s.Pattern && t.Allow == s.Allow {
				return found, t
			}
		}
	}
	return found, nil
}

// line returns the line of the robots.txt that led to the text at a position of the policy file. The result is false if
// the policy file has no rule at this position.
func (c *Converted) line(pos policy.Pos) (int, bool) {
	at, s := c.at(pos)
	if at < 0 {
		return 0, false
	}
	r := &c.Imported.Spec.Rules[at]
	if s != nil && s.Pos.Line > 0 {
		return s.Pos.Line, true
	}
	return cmp.Or(r.CrawlDelayPos.Line, r.Pos.Line), true
}

// expectations returns tests which say what crawlers may do at present. There are tests for Googlebot and Bingbot, and
// for the crawlers that rules name and that may not crawl "/". If unlisted clients may not crawl "/", there are also
// tests for the search engines that rules name.
func expectations(p *policy.Policy) (tests []policy.Expectation) {
	named := map[policy.CrawlerID]bool{}
	for _, r := range p.Spec().Rules {
		for _, a := range r.For {
			named[p.Crawler(a.Name)] = a.Kind == policy.ForToken || named[p.Crawler(a.Name)]
		}
	}
	may := func(id policy.CrawlerID) bool {
		return p.Decide(policy.Query{Crawler: id, Path: "/", Identity: policy.Verified}).Verdict != policy.Disallowed
	}
	open := may(0)
	for id, info := range p.Crawlers {
		allowed := may(id)
		asked := named[id] && (!allowed || !open && info.Category == string(crawlers.CategorySearch))
		if (asked || info.Token == "Googlebot" || info.Token == "Bingbot") && !strings.ContainsAny(info.Token, " !") {
			tests = append(tests, policy.Expectation{
				Anyone: true, Agent: policy.Audience{Kind: policy.ForToken, Name: info.Token}, Usage: policy.Crawl, Path: "/", Allowed: allowed,
			})
		}
	}
	return tests
}
