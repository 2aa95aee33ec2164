// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// LossPeriod is the period before now that [SearchLoss.Check] is meant to look at.
const LossPeriod = 7 * 24 * time.Hour

// SearchLoss holds the losses of search engines under the new policy, see [site.SearchLoss]. It counts
// requests of verified search crawlers, and of crawlers that nothing could have verified. Either their
// operator publishes no proof, or no request of theirs in the traffic was verified or failed
// verification. Impostors are not counted.
type SearchLoss struct {
	Requests   int64 `json:"requests"` // what no rule says is intended
	Intended   int64 `json:"intended"`
	Unverified int64 `json:"unverified"` // lost to clients that may not be the crawler; not in the other numbers
	// Undecided are requests about which the traffic does not say enough, of crawlers for which the
	// policies differ somewhere.
	Undecided []Note `json:"undecided"`
	// Differences say where the policies differ for search engines, if something is undecided.
	Differences []string      `json:"differences,omitempty"`
	Crawlers    []CrawlerLoss `json:"crawlers"`
	Paths       []PathCount   `json:"paths"` // of Requests, the most requested
}

// CrawlerLoss is one kind of loss of one crawler. A request may count in several kinds.
type CrawlerLoss struct {
	Crawler  string      `json:"crawler"`
	Loss     effect.Loss `json:"loss"`
	Intended bool        `json:"intended,omitempty"`
	Requests int64       `json:"requests"`
	Paths    int         `json:"paths"`           // how many different ones
	Rules    []string    `json:"rules,omitempty"` // line and name, the most frequent first
}

// shownLost bounds the paths that a loss names.
const shownLost = 3

func (t *tally) searchLoss(o *Options) (s SearchLoss) {
	verifiable, came := map[string]bool{}, t.folded // a verified search engine
	for k := range t.counts {
		if k.identity != policy.Unknown {
			verifiable[k.info().Token] = true
		}
		came = came || k.identity == policy.Verified && k.site.Searches(k.crawler)
	}
	type kind struct {
		crawler  string
		loss     effect.Loss
		intended bool
	}
	type sum struct {
		requests int64
		paths    map[string]int64
		rules    map[string]int64
	}
	sums, paths := map[kind]*sum{}, map[string]int64{}
	for k, c := range t.counts {
		token := k.info().Token
		switch {
		case k.lost.Loss|k.lost.Intended == 0:
			continue
		case k.identity == policy.Unknown && (verifiable[token] || !k.unproven):
			if k.lost.Loss != 0 {
				s.Unverified += c.requests
			}
			continue
		case k.lost.Loss != 0:
			s.Requests += c.requests
			add(paths, c.paths)
		default:
			s.Intended += c.requests
		}
		for i, losses := range []effect.Loss{k.lost.Loss, k.lost.Intended} {
			for _, loss := range losses.Each() {
				at := kind{token, loss, i == 1}
				if sums[at] == nil {
					sums[at] = &sum{paths: map[string]int64{}, rules: map[string]int64{}}
				}
				sums[at].requests += c.requests
				add(sums[at].paths, c.paths)
				if r := k.lost.Rule; r != nil {
					sums[at].rules[fmt.Sprintf("line %d (%s)", r.Pos.Line, o.New.RuleName(r))] += c.requests
				}
			}
		}
	}
	for at, sum := range sums {
		c := CrawlerLoss{Crawler: at.crawler, Loss: at.loss, Intended: at.intended, Requests: sum.requests, Paths: len(sum.paths)}
		for _, rule := range topPaths(sum.rules, 0) {
			c.Rules = append(c.Rules, rule.Path)
		}
		s.Crawlers = append(s.Crawlers, c)
	}
	rank := map[bool]int{false: 0, true: 1}
	slices.SortFunc(s.Crawlers, func(a, b CrawlerLoss) int {
		return cmp.Or(rank[a.Intended]-rank[b.Intended], cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Crawler, b.Crawler), cmp.Compare(a.Loss, b.Loss))
	})
	s.Paths = topPaths(paths, shownLost)
	s.undecided(o, t, verifiable, came || s.Requests+s.Intended > 0)
	return s
}

func add[K comparable](to, from map[K]int64) {
	for k, n := range from {
		to[k] += n
	}
}

// unsaid lists data about requests a search engine may lose that a database lacks.
type unsaid struct {
	crawler  string
	identity policy.Identity
	what     string
}

