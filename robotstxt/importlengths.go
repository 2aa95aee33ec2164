// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// winsAsWritten and winsInPolicy compare rules (RFC 9309 section 2.2.2) by the lengths of Google's parser and of
// policies. The patterns of policies are in normal form: one "*" for several, a "/" before a "*" at the start, no
// needless "%".
func winsAsWritten(a, b Rule) bool { return a.Size > b.Size || a.Size == b.Size && a.Allow }

func winsInPolicy(a, b Rule) bool {
	return a.Pattern.Len() > b.Pattern.Len() || a.Pattern.Len() == b.Pattern.Len() && a.Allow
}

func (r *Rule) normal() bool { return r.Size == r.Pattern.Len() }

// beaten drops rules that lose wherever they match by their length as written, but not by that in the policy.
func beaten(rules []Rule) []Rule {
	if !slices.ContainsFunc(rules, func(r Rule) bool { return !r.normal() }) {
		return rules
	}
	return slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool {
		return slices.ContainsFunc(rules, func(w Rule) bool {
			return w.Allow != r.Allow && (!w.normal() || !r.normal()) &&
				winsAsWritten(w, r) && !winsInPolicy(w, r) && w.Pattern.Covers(r.Pattern) && w.meets(&r)
		})
	})
}

// meets reports whether readers that compare octets as written find the two to meet.
func (r *Rule) meets(s *Rule) bool {
	return pathpattern.Compared(r.Pattern, r.Written, s.Pattern, s.Written)
}

// spelled is the text of a pattern in the spelling of an Allow, "" for the normal form. It is not ok for a mixed spelling.
func (r *Rule) spelled(p pathpattern.Pattern) (text string, ok bool) {
	own, others := pathpattern.Spell(r.Pattern, r.Written), pathpattern.Spell(p, "")
	if !r.Allow || own.Octets == 0 {
		return "", true
	}
	if text = others.Like(&own); text == "" {
		return "", false
	}
	if strings.HasSuffix(p.String(), "*") {
		text += "*"
	}
	return pathpattern.Written(p, text), true
}

const maxCrossings = 16

// maxPairs bounds the comparisons of rules whose lengths differ.
const maxPairs = 1 << 22

// settle makes the policy decide as the file where an Allow and a Disallow match a common path, and the one that wins as
// written would lose in the policy. It adds statements for the common paths:
//
//	Disallow: *.html        allow:    /docs/
//	Allow: /docs/      →    disallow: *.html     (6 bytes as written, 7 in the policy)
//	                        allow:    /docs/*.html
//
// Where no statement can express it, the Allow is left out, so that nothing opens that the file disallows.
func (im *importer) settle(rules []Rule) (left []Rule, more []policy.Statement) {
	drop := map[int]bool{}
	pairs := 0
	for i, r := range rules {
		if r.normal() {
			continue
		}
		for j, s := range rules {
			if r.Allow == s.Allow || !s.normal() && j < i || drop[i] || drop[j] {
				continue
			}
			if pairs++; pairs > maxPairs {
				return im.withoutAllows(rules, r.number), nil
			}
			if !r.Pattern.Overlaps(s.Pattern) || winsAsWritten(r, s) == winsInPolicy(r, s) || !r.meets(&s) {
				continue
			}
			winner, loser, allow := s, r, j
			if winsAsWritten(r, s) {
				winner, loser = r, s
			}
			if r.Allow {
				allow = i
			}
			common, exact, ok := settlePair(rules, winner, loser)
			switch {
			case ok && exact, ok && !winner.Allow:
				if !exact {
					im.f.note(loser.number, "%q also allows paths that another Allow line allows; in the policy, such paths stay disallowed by line %d where they match %s",
						"Allow: "+loser.text(), winner.number, common[0])
				}
				more = im.statements(more, rules, winner, common)
			case winner.Allow:
				im.f.note(winner.number, "in the policy, %q of line %d also disallows the paths that both lines match: "+
					"it is longer than this line there, and not in robots.txt", loser.text(), loser.number)
			default:
				drop[allow] = true
				im.f.note(loser.number, "%q is left out, because lengths in the policy differ from those here. It would also allow paths that %q of line %d disallows; "+
					"write an allow for the paths that you mean", "Allow: "+loser.text(), "Disallow: "+winner.text(), winner.number)
			}
		}
	}
	for i, r := range rules {
		if !drop[i] {
			left = append(left, r)
		}
	}
	return left, more
}

// statements adds the statements of a rule for some patterns, unless a rule or another statement has the
// pattern.
func (im *importer) statements(all []policy.Statement, rules []Rule, winner Rule, patterns []pathpattern.Pattern) []policy.Statement {
	for _, p := range patterns {
		if slices.ContainsFunc(all, func(s policy.Statement) bool { return s.Pattern == p }) ||
			slices.ContainsFunc(rules, func(r Rule) bool { return r.Pattern == p }) {
			continue
		}
		s := crawl(winner.Allow, p, winner.number)
		s.Written, _ = winner.spelled(p)
		all = append(all, s)
	}
	return all
}

// withoutAllows leaves out the Allow lines of a group that cannot be compared.
func (im *importer) withoutAllows(rules []Rule, line int) []Rule {
	im.f.note(line, "the Allow lines of this group are left out, because its lines are too many to find those that overlap this one. "+
		"Write shorter groups, or write the policy by hand")
	return slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return r.Allow })
}

// settlePair returns patterns for the paths that two rules both match, which beat the loser in the policy. It is not ok if
// there are none. It is not exact if they would also beat a rule that beats the winner.
func settlePair(rules []Rule, winner, loser Rule) (common []pathpattern.Pattern, exact, ok bool) {
	common, ok = pathpattern.Intersect(winner.Pattern, loser.Pattern, maxCrossings)
	exact = true
	for i, p := range common {
		if longer, err := pathpattern.Parse(p.String() + "*"); err == nil && !p.Anchored() && !winner.Allow && p.Len() == loser.Pattern.Len() {
			common[i], p = longer, longer // a "*" at the end counts
		}
		_, spelled := winner.spelled(p)
		enough := p.Len() > loser.Pattern.Len() || p.Len() == loser.Pattern.Len() && winner.Allow
		ok = ok && spelled && enough && p.Len() <= maxPath
		exact = exact && !slices.ContainsFunc(rules, func(t Rule) bool {
			return t.Allow != winner.Allow && winsAsWritten(t, winner) && t.Pattern.Overlaps(p) && t.Pattern.Len() <= p.Len()
		})
	}
	return common, exact, ok && len(common) > 0
}
