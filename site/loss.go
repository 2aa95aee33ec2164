// SPDX-License-Identifier: Apache-2.0

package site

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile/lint"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// Loss is what search engines lose when one policy takes the place of another, as bits.
type Loss uint8

// The losses.
const (
	LossRefused Loss = 1 << iota // the server blocks the request
	LossCrawl                    // crawling is disallowed, and the request is not blocked
	LossIndex                    // the page is not to be indexed, or not to be used for search
	LossSnippet                  // no snippet of the page is to be shown
	LossLink                     // no link to the page is to be shown
	LossLimit                    // requests are limited
	numLosses   = iota
)

// losses are the words for each, and the guard that the key intended waives.
var losses = [numLosses]struct{ word, text, guard string }{
	{"blocked", "blocked", lint.SafetyBlocks},
	{"crawl", "disallowed", lint.SafetyDisallows},
	{"index", "not to be indexed", lint.SafetyIndex},
	{"snippet", "to be shown without a snippet", lint.SafetyIndex},
	{"link", "not to be linked", lint.SafetyIndex},
	{"limit", "limited", lint.SafetyLimits},
}

// Each lists the single losses in l.
func (l Loss) Each() (all []Loss) {
	for i := range numLosses {
		if bit := Loss(1 << i); l&bit != 0 {
			all = append(all, bit)
		}
	}
	return all
}

func (l Loss) words(word func(i int) string, sep string) string {
	var all []string
	for i := range numLosses {
		if l&(1<<i) != 0 {
			all = append(all, word(i))
		}
	}
	return strings.Join(all, sep)
}

// MarshalText writes the names of the losses: "crawl", "index snippet".
func (l Loss) MarshalText() ([]byte, error) {
	return []byte(l.words(func(i int) string { return losses[i].word }, " ")), nil
}

// String is the losses in words: "blocked", "not to be indexed and to be shown without a snippet".
func (l Loss) String() string { return l.words(func(i int) string { return losses[i].text }, " and ") }

// Intended is the line that says in a rule that the losses are meant.
func (l Loss) Intended() string {
	var guards []string
	for _, bit := range l.Each() {
		if g := losses[bit.number()].guard; !slices.Contains(guards, g) {
			guards = append(guards, g)
		}
	}
	return "intended: [" + strings.Join(guards, ", ") + "]"
}

// number is the place of a single loss in losses.
func (l Loss) number() int { return bits.TrailingZeros8(uint8(l)) }

// usageLoss is the loss by the disallowing of each usage that concerns search results.
var usageLoss = map[policy.Usage]Loss{
	policy.Crawl: LossCrawl, policy.Index: LossIndex, policy.Search: LossIndex,
	policy.Present: LossSnippet, policy.PresentSnippet: LossSnippet, policy.PresentLink: LossLink,
}

// LossOf is what a search engine loses by the disallowing of a usage: 0 for what does not concern search results.
func LossOf(u policy.Usage) Loss { return usageLoss[u] }

// Lost is what a search engine loses at one page.
type Lost struct {
	Loss     Loss         // what no rule says is intended
	Intended Loss         // what rules say is intended, by the key intended
	Rule     *policy.Rule // one of the new policy's that Loss comes from, or else Intended
}

// SearchLoss returns what a search engine loses at a host and path when the policy of now takes the place of that of
// old, which is nil for none. The queries have the crawler as each policy knows it.
//
// It is newly blocked, disallowed, told not to index or not to show a snippet or a link, or
// limited, at once or when a date has passed. An impostor loses nothing, nor does a crawler
// of which neither policy says that it is a search engine.
func SearchLoss(old, now *Site, was, is policy.Query) (lost Lost) {
	searches := now.Searches(is.Crawler) || old != nil && old.Searches(was.Crawler)
	if !searches || is.Identity == policy.Impostor {
		return lost
	}
	lost = lostAt(old, now, was, is)
	if now.dated {
		was.Now, is.Now = ages, ages
		lost.add(lostAt(old, now, was, is))
	}
	return lost
}

