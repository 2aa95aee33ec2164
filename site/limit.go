// SPDX-License-Identifier: Apache-2.0

package site

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile/lint"
)

// Limit is a limit that applies to a request.
type Limit = effect.Limit

// MaxMode returns the strictest mode that a server could apply under the policy: ModeLog or ModeBlock if the policy can
// block or limit any client, else ModeOff.
func (s *Site) MaxMode() policy.Mode {
	mode := s.File.MaxMode()
	for i := range s.File.Spec.Rules {
		for _, l := range s.LimitsOf(&s.File.Spec.Rules[i]) {
			mode = max(mode, l.Mode)
		}
	}
	return mode
}

const passes = "the request passes"

// explainLimits adds the limits that apply to a request. asked is the crawler that the explanation is about.
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
			says = fmt.Sprintf("limits %s to one in %v, because crawl-delay is enforced, and to %d at once", whose, l.Per, l.Burst)
		}
		c.add(Reason{Place: s.Place(l.Pos), Rule: s.RuleName(l.Rule), Says: says})
		switch {
		case l.Mode == policy.ModeBlock && blocking > 0:
			c.Summary = "the request passes, unless it exceeds one of these limits. In that case, the answer is 429 Too Many Requests"
		case l.Mode == policy.ModeBlock:
			c.Summary = fmt.Sprintf("the request passes, unless %s makes more than %v. In that case, the answer is 429 Too Many Requests", who, l)
			blocking++
		case c.Summary == passes:
			c.Summary = "the request passes, and the log says if it exceeds the limit (enforce: log)"
		}
	}
}

// LimitTexts describes the rate limits of the server. It returns a text for each limit and each enforced crawl-delay
// that applies to any crawler.
func (s *Site) LimitTexts(now time.Time) (all []string) {
	dryRun := map[policy.Mode]string{policy.ModeBlock: "", policy.ModeLog: " (in dry run)"}
	for i := range s.File.Spec.Rules {
		r := &s.File.Spec.Rules[i]
		for _, l := range s.LimitsOf(r) {
			if suffix, enforced := dryRun[l.Mode]; enforced {
				if who := s.limitedBy(r, l.Delay, now); who != "" {
					all = append(all, fmt.Sprintf("%s to %s%s", who, l, suffix))
				}
			}
		}
	}
	return all
}

// limitedNames names the audiences of everyone without unlisted clients, which are never limited.
var limitedNames = map[policy.AudienceKind]string{policy.ForEveryone: "known crawlers", policy.ForEveryoneElse: "other known crawlers"}

// limitedBy describes the crawlers and hosts that a rule limits. It returns "" if the rule does not limit any crawler.
func (s *Site) limitedBy(r *policy.Rule, delay bool, now time.Time) string {
	q := policy.Query{Identity: policy.Verified, Path: "/", Now: now}
	if len(r.Hosts) > 0 {
		q.Host = r.Hosts[0].Example()
	}
	any, spares := false, ""
	for id, c := range s.Policy.Crawlers {
		if !names(r, c) {
			continue
		}
		q.Crawler = id
		limited := slices.ContainsFunc(s.Limits(nil, q), func(l Limit) bool { return l.Rule.Pos == r.Pos && l.Delay == delay })
		any = any || limited
		if !limited && s.Searches(id) {
			spares = ", except search engines,"
		}
	}
	if !any {
		return ""
	}
	who := lint.Audiences(r)
	for i, a := range r.For {
		who[i] = cmp.Or(limitedNames[a.Kind], who[i])
	}
	text := english.Some(who, 4) + spares
	if len(r.Hosts) > 0 {
		text += " on " + english.Some(r.Hosts, 4)
	}
	return text
}

// names reports whether the audiences of a rule include a crawler.
func names(r *policy.Rule, c policy.Crawler) bool {
	return slices.ContainsFunc(r.For, func(a policy.Audience) bool {
		return a.Tier() == policy.TierEveryone || a.Includes(c) || a.Kind == policy.ForToken && strings.EqualFold(a.Name, c.Token)
	})
}
