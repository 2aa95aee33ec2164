// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// crawler returns the crawler with a token, or an empty Crawler.
func crawler(spec *policy.Spec, token string) policy.Crawler {
	for _, c := range spec.Crawlers {
		if strings.EqualFold(c.Token, token) {
			return c
		}
	}
	return policy.Crawler{}
}

// MayTrain reports whether the policy allows an operator to train AI. The question names the operator's control token,
// such as Google-Extended, which applies to the pages that the operator's main crawler fetches. Training is allowed if
// it is allowed or unstated for both the token and the main crawler. If it is disallowed for one of the two and allowed
// for the other, the rule that names its crawler or token more closely wins. If both are equally close, training is
// disallowed. There is one exception: an allow entry that names the token itself always wins.
func MayTrain(spec *policy.Spec, q Question) bool {
	q.Usage, q.Identity = policy.TrainAI, policy.Verified
	own := Decide(spec, q)
	main := q
	main.Token = crawler(spec, q.Token).Main
	theirs := Decide(spec, main)
	switch {
	case own.Verdict == policy.Disallowed && main.Token != "" && theirs.Verdict == policy.Allowed:
		return closestOf(spec, main, theirs.Statement) < closestOf(spec, q, own.Statement)
	case own.Verdict == policy.Disallowed:
		return false
	case main.Token == "" || theirs.Verdict != policy.Disallowed:
		return true
	case own.Verdict == policy.Unstated:
		return false
	}
	near := closestOf(spec, q, own.Statement)
	return near == byToken || near < closestOf(spec, main, theirs.Statement)
}

// closestOf returns how closely the rule of a statement names the crawler of a question. The numbers are those of
// matching.closeness, so a smaller number is closer.
func closestOf(spec *policy.Spec, q Question, s *policy.Statement) int {
	best := byEveryone
	for i := range spec.Rules {
		for j := range spec.Rules[i].Statements {
			if &spec.Rules[i].Statements[j] != s {
				continue
			}
			for _, a := range spec.Rules[i].For {
				if n, ok := closeness(spec, a, q); ok {
					best = min(best, n)
				}
			}
		}
	}
	return best
}

// controlled reports whether the server sends the rules of a Control (see crawlers.Control) to the crawler of a
// question. These are the rules that the crawler's operator has documented for disallowing usages. The result may
// differ for other identities of the crawler.
func controlled(spec *policy.Spec, q Question) bool {
	control := crawler(spec, q.Token).Control
	if control == nil || spec.Publish.Controls == policy.Off {
		return false
	}
	disallowed := func(u policy.Usage, path string) bool {
		q := q
		q.Usage, q.Path = u, path
		return Decide(spec, q).Verdict == policy.Disallowed
	}
	choice := ""
	for _, c := range spec.Publish.ControlChoices {
		if strings.EqualFold(c.Crawler, q.Token) {
			choice = c.Value
		}
	}
	opened := false
	for _, s := range speakers(spec, Question{Token: q.Token, Host: q.Host, Identity: policy.Verified}) {
		opened = opened || slices.ContainsFunc(s.rule.Statements, func(s policy.Statement) bool { return s.Usage == policy.Crawl && s.Allow })
	}
	if !opened && disallowed(policy.Crawl, "/~nothing~matches~") {
		return false
	}
	taken := 0
	for _, u := range control.Takes {
		if disallowed(u, q.Path) && (choice == "" || u == policy.TrainAI || u == policy.AIUse) {
			taken++
		}
	}
	return choice != policy.NoControl && taken > 0 && (choice != "" || taken == len(control.Takes))
}