var ages = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// isDated reports whether dates of rules end what search engines may do.
func isDated(rules []policy.Rule) bool {
	return slices.ContainsFunc(rules, func(r policy.Rule) bool {
		return slices.ContainsFunc(r.Statements, func(s policy.Statement) bool {
			return s.Qualifiers != nil && s.Qualifiers.TimeLimit.Kind == policy.UntilDate
		}) || slices.ContainsFunc(r.EngineRules, func(e policy.EngineRule) bool { return e.Rule.Has("unavailable_after") })
	})
}

func lostAt(old, now *Site, was, is policy.Query) (lost Lost) {
	after := now.closures(is)
	if after.loss == 0 {
		return lost
	}
	gone := after.loss
	if old != nil {
		before := old.closures(was).loss
		if before&LossRefused != 0 {
			before |= LossCrawl
		}
		gone &^= before
	}
	lost.Loss, lost.Intended = gone&^after.intended, gone&after.intended
	if first := cmp.Or(lost.Loss, lost.Intended); first != 0 {
		lost.Rule = after.rules[first.number()]
	}
	return lost
}

func (l *Lost) add(later Lost) {
	if l.Loss == 0 && (later.Loss != 0 || l.Rule == nil) {
		l.Rule = later.Rule
	}
	l.Loss |= later.Loss
	l.Intended = (l.Intended | later.Intended) &^ l.Loss
}

// Searches reports whether a crawler is of a search engine: by the policy, or by the
// catalog, unless the policy says that another kind is intended.
func (s *Site) Searches(id policy.CrawlerID) bool {
	return lint.IsOfKind(s.Policy, id, crawlers.CategorySearch)
}

// closures are what a policy closes to a crawler at a page, and by which rules.
type closures struct {
	loss, intended Loss
	rules          [numLosses]*policy.Rule
}

func (s *Site) closures(q policy.Query) (c closures) {
	if s.open(s.targetOf(q.Host, q.Path)) {
		return c
	}
	guards := s.Policy.CrawlerInfo(q.Crawler).IntendedChecks
	add := func(bit Loss, r *policy.Rule) {
		guard := losses[bit.number()].guard
		waives := func(g string) bool { return g == guard || bit == LossCrawl && g == lint.SafetyBlocks }
		intended := slices.ContainsFunc(guards, waives) || r != nil && (r.Intended || slices.ContainsFunc(r.IntendedChecks, waives))
		if c.loss&bit == 0 || intended && c.intended&bit == 0 {
			c.rules[bit.number()] = r
		}
		if c.loss |= bit; intended {
			c.intended |= bit
		}
	}
	// The server takes paths in another letter case for the same, robots.txt does not.
	q.Usage = policy.Crawl
	if v := s.Edge(q); v.Blocked() && v.Mode == policy.ModeBlock {
		add(LossRefused, v.Decision.Rule)
	} else if d := s.Policy.Decide(q); d.Verdict == policy.Disallowed {
		add(LossCrawl, d.Rule)
	}
	var said []robotstag.Source
	if s.dated || s.Page(q.Host, q.Path, q.Now).Values != nil { // a page is cached as it is at one time
		said = s.sources(q)
	}
	for _, src := range said {
		switch {
		case src.Engine == nil && src.Usage == policy.PresentLink:
			add(LossLink, src.Rule)
		case src.Rules.Has("noindex"):
			add(LossIndex, src.Rule)
		}
		if src.Rules.Has("nosnippet") {
			add(LossSnippet, src.Rule)
		}
	}
	for p, q := range s.pageQueries(q) {
		q.Usage = policy.Search
		if d := p.Decide(q); d.Verdict == policy.Disallowed {
			add(LossIndex, d.Rule)
		}
	}
	for _, l := range s.Limits(nil, q) {
		if l.Mode == policy.ModeBlock {
			add(LossLimit, l.Rule)
		}
	}
	return c
}
