// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"slices"

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

// LimitTexts describes the rate limits of the server. It returns a text for each limit and for each enforced
// crawl-delay.
func (s *Site) LimitTexts() (all []string) {
	dryRun := map[policy.Mode]string{policy.ModeBlock: "", policy.ModeLog: " (in dry run)"}
	for i := range s.File.Spec.Rules {
		r := &s.File.Spec.Rules[i]
		for _, l := range s.LimitsOf(r) {
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
	if everyone && !effect.LimitsSearch(r) {
		who += ", except search engines,"
	}
	if len(r.Hosts) == 0 {
		return who
	}
	return who + " on " + english.Some(r.Hosts, 4)
}
