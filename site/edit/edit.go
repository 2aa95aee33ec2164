// SPDX-License-Identifier: Apache-2.0

// Package edit changes one decision of a policy file by the smallest edit of its
// text: the author's comments, order and layout stay.
//
// It tries the few edits by which an author would make the decision: remove an opposite entry,
// add the path to an existing rule, or add a rule. Each is loaded as a file and compared with
// the previous file. The edit is taken that makes the decision and changes the least besides.
package edit

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/policyfile/lint"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// Action is the decision of a Choice about crawling.
type Action string

// The actions.
const (
	Allow   Action = "allow"   // may crawl
	Ask     Action = "ask"     // is asked not to, by robots.txt; the server answers
	Refuse  Action = "block"   // is asked not to, and the server blocks
	Slow    Action = "slow"    // may make a number of requests in a time
	Snippet Action = "snippet" // may show a number of characters of a page
)

// Actions lists all actions.
func Actions() []Action { return []Action{Allow, Ask, Refuse, Slow, Snippet} }

// Choice is one decision about crawling, or another usage.
type Choice struct {
	Who policy.Audience // everyone, a crawler, a category, an operator or a purpose
	Do  Action
	// Usage is the usage for Allow and Ask, crawling by default. Ask addresses everyone who
	// reads the site's signals about it.
	Usage policy.Usage
	Path  pathpattern.Pattern // "/" for the whole site, as for Slow
	Host  policy.Host         // "" for every host
	// Rate is the rate of Slow in the spelling of a policy file: "60/m", or "none". For Snippet it is the
	// number of characters, or "none".
	Rate string
	// Intended waives the guard for search engines and link previews.
	Intended bool
}

// NewChoice reads a choice in people's words. who is "GPTBot" or "category:seo". place is a path
// or, for Slow, a rate. do may name a usage or a number, as in "ask train-ai" and "snippet 160". An
// empty place is the whole site, and an empty host every host.
func NewChoice(who string, do Action, place, host string, intended bool) (c Choice, err error) {
	c = Choice{Who: policy.ParseAudience(who), Do: do, Path: pathpattern.MustParse("/"), Intended: intended}
	if who == "" {
		return c, errors.New("the crawler is missing; write everyone, the name of a crawler, or category:NAME")
	}
	switch {
	case (!slices.Contains(Actions(), do) || do == Snippet) && !strings.Contains(string(do), " "):
		return c, fmt.Errorf("unknown action %q: must be allow, ask, block, slow, or snippet and a number of characters", do)
	case do == Slow && place != "none" && !rate.MatchString(place):
		return c, fmt.Errorf("%q is not a valid rate; write requests per second (s), minute (m), hour (h) or day (d), such as 60/m, or none", place)
	case do == Slow:
		c.Rate = place
	case place != "":
		if c.Path, err = pathpattern.Parse(place); err != nil {
			return c, fmt.Errorf("%q is not a valid path: %w", place, err)
		}
	}
	switch what, usage, ok := strings.Cut(string(do), " "); {
	case ok && Action(what) == Snippet:
		if c.Do, c.Rate = Snippet, usage; !characters.MatchString(usage) {
			return c, fmt.Errorf("%q is not a valid length of a snippet; write a number of characters, such as 160, or none for no limit", usage)
		}
	case ok:
		c.Do = Action(what)
		if c.Usage, ok = policy.ParseUsage(usage); !ok || c.Usage == policy.Other || c.Do != Allow && c.Do != Ask {
			return c, fmt.Errorf("unknown action %q: with a usage it must be allow or ask, such as: ask train-ai", do)
		}
	}
	if host != "" {
		if c.Host, err = policy.ParseHost(host); err != nil {
			return c, fmt.Errorf("%q is not a valid host: %w", host, err)
		}
	}
	return c, nil
}

var (
	rate       = regexp.MustCompile(`^[1-9][0-9]{0,5}/[smhd]$`)
	characters = regexp.MustCompile(`^([1-9][0-9]{0,4}|none)$`)
)

// Result is a policy file after an edit.
type Result struct {
	Text string
	// Site is the parsed text.
	Site *site.Site
	// Diagnostics are those that the file did not have before.
	Diagnostics policyfile.Diagnostics
	// Diff is all that changes, what was chosen included.
	Diff *compare.Diff
	// Unmet are the crawlers of Choice.Who of which another rule decides otherwise.
	Unmet []Unmet
}

// An InvalidError is an edit after which the file would have errors, as a guard does
// not let it pass.
type InvalidError struct{ policyfile.Diagnostics }

