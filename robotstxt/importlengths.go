// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
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

// spelled is the text of a pattern in the spelling of a rule, "" for the normal form. It is not ok for a mixed spelling,
// which robots.txt lists neither for an Allow nor for a Disallow.
func (r *Rule) spelled(p pathpattern.Pattern) (text string, ok bool) {
	own, others := pathpattern.Spell(r.Pattern, r.Written), pathpattern.Spell(p, "")
	switch {
	case !r.Allow:
		return "", others.Octets <= 1 || others.Octets == own.Octets
	case own.Octets == 0:
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

// Bounds of what settle adds for two rules, and of the comparisons of rules.
const (
	maxCrossings = 8
	maxAdded     = 16
	maxPairs     = 1 << 22
)

// settle makes the policy decide as the file where an Allow and a Disallow match a common path, and the one that wins as
// written would lose in the policy. It adds rules for the common paths:
//
//	Disallow: *.html        allow:    /docs/
//	Allow: /docs/      →    disallow: *.html     (6 bytes as written, 7 in the policy)
//	                        allow:    /docs/*.html
//
// Where no rule can express it, the Allow is left out, so that nothing opens that the file disallows.
func (im *importer) settle(rules []Rule) []Rule {
	s := settling{rules: slices.Clone(rules)}
	drop := map[int]bool{}
	for i := range rules {
		for j := range rules[:i] {
			w, l, ok := s.conflict(i, j)
			if !ok || drop[i] || drop[j] {
				continue
			}
			winner, loser := rules[w], rules[l]
			s.left, s.closed = maxAdded, pathpattern.Pattern{}
			switch {
			case s.resolve(w, l):
				if !s.closed.IsZero() {
					im.f.note(loser.number, "%q also allows paths that another Allow line allows; in the policy, such paths stay disallowed by line %d if they match %s",
						"Allow: "+loser.text(), winner.number, s.closed)
				}
			case winner.Allow:
				im.f.note(winner.number, "in the policy, %q of line %d also disallows the paths that both lines match: "+
					"there it is longer than this line's path, but not in robots.txt", loser.text(), loser.number)
			default:
				drop[l] = true
				im.f.note(loser.number, "%q is left out, because a policy compares the lengths of paths differently. The line would also allow paths that %q of line %d disallows; "+
					"in the policy, add an allow entry for the paths that you mean", "Allow: "+loser.text(), "Disallow: "+winner.text(), winner.number)
			}
			if s.pairs > maxPairs {
				return im.withoutAllows(rules, winner.number)
			}
		}
	}
	allowed := map[pathpattern.Pattern]bool{}
	for i, r := range s.rules {
		allowed[r.Pattern] = allowed[r.Pattern] || r.Allow && !drop[i]
	}
	var left []Rule
	for i, r := range s.rules {
		if !drop[i] && (r.Allow || !allowed[r.Pattern]) { // an Allow wins over an equal Disallow
			left = append(left, r)
		}
	}
	return left
}

// withoutAllows leaves out the Allow lines of a group that cannot be compared.
func (im *importer) withoutAllows(rules []Rule, line int) []Rule {
	im.f.note(line, "the Allow lines of this group are left out, because the group has too many lines to find overlaps with this line. "+
		"Write shorter groups, or write the policy by hand")
	return slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return r.Allow })
}

// settling adds rules. Each has the Size of the rule that wins where two meet, and so wins over the same rules.
type settling struct {
	rules  []Rule
	left   int                 // rules that may be added
	closed pathpattern.Pattern // of an added Disallow that also closes what an Allow opens as written
	pairs  int                 // that were compared
}

// conflict reports whether, of two rules, the one that wins as written loses in the policy.
func (s *settling) conflict(i, j int) (winner, loser int, ok bool) {
	a, b := &s.rules[i], &s.rules[j]
	if a.Allow == b.Allow || a.normal() && b.normal() {
		return 0, 0, false
	}
	s.pairs++
	if winsAsWritten(*a, *b) == winsInPolicy(*a, *b) || !a.Pattern.Overlaps(b.Pattern) || !a.meets(b) {
		return 0, 0, false
	}
	if winsAsWritten(*a, *b) {
		return i, j, true
	}
	return j, i, true
}

// resolve adds rules that let the winner win, and those that these need, or none.
func (s *settling) resolve(w, l int) bool {
	before, winner, loser := len(s.rules), s.rules[w], s.rules[l]
	common, ok := pathpattern.Intersect(winner.Pattern, loser.Pattern, maxCrossings)
	for _, p := range common {
		ok = ok && s.add(winner, p, &loser)
	}
	if !ok {
		s.rules = s.rules[:before]
	}
	return ok
}

// add adds a rule for a pattern within two rules, unless there is one.
func (s *settling) add(winner Rule, p pathpattern.Pattern, loser *Rule) bool {
	if slices.ContainsFunc(s.rules, func(r Rule) bool {
		return r.Allow == winner.Allow && winsInPolicy(r, *loser) && r.Pattern.Covers(p)
	}) {
		return true
	}
	r := Rule{Allow: winner.Allow, Pattern: p, Size: winner.Size, number: winner.number}
	if !winsInPolicy(r, *loser) {
		r, _ = r.moved(true) // a "*" at the end counts
	}
	var spelled bool
	r.Written, spelled = winner.spelled(r.Pattern)
	s.left--
	if !spelled || !winsInPolicy(r, *loser) || r.Pattern.Len() > maxPath || s.left < 0 {
		return false
	}
	s.rules = append(s.rules, r)
	i := len(s.rules) - 1
	for j := range i {
		w, l, ok := s.conflict(i, j)
		if !ok {
			continue
		}
		spare := 0
		if l == i && !r.Allow { // so that the policy is only stricter
			spare = s.left / 2
		}
		s.left -= spare
		ok = s.resolve(w, l)
		s.left = max(0, s.left) + spare
		if !ok && (l != i || r.Allow) {
			return false
		}
		if !ok {
			s.closed = r.Pattern
		}
	}
	return true
}
