// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile/lint"
)

// delayBurst is how many requests a crawler may make at once under a crawl-delay that
// is enforced: a page and what it needs to be shown.
const delayBurst = 20

// Limit is a limit that holds for a request.
type Limit struct {
	policy.Limit
	Crawler  policy.CrawlerID
	Identity policy.Identity
	Rule     *policy.Rule
	Pos      policy.Pos
	Delay    bool        // it is the rule's crawl-delay
	Mode     policy.Mode // what to do about requests over it: ModeLog or ModeBlock
}

// Limits returns what limits the requests of the query's crawler: the limit of a rule,
// and a crawl-delay whose rule says `enforce`. What is always open is not limited, and
// search engines are by rules only that say so (intended: [limits-search]).
func (s *Site) Limits(dst []Limit, q policy.Query) []Limit {
	t := NewTarget(q.Host, q.Path)
	return s.limitsAt(dst, &t, q)
}

func (s *Site) limitsAt(dst []Limit, t *Target, q policy.Query) []Limit {
	if !s.limits || q.Crawler == 0 || s.open(s.read(t)) {
		return dst
	}
	// An impostor of a search engine is none.
	search := q.Identity != policy.Impostor && s.Policy.CrawlerInfo(q.Crawler).Category == string(crawlers.CategorySearch)
	if r := s.Policy.Limit(q); r != nil && (!search || limitsSearch(r)) {
		if mode := s.limitMode(r); mode > policy.ModeOff {
			dst = append(dst, Limit{Limit: r.Limit, Crawler: q.Crawler, Identity: q.Identity, Rule: r, Pos: r.LimitPos, Mode: mode})
		}
	}
	if r := s.Policy.CrawlDelay(q); r != nil && r.Enforce > policy.ModeOff && (!search || limitsSearch(r)) {
		dst = append(dst, Limit{Limit: delayLimit(r.CrawlDelay), Crawler: q.Crawler, Identity: q.Identity, Rule: r, Pos: r.CrawlDelayPos, Delay: true, Mode: r.Enforce})
	}
	return dst
}

// LimitsOfAll appends to dst the limits of each crawler that may have sent a request, as EdgeOfAll decides about all of
// them.
func (s *Site) LimitsOfAll(dst []Limit, t *Target, clients []Client, q policy.Query) []Limit {
	for _, c := range clients {
		q.Crawler, q.Identity = c.Crawler, c.Identity
		dst = s.limitsAt(dst, t, q)
	}
	return dst
}

// MaxMode returns the most that the edge could do under the policy: ModeLog or
// ModeBlock if it blocks or limits anyone, else ModeOff.
func (s *Site) MaxMode() policy.Mode {
	mode := s.File.MaxMode()
	for i := range s.File.Spec.Rules {
		for _, l := range s.limitsOf(&s.File.Spec.Rules[i]) {
			mode = max(mode, l.Mode)
		}
	}
	return mode
}

// limitsOf are the limits that a rule sets.
func (s *Site) limitsOf(r *policy.Rule) (all []Limit) {
	if !r.Limit.IsZero() {
		all = append(all, Limit{Limit: r.Limit, Mode: s.limitMode(r)})
	}
	if r.CrawlDelay > 0 {
		all = append(all, Limit{Limit: delayLimit(r.CrawlDelay), Delay: true, Mode: r.Enforce})
	}
	return all
}

// limitMode is what is done about requests over a rule's limit. A limit is for the edge only, so it is enforced
// unless its rule says otherwise, or the whole policy is in dry run.
func (s *Site) limitMode(r *policy.Rule) policy.Mode {
	switch {
	case r.Enforce != policy.ModeUnset:
		return r.Enforce
	case s.File.Spec.Enforcement.Mode == policy.ModeLog:
		return policy.ModeLog
	}
	return policy.ModeBlock
}

func limitsSearch(r *policy.Rule) bool {
	return slices.Contains(r.IntendedChecks, lint.SafetyLimits)
}

func delayLimit(delay time.Duration) policy.Limit {
	return policy.Limit{Requests: 1, Per: delay, Burst: delayBurst}
}

func hasLimits(rules []policy.Rule) bool {
	return slices.ContainsFunc(rules, func(r policy.Rule) bool {
		return !r.Limit.IsZero() || r.CrawlDelay > 0 && r.Enforce > policy.ModeOff
	})
}

// String is the limit as people read it.
func (l Limit) String() string {
	if l.Delay {
		return "one in " + l.Per.String()
	}
	return l.Limit.String()
}

const passes = "the request passes"

// explainLimits says which limits hold for a request that is explained as one of the crawler asked about.
func (s *Site) explainLimits(c *Channel, limits []Limit, asked policy.CrawlerID) {
	blocking := 0
	for _, l := range limits {
		who, whose := "this crawler", "its requests"
		if l.Crawler != asked {
			who = s.Policy.CrawlerInfo(l.Crawler).Token
			whose = "the requests of " + who
		}
		says := fmt.Sprintf("limits %s to %v, up to %d at once", whose, l, l.Burst)
		if l.Delay {
			says = fmt.Sprintf("limits %s to one in %v, as crawl-delay is enforced, up to %d at once", whose, l.Per, l.Burst)
		}
		c.add(Reason{Place: s.Place(l.Pos), Rule: s.RuleName(l.Rule), Says: says})
		switch {
		case l.Mode == policy.ModeBlock && blocking > 0:
			c.Summary = "the request passes, unless it is over one of these limits: then it is answered with 429 Too Many Requests"
		case l.Mode == policy.ModeBlock:
			c.Summary = fmt.Sprintf("the request passes, unless %s makes more than %v: then it is answered with 429 Too Many Requests", who, l)
			blocking++
		case c.Summary == passes:
			c.Summary = "the request passes, and the log says when it is over the limit (enforce: log)"
		}
	}
}

// LimitTexts says who is limited at the edge: a text for each limit and for each crawl-delay that is enforced.
func (s *Site) LimitTexts() (all []string) {
	dryRun := map[policy.Mode]string{policy.ModeBlock: "", policy.ModeLog: " (in dry run)"}
	for i := range s.File.Spec.Rules {
		r := &s.File.Spec.Rules[i]
		for _, l := range s.limitsOf(r) {
			if suffix, enforced := dryRun[l.Mode]; enforced {
				all = append(all, fmt.Sprintf("%s to %s%s", limitedBy(r), l, suffix))
			}
		}
	}
	return all
}

func limitedBy(r *policy.Rule) string {
	who := english.Some(lint.Audiences(r), 4)
	everyone := slices.ContainsFunc(r.For, func(a policy.Audience) bool { return a.Tier() == policy.TierEveryone })
	if everyone && !limitsSearch(r) {
		who += ", except search engines,"
	}
	if len(r.Hosts) == 0 {
		return who
	}
	return who + " on " + english.Some(r.Hosts, 4)
}