// Apply makes a choice in the text of a policy file without errors. It returns an
// *InvalidError if the file would have errors, and another error if no edit is known
// that makes the choice for anyone. The text is the same if the policy decides so
// already.
func Apply(name, text string, c Choice, now time.Time) (*Result, error) {
	before, ds := site.LoadWith(name, []byte(text), policyfile.Options{Now: now, Accepted: true})
	if before == nil {
		return nil, &InvalidError{ds}
	}
	e := &editor{name: name, before: before, known: ds, choice: c, now: now}
	unmet, asked := e.unmet(before.Policy)
	switch {
	case asked == 0 && c.Who.Kind != policy.ForToken:
		return nil, fmt.Errorf("the policy knows no crawlers of %q", c.Who)
	case len(unmet) == 0 && asked > 0:
		return &Result{Text: text, Site: before, Diff: compare.Sites(before, before, compare.Options{Now: now})}, nil
	}
	best, invalid := e.best(text)
	waived := guards(best, invalid)
	if c.Do == Snippet {
		waived = append(waived, effect.SafetyIndex) // a shorter snippet is a loss that only the search-loss limit finds
	}
	if c.Intended && len(waived) > 0 {
		e.intended = waived
		best, invalid = e.best(text)
	}
	if best != nil {
		if unknown := UnknownCrawlers(best.Diagnostics, nil); len(unknown) > 0 {
			return nil, &InvalidError{unknown}
		}
	}
	switch {
	case best != nil && (count(best.Unmet) == 0 || count(best.Unmet) < count(unmet)):
		return &best.Result, nil
	case invalid != nil:
		return nil, &InvalidError{invalid}
	case best != nil && len(best.Unmet) > 0:
		return nil, errors.New(best.Unmet[0].String())
	}
	return nil, errors.New("the file is laid out in a way that cannot be edited for you; write the rule by hand")
}

// UnknownCrawlers returns, as errors, the diagnostics about names that no crawler has, and that an earlier text did not
// have. A file may name such a crawler, but a new decision about it is probably a mistake: it does not reach any crawler.
func UnknownCrawlers(now, earlier policyfile.Diagnostics) (all policyfile.Diagnostics) {
	for _, d := range now {
		old := slices.ContainsFunc(earlier, func(k policyfile.Diagnostic) bool { return k.Code == d.Code && k.Message == d.Message })
		if d.Code == policyfile.UnknownCrawler && !old {
			d.Severity = policy.Error
			all = append(all, d)
		}
	}
	return all
}

// editor makes one choice.
type editor struct {
	name     string
	before   *site.Site
	known    policyfile.Diagnostics // of the previous file
	choice   Choice
	now      time.Time
	intended []string // guards to waive
}

// outcome is a Result with what to choose it by.
type outcome struct {
	Result
	beside         int // changes that were not asked for
	added, removed int // lines
}

// compare puts the better outcome first. An edit that takes lines out leaves less behind
// than one that adds some.
func (o *outcome) compare(b *outcome) int {
	return cmp.Or(count(o.Unmet)-count(b.Unmet), o.beside-b.beside, o.Diagnostics.Count(policy.Warning)-b.Diagnostics.Count(policy.Warning),
		o.added-b.added, o.removed-b.removed)
}

// best tries all edits. Without any that loads it returns the errors of the last.
func (e *editor) best(text string) (best *outcome, invalid policyfile.Diagnostics) {
	for _, candidate := range e.candidates(text) {
		after, ds := site.LoadWith(e.name, []byte(candidate), policyfile.Options{Now: e.now})
		ds = slices.DeleteFunc(ds, e.isKnown)
		if after == nil {
			invalid = ds
			continue
		}
		o := &outcome{Result: Result{
			Text: candidate, Site: after, Diagnostics: ds,
			Diff: compare.Sites(e.before, after, compare.Options{Now: e.now}),
		}}
		o.removed, o.added = differing(text, candidate)
		o.Unmet, _ = e.unmet(after.Policy)
		for i := range o.Diff.Changes {
			if !e.chosen(after.Policy, &o.Diff.Changes[i]) {
				o.beside++
			}
		}
		if best == nil || o.compare(best) < 0 {
			best = o
		}
	}
	return best, invalid
}

func (e *editor) isKnown(d policyfile.Diagnostic) bool {
	return slices.ContainsFunc(e.known, func(k policyfile.Diagnostic) bool { return k.Code == d.Code && k.Message == d.Message })
}

// guards lists the guards that complain of an edit.
func guards(best *outcome, invalid policyfile.Diagnostics) (all []string) {
	if best != nil {
		invalid = best.Diagnostics
	}
	for _, d := range invalid {
		if slices.Contains(lint.SafetyChecks(), d.Code) && !slices.Contains(all, d.Code) {
			all = append(all, d.Code)
		}
	}
	return all
}

// chosen reports whether a change is what was chosen, and no more.
func (e *editor) chosen(p *policy.Policy, c *compare.Change) bool {
	about := e.usage()
	switch e.choice.Do {
	case Slow:
		about = "limit"
	case Snippet:
		about = maxSnippet
	case Allow, Ask, Refuse:
	}
	if len(c.Usages) != 1 || c.Usages[0] != about {
		return false
	}
	if h := string(e.choice.Host); h != "" && !slices.Equal(c.Hosts, []string{h}) {
		return false
	}
	for _, path := range c.Paths {
		if q, err := pathpattern.Parse(path); err != nil || !q.Within(e.choice.Path) {
			return false
		}
	}
	if e.choice.Who.Kind == policy.ForEveryone || e.choice.Who.Kind == policy.ForEveryoneElse {
		return true
	}
	return !slices.ContainsFunc(c.Crawlers, func(token string) bool {
		return token == compare.Everyone || token == compare.EveryoneElse || !e.isMember(p, p.Crawler(token))
	})
}

// differing counts the lines of two texts without their common start and end.
func differing(a, b string) (int, int) {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	return len(x), len(y)
}
