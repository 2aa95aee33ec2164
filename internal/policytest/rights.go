// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Identities are those that a client can have.
var Identities = []policy.Identity{policy.Unknown, policy.Impostor, policy.Verified}

// Rights is what the policy, asked usage by usage, leaves a crawler with. A header
// cannot know who a client really is, so the strictest answer counts.
func Rights(spec *policy.Spec, q Question) crawlertest.Rights {
	r := crawlertest.AllRights()
	for _, q.Identity = range Identities {
		for _, u := range policy.Usages() {
			q.Usage = u
			a := Decide(spec, q)
			if a.Verdict == policy.Disallowed {
				r = r.And(without(u))
			} else if a.Statement != nil && a.Verdict == policy.Allowed && a.Statement.Qualifiers != nil {
				r = r.And(within(u, a.Statement.Qualifiers))
			}
		}
		for _, e := range EngineRules(spec, q) {
			r = r.And(crawlertest.EvaluateX([]string{e.Rule.Expired(q.Now).String()}, "*"))
		}
	}
	return r
}

// without is a page of which a usage is disallowed.
func without(u policy.Usage) crawlertest.Rights {
	r := crawlertest.AllRights()
	switch u {
	case policy.Index, policy.PresentLink:
		r.Index, r.Embed = false, false
	case policy.Follow:
		r.Follow = false
	case policy.Preserve, policy.PresentCurrentCopy, policy.PresentOldCopy, policy.PresentOldSnippet, policy.PresentOldThumbnail:
		r.Archive = false
	case policy.PresentSnippet:
		r.Snippet = 0
	case policy.PresentThumbnail:
		r.Image, r.Video = 0, 0
	}
	return r
}

// within is a page of which a usage is allowed with conditions.
func within(u policy.Usage, q *policy.Qualifiers) crawlertest.Rights {
	r := crawlertest.AllRights()
	if u == policy.Index && q.TimeLimit.Kind == policy.UntilDate {
		r.Until = q.TimeLimit.Last.Unix()
	}
	if u == policy.PresentSnippet {
		switch n := int64(q.MaxLength.N); q.MaxLength.Unit {
		case policy.Chars:
			r.Snippet = n
		case policy.Words:
			r.Snippet = max(0, 2*n-1) // that many words and the spaces between them
		}
	}
	r.Translate = !slices.Contains(q.ProhibitedModification, "any") && !slices.Contains(q.ProhibitedModification, "translation")
	return r
}

// Preference is what the policy says about an AIPREF usage, such as "train-ai=n",
// or "". The strictest answer counts.
func Preference(spec *policy.Spec, q Question, u policy.Usage) string {
	q.Usage = u
	no, silent := false, false
	for _, q.Identity = range Identities {
		switch Decide(spec, q).Verdict {
		case policy.Disallowed:
			no = true
		case policy.Unstated:
			silent = true
		}
	}
	switch {
	case no:
		return u.String() + "=n"
	case silent:
		return ""
	}
	return u.String() + "=y"
}

// speaking is a rule that speaks to a question, with its ranks by audience and
// host.
type speaking struct {
	ranks [2]int
	rule  *policy.Rule
}

// speakers lists the rules that speak to a question, those that win first.
func speakers(spec *policy.Spec, q Question) (all []speaking) {
	for i := range spec.Rules {
		r := &spec.Rules[i]
		if !identityOK(r.Identity, q.Identity) || !purposeOK(r.UsagePurposes, q.Purposes) {
			continue
		}
		for _, a := range r.For {
			if audience, ok := audienceRank(spec, a, q); ok {
				for _, host := range hostRanks(r.Hosts, q.Host) {
					all = append(all, speaking{[2]int{audience, host}, r})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b speaking) int { return slices.Compare(a.ranks[:], b.ranks[:]) })
	return all
}

// AppDirective is what the policy directs an application to do; nil for nothing.
// Of several of equal rank the first in the file holds.
func AppDirective(spec *policy.Spec, q Question, app string) (best *policy.AppDirective) {
	path := crawlertest.NormalPath(q.Path)
	var at [2]int
	for _, s := range speakers(spec, q) {
		for i := range s.rule.AppDirectives {
			d := &s.rule.AppDirectives[i]
			if d.App != app || !matches(d.Pattern.String(), path) {
				continue
			}
			n := 0
			if best != nil && s.ranks == at {
				n = len(best.Pattern.String())
			} else if best != nil {
				continue
			}
			if len(d.Pattern.String()) > n || len(d.Pattern.String()) == n && d.Pos.Line < best.Pos.Line {
				best, at = d, s.ranks
			}
		}
	}
	return best
}

// EngineRules are the engines' own rules that hold for a question: of each name
// those of the highest rank.
func EngineRules(spec *policy.Spec, q Question) (hold []*policy.EngineRule) {
	path := crawlertest.NormalPath(q.Path)
	type rank [3]int
	at := map[string]rank{}
	for _, s := range speakers(spec, q) {
		for i := range s.rule.EngineRules {
			e := &s.rule.EngineRules[i]
			if !matches(e.Pattern.String(), path) {
				continue
			}
			mine := rank{s.ranks[0], s.ranks[1], -len(e.Pattern.String())}
			if have, ok := at[e.Name]; ok {
				switch slices.Compare(mine[:], have[:]) {
				case 1:
					continue
				case -1:
					hold = slices.DeleteFunc(hold, func(h *policy.EngineRule) bool { return h.Name == e.Name })
				}
			}
			at[e.Name] = mine
			hold = append(hold, e)
		}
	}
	return hold
}

// CrawlDelay is the pause that the policy asks a crawler for; of several of equal
// rank the longest.
func CrawlDelay(spec *policy.Spec, q Question) (delay time.Duration) {
	var at [2]int
	for _, s := range speakers(spec, q) {
		if s.rule.CrawlDelay > 0 && (delay == 0 || s.ranks == at) {
			delay, at = max(delay, s.rule.CrawlDelay), s.ranks
		}
	}
	return delay
}
