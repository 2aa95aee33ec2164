// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// LossPeriod is the length of the period whose traffic is checked against the search-loss limit. The period ends now.
const LossPeriod = 7 * 24 * time.Hour

// SearchLoss holds the losses of search engines under the new policy; see [site.SearchLoss]. It counts the requests of
// verified search crawlers. It also counts unverified requests if they could not have been verified. This is the case
// if the crawler's operator publishes no proof, or if the traffic has no verification result for the crawler. It does
// not count requests of impostors.
type SearchLoss struct {
	Requests   int64         `json:"requests"` // lost requests, except for those that a rule marks as intended
	Intended   int64         `json:"intended"`
	Unverified int64         `json:"unverified"` // requests of clients that may not be the crawler; counted only here
	Crawlers   []CrawlerLoss `json:"crawlers"`
	Paths      []PathCount   `json:"paths"` // most frequent paths of Requests
}

// CrawlerLoss counts the requests that a crawler loses in one way. A request may be lost in several ways.
type CrawlerLoss struct {
	Crawler  string      `json:"crawler"`
	Loss     effect.Loss `json:"loss"`
	Intended bool        `json:"intended,omitempty"`
	Requests int64       `json:"requests"`
	Paths    int         `json:"paths"`           // number of different paths
	Rules    []string    `json:"rules,omitempty"` // line and name of each rule, the most frequent first
	// Site is true if the site's own robots.txt causes the loss, on paths where the policy has no rule.
	Site bool `json:"site_robots_txt,omitempty"`
}

// shownLost limits the number of paths shown for a loss.
const shownLost = 3

func (t *tally) searchLoss(o *Options) (s SearchLoss) {
	verifiable := t.verifiable()
	type kind struct {
		crawler  string
		loss     effect.Loss
		intended bool
		site     bool
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
				at := kind{token, loss, i == 1, k.lost.Rule != nil && k.lost.Rule.Fallback}
				if sums[at] == nil {
					sums[at] = &sum{paths: map[string]int64{}, rules: map[string]int64{}}
				}
				sums[at].requests += c.requests
				add(sums[at].paths, c.paths)
				if r := k.lost.Rule; at.site {
					sums[at].rules[policy.PlaceInFallback(r.FallbackFile, r.Pos.Line)] += c.requests
				} else if r != nil {
					sums[at].rules[fmt.Sprintf("line %d (%s)", r.Pos.Line, o.New.RuleName(r))] += c.requests
				}
			}
		}
	}
	for at, sum := range sums {
		c := CrawlerLoss{Crawler: at.crawler, Loss: at.loss, Intended: at.intended, Requests: sum.requests, Paths: len(sum.paths), Site: at.site}
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
	return s
}

// verifiable returns the crawlers that could be verified in this traffic: they have at least one verified request, or
// at least one request by an impostor.
func (t *tally) verifiable() map[string]bool {
	all := map[string]bool{}
	for k := range t.counts {
		if k.identity != policy.Unknown {
			all[k.info().Token] = true
		}
	}
	return all
}

func add[K comparable](to, from map[K]int64) {
	for k, n := range from {
		to[k] += n
	}
}

// Stored reads the rows of an activity database between the times from and to, and calls the function each with every
// row. The returned coverage describes the data that is missing.
type Stored = func(ctx context.Context, from, to time.Time, each func(activity.Totals) error) (claim.Coverage, error)

// OfPolicies returns a Stored that reads only the rows whose requests were decided by one of the given policy versions.
// If versions is empty, it reads all rows.
func OfPolicies(stored Stored, versions []string) Stored {
	wanted := map[string]bool{}
	for _, v := range versions {
		wanted[v] = true
	}
	return Where(stored, func(v activity.Totals) bool { return len(wanted) == 0 || wanted[v.Policy] })
}

// Where returns a Stored that reads only the rows that fits accepts.
func Where(stored Stored, fits func(activity.Totals) bool) Stored {
	return func(ctx context.Context, from, to time.Time, each func(activity.Totals) error) (claim.Coverage, error) {
		return stored(ctx, from, to, func(v activity.Totals) error {
			if !fits(v) {
				return nil
			}
			return each(v)
		})
	}
}
