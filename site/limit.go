// SPDX-License-Identifier: Apache-2.0

package site

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Limit is a rate limit that applies to a request.
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
		says := fmt.Sprintf("limits %s to %v, or up to %d at once after a pause", whose, l, l.Burst)
		if l.Delay {
			says = fmt.Sprintf("limits %s to one in %v, or up to %d at once after a pause, because crawl-delay is enforced", whose, l.Per, l.Burst)
		}
		c.add(Reason{Place: s.Place(l.Pos), Rule: s.RuleName(l.Rule), Says: says})
		switch {
		case l.Mode == policy.ModeBlock && blocking > 0:
			c.Summary = "the request passes, unless it exceeds one of these limits. In that case, the answer is 429 Too Many Requests"
		case l.Mode == policy.ModeBlock:
			c.Summary = fmt.Sprintf("the request passes, unless %s makes more requests than %v. In that case, the answer is 429 Too Many Requests", who, l)
			blocking++
		case c.Summary == passes:
			c.Summary = "the request passes, and the log shows whether the request exceeds the limit (enforce: log)"
		}
	}
}

// maxLimitQueries limits the queries of LimitTexts, so that it ends after about a second.
const maxLimitQueries = 2_000_000

// LimitTexts describes the rate limits of the server. It returns a text for each limit and each enforced crawl-delay
// that applies to any crawler. If the policy is too large, some limits are not described. In this case, the last text
// contains the number of these limits.
func (s *Site) LimitTexts(now time.Time) (all []string) {
	dryRun := map[policy.Mode]string{policy.ModeBlock: "", policy.ModeLog: " (in dry run)"}
	queries, left := 0, 0
	for i := range s.File.Spec.Rules {
		r := &s.File.Spec.Rules[i]
		for _, l := range s.LimitsOf(r) {
			suffix, enforced := dryRun[l.Mode]
			if !enforced {
				continue
			}
			who := s.limitedBy(r, l.Delay, now, &queries)
			if queries > maxLimitQueries {
				left++
			} else if who != "" {
				all = append(all, fmt.Sprintf("%s to %s%s", who, l, suffix))
			}
		}
	}
	if left > 0 {
		all = append(all, english.Count(left, "more limit")+" in the rules, not looked at")
	}
	return all
}

// limitedNames has the names for the audiences "everyone" and "everyone-else" in texts about rate limits. The names
// mention only known crawlers, because unlisted clients are never limited.
var limitedNames = map[policy.AudienceKind]string{policy.ForEveryone: "known crawlers", policy.ForEveryoneElse: "other known crawlers"}

// limitedBy describes the crawlers and hosts that the rule r limits. It also names the search engines that the rule is
// for but does not limit. It returns "" if the rule does not limit any crawler. If delay is true, limitedBy is about
// the rule's enforced crawl-delay; if it is false, about its rate limits. limitedBy adds the number of its decisions to
// queries, and stops if the sum is greater than maxLimitQueries.
func (s *Site) limitedBy(r *policy.Rule, delay bool, now time.Time, queries *int) string {
	hosts := r.Hosts
	if len(hosts) == 0 {
		hosts = []policy.Host{""}
	}
	var audiences, spared []string
	var limitedHosts []policy.Host
	searchLimited := false
	for _, a := range r.For {
		var members []policy.CrawlerID
		for id := range s.Policy.Members(a) {
			members = append(members, id)
		}
		for _, h := range hosts {
			q := policy.Query{Identity: policy.Verified, Host: h.Example(), Path: "/", Now: now}
			any, exempt := false, []string(nil)
			if *queries += 1 + len(members); *queries > maxLimitQueries {
				return ""
			}
			for _, id := range members {
				q.Crawler = id
				limited := slices.ContainsFunc(s.Limits(nil, q), func(l Limit) bool { return l.Rule.Pos == r.Pos && l.Delay == delay })
				any = any || limited
				if search := s.Searches(id); search && limited {
					searchLimited = true
				} else if search {
					exempt = append(exempt, s.Policy.CrawlerInfo(id).Name())
				}
			}
			if !any {
				continue
			}
			spared = union(spared, exempt)
			audiences = union(audiences, []string{cmp.Or(limitedNames[a.Kind], a.String())})
			limitedHosts = union(limitedHosts, []policy.Host{h})
		}
	}
	if len(audiences) == 0 {
		return ""
	}
	text := english.Some(audiences, 4)
	switch {
	case len(spared) > 0 && searchLimited:
		text += ", except " + english.Some(spared, 3) + ","
	case len(spared) > 0:
		text += ", except search engines,"
	}
	if len(r.Hosts) > 0 {
		text += " on " + english.Some(limitedHosts, 4)
	}
	return text
}

// union returns the elements of both lists, each once.
func union[T comparable](a, b []T) []T {
	for _, v := range b {
		if !slices.Contains(a, v) {
			a = append(a, v)
		}
	}
	return a
}
