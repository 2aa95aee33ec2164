// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Identities lists the identities that a client can have.
var Identities = []policy.Identity{policy.Unknown, policy.Impostor, policy.Verified}

// Rights returns the rights that a crawler has on a page according to the policy. It asks the policy about each usage
// and identity. For each usage, the strictest answer applies, because a header is the same for all identities.
func Rights(spec *policy.Spec, q Question) crawlertest.Rights {
	r := crawlertest.AllRights()
	for _, q.Identity = range Identities {
		for _, u := range policy.Usages() {
			q.Usage = u
			a := Decide(spec, q)
			if a.Verdict == policy.Disallowed {
				r = r.And(without(u))
			}
			for _, limits := range a.Limits {
				r = r.And(within(u, limits))
			}
		}
		if controlled(spec, q) {
			r = r.And(crawlertest.EvaluateX([]string{crawler(spec, q.Token).Control.Rules.String()}, "*"))
		}
		for _, e := range EngineRules(spec, q) {
			r = r.And(crawlertest.EvaluateX([]string{e.Rule.Expired(q.Now).String()}, "*"))
		}
	}
	return r
}

// without returns the rights for a page if the usage u is the only disallowed one.
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
	case policy.Crawl, policy.Present, policy.PresentOriginal, policy.Other, policy.TrainAI, policy.AIUse, policy.Search:
	}
	return r
}

// within returns the rights for a page if the qualifiers q of an allow entry for the usage u are the only limits.
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
			r.Snippet = max(0, 2*n-1) // n words of at least one letter, and the spaces between them
		}
	}
	r.Translate = !slices.Contains(q.ProhibitedModification, "any") && !slices.Contains(q.ProhibitedModification, "translation")
	return r
}

// Preference returns the policy's preference for an AIPREF usage, such as "train-ai=n", or "". It is the strictest
// answer for all identities.
func Preference(spec *policy.Spec, q Question, u policy.Usage) string {
	q.Usage = u
	no, silent := false, false
	for _, q.Identity = range Identities {
		switch Decide(spec, q).Verdict {
		case policy.Disallowed:
			no = true
		case policy.Unstated:
			silent = true
		case policy.Allowed:
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

// speaking is a rule that applies to a question. Its field scope holds one audience and one host of the rule that match
// the question. If several of them match, there are several values for the rule.
type speaking struct {
	scope matching // the fields statement and usage are not set
	rule  *policy.Rule
}

func (s speaking) rank() [2]int { return [2]int{s.scope.closeness, s.scope.host} }

// speakers lists the rules that apply to a question, sorted by audience and host, the narrowest first.
func speakers(spec *policy.Spec, q Question) (all []speaking) {
	for i := range spec.Rules {
		r := &spec.Rules[i]
		if !identityOK(r.Identity, q.Identity) || !purposeOK(r.UsagePurposes, q.Purposes) {
			continue
		}
		for _, a := range r.For {
			if close, ok := closeness(spec, a, q); ok {
				for _, host := range hostRanks(r.Hosts, q.Host) {
					all = append(all, speaking{matching{rule: r, audience: a, closeness: close, host: host}, r})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b speaking) int {
		x, y := a.rank(), b.rank()
		return slices.Compare(x[:], y[:])
	})
	return all
}

// AppDirective returns the policy's directive for an application, or nil. If several directives match, the narrowest
// audience wins, then the narrowest host, then the longest pattern, then the first in the file.
func AppDirective(spec *policy.Spec, q Question, app string) (best *policy.AppDirective) {
	path := crawlertest.NormalPath(q.Path)
	var at [2]int
	for _, s := range speakers(spec, q) {
		for i := range s.rule.AppDirectives {
			d := &s.rule.AppDirectives[i]
			if d.App != app || !matchesPath(d.Pattern.String(), path) {
				continue
			}
			n := 0
			if best != nil && s.rank() == at {
				n = best.Pattern.Len()
			} else if best != nil {
				continue
			}
			if d.Pattern.Len() > n || d.Pattern.Len() == n && d.Pos.Line < best.Pos.Line {
				best, at = d, s.rank()
			}
		}
	}
	return best
}

// EngineRules returns the robots control rules (policy.EngineRule) that apply to a question. It leaves out a rule if a
// narrower rule of the same name sets it aside.
func EngineRules(spec *policy.Spec, q Question) (hold []*policy.EngineRule) {
	path := crawlertest.NormalPath(q.Path)
	type match struct {
		matching
		rule *policy.EngineRule
	}
	var all []match
	for _, s := range speakers(spec, q) {
		for i := range s.rule.EngineRules {
			if e := &s.rule.EngineRules[i]; matchesPath(e.Pattern.String(), path) {
				m := match{s.scope, e}
				m.statement = &policy.Statement{Pattern: e.Pattern}
				all = append(all, m)
			}
		}
	}
	for _, m := range all {
		if !slices.ContainsFunc(all, func(a match) bool { return a.rule.Name == m.rule.Name && setsAside(a.matching, m.matching) }) {
			hold = append(hold, m.rule)
		}
	}
	return hold
}

// CrawlDelay returns the crawl-delay for a crawler. The narrowest audience wins, then the narrowest host, then the
// longest delay.
func CrawlDelay(spec *policy.Spec, q Question) (delay time.Duration) {
	var at *[2]int
	for _, s := range speakers(spec, q) {
		rank := s.rank()
		if (s.rule.CrawlDelay > 0 || s.rule.NoCrawlDelay) && (at == nil || rank == *at) {
			delay, at = max(delay, s.rule.CrawlDelay), &rank
		}
	}
	return delay
}
