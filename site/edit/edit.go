// SPDX-License-Identifier: Apache-2.0

// Package edit changes one decision of a policy file by the smallest possible edit of its text. It keeps the
// author's comments, order and layout.
//
// It tries the edits that an author would usually make: remove a contrary entry, add the path to an existing rule, or
// add a rule. It loads the result of each edit, and compares it with the previous file. It chooses the edit that makes
// the decision with the fewest other changes.
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

// Action is the action of a Choice.
type Action string

// The actions.
const (
	Allow   Action = "allow"   // may crawl
	Ask     Action = "ask"     // robots.txt asks the crawler not to crawl; the server does not block it
	Refuse  Action = "block"   // robots.txt asks the crawler not to crawl, and the server blocks it
	Slow    Action = "slow"    // limits the number of requests in a period
	Snippet Action = "snippet" // limits the characters of a page that search engines show
)

// Actions lists all actions.
func Actions() []Action { return []Action{Allow, Ask, Refuse, Slow, Snippet} }

// Choice is one decision about crawlers: what they may do with pages, how many requests they may send, or how much of a
// page search engines may show.
type Choice struct {
	Who policy.Audience // the crawlers: everyone, a crawler, a category, an operator or a purpose
	Do  Action
	// Usage is the usage for Allow and Ask; the default is crawling. A choice about another usage only changes what
	// robots.txt, headers and other channels state. The server does not block requests because of it.
	Usage policy.Usage
	Path  pathpattern.Pattern // "/" for the whole site; always "/" for Slow
	Host  policy.Host         // "" for every host
	// Rate is the rate for Slow in the form of a policy file: "60/m" or "none". For Snippet it is the number of
	// characters, or "none".
	Rate string
	// Intended waives the safety checks for search engines and link previews.
	Intended bool
}

// NewChoice parses a choice. who is, for example, "GPTBot" or "category:seo". do is an action, which may have a
// usage or a number, as in "ask train-ai" and "snippet 160". place is a path or, for Slow, a rate. An empty place
// means the whole site, and an empty host means all hosts.
func NewChoice(who string, do Action, place, host string, intended bool) (c Choice, err error) {
	c = Choice{Who: policy.ParseAudience(who), Do: do, Path: pathpattern.MustParse("/"), Intended: intended}
	if who == "" {
		return c, errors.New("the crawler is missing; write everyone, the name of a crawler, category:NAME or operator:NAME")
	}
	switch {
	case (!slices.Contains(Actions(), do) || do == Snippet) && !strings.Contains(string(do), " "):
		return c, fmt.Errorf("unknown action %q: must be allow, ask, block, slow, or snippet and a number of characters", do)
	case do == Slow && place == "":
		return c, errors.New("the rate is missing; write requests per second (s), minute (m), hour (h) or day (d), such as 60/m, or none for no limit")
	case do == Slow && place != "none" && !rate.MatchString(place):
		return c, fmt.Errorf("%q is not a valid rate; write requests per second (s), minute (m), hour (h) or day (d), such as 60/m, or none for no limit", place)
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
			return c, fmt.Errorf("unknown action %q: with a usage, the action must be allow or ask, such as: ask train-ai", do)
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

// Result is the result of an edit of a policy file.
type Result struct {
	Text string
	// Site is the parsed text.
	Site *site.Site
	// Diagnostics holds only new diagnostics, which the file did not have before the edit.
	Diagnostics policyfile.Diagnostics
	// Diff holds all changes of decisions, including the chosen one.
	Diff *compare.Diff
	// Unmet are the crawlers of Choice.Who that another rule still decides about.
	Unmet []Unmet
}

// An InvalidError means that the file would have errors after the edit, for example because a safety check fails.
type InvalidError struct{ policyfile.Diagnostics }

// Apply edits the text of a policy file, so that the policy makes the decision c. The text must not have errors. If the
// policy already makes this decision, the text does not change. If every suitable edit causes errors in the file, Apply
// returns an *InvalidError. It returns another error if no edit makes the decision apply to at least one more crawler.
func Apply(name, text string, c Choice, now time.Time) (*Result, error) {
	before, ds := site.LoadWith(name, []byte(text), policyfile.Options{Now: now, Accepted: true})
	if before == nil {
		return nil, &InvalidError{ds}
	}
	e := &editor{name: name, before: before, known: ds, choice: c, now: now}
	unmet, asked := e.unmet(before.Policy)
	switch {
	case asked == 0 && c.Who.Kind != policy.ForToken:
		return nil, fmt.Errorf("neither the policy nor the catalog has a crawler called %q", c.Who)
	case len(unmet) == 0 && asked > 0:
		return &Result{Text: text, Site: before, Diff: compare.Sites(before, before, compare.Options{Now: now})}, nil
	}
	best, invalid := e.best(text)
	waived := guards(best, invalid)
	if c.Do == Snippet {
		waived = append(waived, effect.SafetyIndex) // only the search-loss limit detects the loss from a shorter snippet
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
	return nil, errors.New("a file with this layout cannot be edited automatically; write the rule by hand")
}

// UnknownCrawlers returns diagnostics about names that no known crawler has. It returns only the ones that are in now
// and not in earlier, and sets their severity to error. A file may contain such names, but an edit that adds one is
// probably a mistake, because a decision about this name does not affect any crawler.
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
	known    policyfile.Diagnostics // diagnostics of the file before the edit
	choice   Choice
	now      time.Time
	intended []string // safety checks to waive
}

// outcome is a Result with the properties that determine the best result.
type outcome struct {
	Result
	others         int // number of changes in addition to the choice
	added, removed int // numbers of lines
}

// compare sorts better outcomes first. If two edits have the same effect, the one that adds fewer lines is better.
func (o *outcome) compare(b *outcome) int {
	return cmp.Or(count(o.Unmet)-count(b.Unmet), o.others-b.others, o.Diagnostics.Count(policy.Warning)-b.Diagnostics.Count(policy.Warning),
		o.added-b.added, o.removed-b.removed)
}

// best tries all edits and returns the best outcome. If no edit gives a valid file, it returns the errors of the
// last edit.
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
				o.others++
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

// guards returns the codes of the safety checks that fail after the edit. It finds them in the diagnostics of best, the
// best outcome, or in invalid if no edit gives a valid file.
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

// chosen reports whether a change in the comparison is part of the choice, and not a side effect of the edit.
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

// differing returns the numbers of lines that a and b have between their common start and their common end.
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
