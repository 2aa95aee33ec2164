// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// delayBurst is the number of requests that a crawler may make at once under an enforced
// crawl-delay: a page and the files needed to show it.
const delayBurst = 20

// Limit is a limit that applies to a request.
type Limit struct {
	policy.Limit
	Crawler  policy.CrawlerID
	Identity policy.Identity
	Rule     *policy.Rule
	Pos      policy.Pos
	Delay    bool        // it is the rule's crawl-delay
	Mode     policy.Mode // what to do about requests over it: ModeLog or ModeBlock
}

// Limits returns the limits for requests of the query's crawler: the limit of a rule, and a
// crawl-delay whose rule says `enforce`. Requests for paths that are always open are not
// limited. Search engines are only limited by rules that say so (intended: [limits-search]).
func (e *Engine) Limits(dst []Limit, q policy.Query) []Limit {
	t := NewTarget(q.Host, q.Path)
	return e.limitsAt(dst, &t, q)
}

func (e *Engine) limitsAt(dst []Limit, t *Target, q policy.Query) []Limit {
	if !e.limits || q.Crawler == 0 || e.Open(e.Read(t)) {
		return dst
	}
	// An impostor of a search engine is not treated as a search engine.
	search := q.Identity != policy.Impostor && e.Searches(q.Crawler)
	if r := e.Policy.Limit(q); r != nil && (!search || LimitsSearch(r)) {
		if mode := e.limitMode(r); mode > policy.ModeOff {
			dst = append(dst, Limit{Limit: r.Limit, Crawler: q.Crawler, Identity: q.Identity, Rule: r, Pos: r.LimitPos, Mode: mode})
		}
	}
	if r := e.Policy.CrawlDelay(q); r != nil && r.Enforce > policy.ModeOff && (!search || LimitsSearch(r)) {
		dst = append(dst, Limit{Limit: delayLimit(r.CrawlDelay), Crawler: q.Crawler, Identity: q.Identity, Rule: r, Pos: r.CrawlDelayPos, Delay: true, Mode: r.Enforce})
	}
	return dst
}

// LimitsOfAll appends to dst the limits of each crawler that may have sent a request, as EdgeOfAll decides about all of
// them.
func (e *Engine) LimitsOfAll(dst []Limit, t *Target, clients []Client, q policy.Query) []Limit {
	for _, c := range clients {
		q.Crawler, q.Identity = c.Crawler, c.Identity
		dst = e.limitsAt(dst, t, q)
	}
	return dst
}

// LimitsOf returns the limits that a rule sets.
func (e *Engine) LimitsOf(r *policy.Rule) (all []Limit) {
	if !r.Limit.IsZero() {
		all = append(all, Limit{Limit: r.Limit, Mode: e.limitMode(r)})
	}
	if r.CrawlDelay > 0 {
		all = append(all, Limit{Limit: delayLimit(r.CrawlDelay), Delay: true, Mode: r.Enforce})
	}
	return all
}

// limitMode returns the reaction to requests over a rule's limit. A limit only concerns the server, so it is
// enforced unless its rule says otherwise, or the whole policy is in dry run.
func (e *Engine) limitMode(r *policy.Rule) policy.Mode {
	switch {
	case r.Enforce != policy.ModeUnset:
		return r.Enforce
	case e.Policy.Spec().Enforcement.Mode == policy.ModeLog:
		return policy.ModeLog
	}
	return policy.ModeBlock
}

// LimitsSearch reports whether the limits of a rule are meant for search engines too.
func LimitsSearch(r *policy.Rule) bool {
	return slices.Contains(r.IntendedChecks, SafetyLimits)
}

func delayLimit(delay time.Duration) policy.Limit {
	return policy.Limit{Requests: 1, Per: delay, Burst: delayBurst}
}

func hasLimits(rules []policy.Rule) bool {
	return slices.ContainsFunc(rules, func(r policy.Rule) bool {
		return !r.Limit.IsZero() || r.CrawlDelay > 0 && r.Enforce > policy.ModeOff
	})
}

// String returns the limit in words.
func (l Limit) String() string {
	if l.Delay {
		return "one in " + l.Per.String()
	}
	return l.Limit.String()
}
