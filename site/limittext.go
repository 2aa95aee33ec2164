// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// LimitTexts says who is limited at the edge: a text for each limit and for each
// crawl-delay that is enforced.
func (s *Site) LimitTexts() (all []string) {
	line := func(r *policy.Rule, l Limit) {
		dryRun := ""
		switch l.Mode {
		case policy.ModeLog:
			dryRun = " (in dry run)"
		case policy.ModeBlock:
		default:
			return
		}
		all = append(all, fmt.Sprintf("%s to %s%s", limitedBy(r), l, dryRun))
	}
	for i := range s.File.Spec.Rules {
		r := &s.File.Spec.Rules[i]
		if !r.Limit.IsZero() {
			line(r, Limit{Limit: r.Limit, Mode: s.limitMode(r)})
		}
		if r.CrawlDelay > 0 {
			line(r, Limit{Limit: delayLimit(r.CrawlDelay), Delay: true, Mode: r.Enforce})
		}
	}
	return all
}

// limitedBy says which clients a rule limits, and where.
func limitedBy(r *policy.Rule) string {
	names := make([]string, len(r.For))
	everyone := false
	for i, a := range r.For {
		names[i] = a.String()
		everyone = everyone || a.Kind == policy.ForEveryone || a.Kind == policy.ForEveryoneElse
	}
	who := firstThree(names)
	if everyone && !limitsSearch(r) {
		who += ", except search engines,"
	}
	if len(r.Hosts) == 0 {
		return who
	}
	hosts := make([]string, len(r.Hosts))
	for i, h := range r.Hosts {
		hosts[i] = string(h)
	}
	return who + " on " + firstThree(hosts)
}

func firstThree(names []string) string {
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + fmt.Sprintf(" and %d more", len(names)-3)
	}
	return strings.Join(names, ", ")
}