// undecided notes what may be lost and cannot be counted.
func (s *SearchLoss) undecided(o *Options, t *tally, verifiable map[string]bool, came bool) {
	notes := map[string]int64{}
	for u, n := range t.unsaid {
		if u.identity == policy.Verified || u.identity == policy.Unknown && !verifiable[u.crawler] {
			notes["of "+u.crawler+" "+u.what] += n
		}
	}
	note := func(n int64, what string) {
		if n > 0 && o.losses().Any() {
			notes[what] += n
		}
	}
	note(t.pathless, "whose paths are no longer stored")
	for _, g := range t.gaps {
		what := g.What
		if g.Unit == "line" {
			what = "in lines " + what
		}
		note(max(1, g.N), what)
	}
	if from, to := t.gap(); !o.Since.IsZero() && !to.IsZero() {
		note(1, "or more from "+from.UTC().Format(time.DateOnly)+" to "+to.UTC().Format(time.DateOnly)+", when there is no traffic")
	}
	switch {
	case t.requests == 0:
		note(1, "or more, as there is no traffic")
	case !came:
		note(1, "or more, as no request in the traffic is of a verified search engine")
	case !o.Since.IsZero() && t.first.Sub(o.Since) > maxGap:
		note(1, "or more before "+t.first.UTC().Format(time.DateOnly)+", when the traffic begins")
	case !o.Since.IsZero() && time.Since(t.last) > maxGap:
		note(1, "or more after "+t.last.UTC().Format(time.DateOnly)+", when the traffic ends")
	}
	for _, token := range o.losses().Unrequested() {
		notes["of "+token+", a name that only robots.txt has"]++
	}
	for _, token := range o.losses().Reverified {
		notes["of "+token+", which the new policy verifies otherwise"]++
	}
	for _, what := range slices.Sorted(maps.Keys(notes)) {
		s.Undecided = append(s.Undecided, Note{notes[what], what})
	}
	if len(notes) > 0 {
		s.Differences = o.losses().Words()
	}
}

// maxGap is the time that a small site may be without a request.
const maxGap = 36 * time.Hour

// Uncertain returns the number of undecided requests.
func (s *SearchLoss) Uncertain() (n int64) {
	for _, u := range s.Undecided {
		n += u.Requests
	}
	return n
}

// Check returns an error if search engines lose more than most requests, or if more than uncertain ones
// cannot be judged, which option sets.
func (s *SearchLoss) Check(most, uncertain int64, option string) error {
	if s.Requests <= most && s.Uncertain() <= uncertain {
		return nil
	}
	var why []string
	if s.Requests > most {
		limit := "none"
		if most > 0 {
			limit = "at most " + english.Number(most)
		}
		why = append(why, fmt.Sprintf("search engines would lose %s, and %s may be lost: %s", plural(s.Requests, "request"), limit, s.Who()))
	}
	if n := s.Uncertain(); n > uncertain {
		why = append(why, fmt.Sprintf("whether search engines lose anything cannot be judged for %s: %s (%s %d allows that many)", plural(n, "request"), s.Unsaid(), option, n))
	}
	return errors.New(strings.Join(why, "; "))
}

// Who lists the losses of each search engine, the rules that cause them, and the line to write if they are
// intended.
func (s *SearchLoss) Who() string {
	var who []string
	var all effect.Loss
	for _, c := range s.Crawlers {
		if !c.Intended {
			all |= c.Loss
			who = append(who, strings.TrimSuffix(fmt.Sprintf("%s of %s %s, %s", english.Number(c.Requests), c.Crawler, c.Loss, strings.Join(c.Rules, ", ")), ", "))
		}
	}
	if more := len(who) - 5; more > 0 {
		who = append(who[:5], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%s; if it is meant to be so, write \"%s\" into the rule", strings.Join(who, "; "), all.Intended())
}

// Unsaid says what is undecided.
func (s *SearchLoss) Unsaid() string {
	all := make([]string, len(s.Undecided))
	for i, u := range s.Undecided {
		all[i] = english.Number(u.Requests) + " " + u.What
	}
	words := strings.Join(all, "; ") + "; the policies differ: " + strings.Join(s.Differences[:min(3, len(s.Differences))], "; ")
	if more := len(s.Differences) - 3; more > 0 {
		words += fmt.Sprintf("; and %d more", more)
	}
	return words
}

// Stored is [Options.Stored].
type Stored = func(ctx context.Context, from, to time.Time, each func(activity.Totals) error) (pathless int64, err error)

// OfPolicies leaves out rows of a store that other policies decided; without versions, none.
func OfPolicies(stored Stored, versions []string) Stored {
	wanted := map[string]bool{}
	for _, v := range versions {
		wanted[v] = true
	}
	return Where(stored, func(v activity.Totals) bool { return len(wanted) == 0 || wanted[v.Policy] })
}

// Where leaves out rows of a store that do not fit.
func Where(stored Stored, fits func(activity.Totals) bool) Stored {
	return func(ctx context.Context, from, to time.Time, each func(activity.Totals) error) (int64, error) {
		return stored(ctx, from, to, func(v activity.Totals) error {
			if !fits(v) {
				return nil
			}
			return each(v)
		})
	}
}
