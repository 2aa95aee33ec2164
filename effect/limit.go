// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// delayBurst is the number of requests that a crawler may make at once under an enforced crawl-delay. It is large
// enough for a page and the files that the page needs.
const delayBurst = 20

// Limit is a rate limit that applies to requests of a crawler.
type Limit struct {
	policy.Limit
	Crawler  policy.CrawlerID
	Identity policy.Identity
	Rule     *policy.Rule
	Pos      policy.Pos
	Delay    bool        // the limit comes from the rule's crawl-delay
	Mode     policy.Mode // how to handle requests over the limit: ModeLog or ModeBlock
}

// Limits appends to dst the limits for requests of the query's crawler. Limits come from the rate limit of a rule, and
// from the crawl-delay of a rule with the key "enforce". Requests for paths that every crawler may always fetch are not
// limited. Search engines are limited only by rules with "intended: [limits-search]".
func (e *Engine) Limits(dst []Limit, q policy.Query) []Limit {
	t := NewTarget(q.Host, q.Path)
	return e.limitsAt(dst, &t, q)
}

func (e *Engine) limitsAt(dst []Limit, t *Target, q policy.Query) []Limit {
	if !e.limits || q.Crawler == 0 || e.Open(e.Read(t)) {
		return dst
	}
	// A client that falsely claims to be a search engine is not treated like a search engine.
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

// LimitsOfAll appends to dst the limits for each crawler that may have sent a request for the target t.
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

// limitMode returns the mode for requests over a rule's rate limit. This is the mode that the rule sets. By default, it
// is ModeLog if the policy as a whole only logs, and otherwise ModeBlock, because a limit that the server does not
// enforce has no effect.
func (e *Engine) limitMode(r *policy.Rule) policy.Mode {
	switch {
	case r.Enforce != policy.ModeUnset:
		return r.Enforce
	case e.Policy.Spec().Enforcement.Mode == policy.ModeLog:
		return policy.ModeLog
	}
	return policy.ModeBlock
}

// LimitsSearch reports whether the limits of a rule also apply to search engines.
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

// String returns the limit as text, such as "60/m" or "one in 10s".
func (l Limit) String() string {
	if l.Delay {
		return "one in " + l.Per.String()
	}
	return l.Limit.String()
}
