// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Closed names what the policy, asked usage by usage, closes to a crawler at a page:
// blocked, crawl, index, snippet, link and limit. Headers know neither who asks nor that
// what they say to everyone is not for this crawler, so all of their answers count. A limit
// must be in one rule only.
func Closed(spec *policy.Spec, q Question) map[string]bool {
	closed := map[string]bool{}
	if crawlertest.NormalPath(q.Path) == "/robots.txt" {
		return closed
	}
	disallowed := func(q Question, u policy.Usage) bool {
		q.Usage = u
		return Decide(spec, q).Verdict == policy.Disallowed
	}
	q.Usage = policy.Crawl
	if a := Decide(spec, q); a.Verdict == policy.Disallowed {
		closed[map[bool]string{true: "blocked", false: "crawl"}[a.Mode == policy.ModeBlock]] = true
	}
	if disallowed(q, policy.Search) {
		closed["index"] = true
	}
	for _, asked := range []string{q.Token, ""} {
		for _, identity := range Identities {
			header := q
			header.Token, header.Identity = asked, identity
			for what, u := range map[string]policy.Usage{"index": policy.Index, "snippet": policy.PresentSnippet, "link": policy.PresentLink} {
				if disallowed(header, u) {
					closed[what] = true
				}
			}
			for _, e := range EngineRules(spec, header) {
				switch e.Rule.String() {
				case "noindex", "none":
					closed["index"] = true
				case "nosnippet":
					closed["snippet"] = true
				}
			}
		}
	}
	if limited(spec, q) {
		closed["limit"] = true
	}
	return closed
}

func limited(spec *policy.Spec, q Question) bool {
	for i := range spec.Rules {
		r := &spec.Rules[i]
		if r.Limit.IsZero() || r.Enforce == policy.ModeOff || r.Enforce == policy.ModeLog || !identityOK(r.Identity, q.Identity) || !purposeOK(r.UsagePurposes, q.Purposes) || hostRanks(r.Hosts, q.Host) == nil {
			continue
		}
		for _, a := range r.For {
			if _, ok := closeness(spec, a, q); ok {
				return true
			}
		}
	}
	return false
}
