// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"cmp"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// winsInPolicy reports whether a wins over b in a policy (RFC 9309 section 2.2.2). A policy compares the lengths of
// patterns in normal form, which has a "/" before a "*" at the start, and no needless "%". Google's parser compares the
// lengths as written instead, which Size holds.
func winsInPolicy(a, b Rule) bool { return a.Pattern.Len() >= b.lengthToLose(a.Allow) }

// lengthToLose returns the minimum length of an Allow or, if toAllow is false, of a Disallow that wins over the rule in
// a policy.
func (r *Rule) lengthToLose(toAllow bool) int {
	if toAllow {
		return r.Pattern.Len()
	}
	return r.Pattern.Len() + 1
}

func (r *Rule) normal() bool { return r.Size == r.Pattern.Len() }

// meets reports whether some path matches both rules for readers that compare octets as written.
func (r *Rule) meets(s *Rule) bool {
	return pathpattern.Compared(r.Pattern, r.Written, s.Pattern, s.Written)
}

// maxPairs limits the number of comparisons between the rules of a group.
const maxPairs = 1 << 22

// measured is a rule whose length may change.
type measured struct {
	Rule
	read   Rule        // the original rule
	losers []*measured // rules that lose to the rule in the file and won in the policy
	left   bool        // the rule is left out
}

// lengthen changes the lengths of patterns so that the same rules win in the policy as in the file. It adds "*" to
// patterns, which does not change what they match:
//
//	Disallow: *.html        disallow: /*.html     (6 bytes as written, 7 in the policy)
//	Allow: /docs/      →    allow:    /docs/*
//
// A pattern such as /a$ has no place for a "*". If such an Allow loses in the policy, the policy disallows more than
// the file. If such a Disallow loses, the winning Allow is left out or keeps its original length, so that the policy
// does not allow a path that the file disallows.
func (im *importer) lengthen(rules []Rule) []Rule {
	if !slices.ContainsFunc(rules, func(r Rule) bool { return !r.normal() }) {
		return rules
	}
	all := make([]*measured, len(rules))
	for i, r := range rules {
		all[i] = &measured{Rule: r, read: r}
	}
	weakest := weakestFirst(all)
	pairs := 0
	var lost []*measured // Allow lines that win in the file and lose in the policy
	for i, r := range weakest {
		length := r.Pattern.Len()
		for _, s := range weakest[:i] {
			if s.Allow == r.Allow || s.left || winsInPolicy(r.Rule, s.Rule) {
				continue
			}
			if pairs++; pairs > maxPairs {
				return im.withoutAllows(rules, r.number)
			}
			if r.Pattern.Overlaps(s.Pattern) && r.meets(&s.Rule) {
				r.losers = append(r.losers, s)
				length = max(length, s.lengthToLose(r.Allow))
			}
		}
		var ok bool
		if r.Rule, ok = r.longer(length - r.Pattern.Len()); ok {
			continue
		}
		if r.Allow {
			lost = append(lost, r)
			continue
		}
		for _, s := range r.losers {
			if s.left = !winsInPolicy(r.Rule, s.read); s.left {
				im.f.note(s.number, "%q is left out, because a policy compares the lengths of paths differently. The line would also allow paths that %q of line %d disallows; "+
					"in the policy, add an allow entry for the paths that you mean", "Allow: "+s.read.text(), "Disallow: "+r.read.text(), r.number)
			} else {
				s.Rule, lost = s.read, append(lost, s)
			}
		}
	}
	for _, r := range lost {
		all = append(all, im.regain(r, weakest)...)
	}
	return kept(all)
}

// regain handles an Allow that loses in the policy. If the Allow covers a Disallow, the Disallow never decides in the
// file, so it is left out. For any other Disallow, regain returns an Allow of the paths that both lines match. If that
// Allow would win over a further Disallow, there is a note instead.
func (im *importer) regain(r *measured, weakest []*measured) (crossings []*measured) {
	for _, d := range r.losers {
		switch {
		case r.left || d.left || winsInPolicy(r.Rule, d.Rule):
		case r.Pattern.Covers(d.Pattern):
			d.left = true
		default:
			both := im.crossing(r, d, weakest)
			if both == nil {
				both = im.narrower(d, r, weakest)
			}
			crossings = append(crossings, both...)
			if both == nil && !slices.ContainsFunc(weakest, func(a *measured) bool {
				return a.Allow && !a.left && winsInPolicy(a.Rule, d.Rule) && a.Pattern.Covers(r.Pattern)
			}) {
				im.f.note(r.number, "in the policy, %q of line %d also disallows the paths that both lines match. A policy treats the path of that line as the longer one, but robots.txt does not",
					d.read.text(), d.number)
				return crossings
			}
		}
	}
	return crossings
}

// narrower restores the original length of a Disallow, so that r wins over this Disallow. It returns Disallow rules
// for the paths where the longer Disallow won over another Allow. If this is not possible, it returns nil and does not
// change the Disallow.
func (im *importer) narrower(d, r *measured, weakest []*measured) (all []*measured) {
	if !winsInPolicy(r.Rule, d.read) {
		return nil
	}
	for _, s := range d.losers {
		both := im.crossing(d, s, weakest)
		if both == nil {
			return nil
		}
		all = append(all, both...)
	}
	d.Rule = d.read
	return all
}

// maxCrossings limits the number of patterns of crossing.
const maxCrossings = 4

// crossing returns rules of the same kind as r for the paths that r and d match. These rules win over d, and lose to
// each rule that wins over r in the file. It returns nil if there are no such rules.
func (im *importer) crossing(r, d *measured, weakest []*measured) (all []*measured) {
	patterns, _ := pathpattern.Intersect(pathpattern.Raw(r.read.text()), pathpattern.Raw(d.read.text()), maxCrossings)
	for _, p := range patterns {
		c := Rule{Allow: r.Allow, Pattern: pathpattern.MustParse(p.String())}
		c.Written = pathpattern.Written(c.Pattern, p.String())
		if im.below { // in a policy file, the line number would print the comment of the line again
			c.number = r.number
		}
		c, ok := c.longer(max(0, d.lengthToLose(r.Allow)-c.Pattern.Len()))
		if !ok || slices.ContainsFunc(weakest[slices.Index(weakest, r):], func(s *measured) bool {
			return s.Allow != r.Allow && winsInPolicy(c, s.Rule) && s.Pattern.Overlaps(c.Pattern)
		}) {
			return nil
		}
		all = append(all, &measured{Rule: c, read: c})
	}
	return all
}

// weakestFirst sorts rules so that each rule wins in the file over all rules before it.
func weakestFirst(rules []*measured) []*measured {
	return slices.SortedStableFunc(slices.Values(rules), func(a, b *measured) int {
		switch {
		case a.Size != b.Size || a.Allow == b.Allow:
			return cmp.Compare(a.Size, b.Size)
		case a.Allow:
			return 1
		}
		return -1
	})
}

// kept returns the rules that are not left out. If an Allow and a Disallow have the same pattern, kept only returns the
// Allow.
func kept(all []*measured) (rules []Rule) {
	allowed := map[pathpattern.Pattern]bool{}
	for _, r := range all {
		allowed[r.Pattern] = allowed[r.Pattern] || r.Allow && !r.left
	}
	for _, r := range all {
		if !r.left && (r.Allow || !allowed[r.Pattern]) {
			rules = append(rules, r.Rule)
		}
	}
	return rules
}

// longer returns the rule with a pattern that is longer by n "*". It returns false if the pattern has no place for a
// "*", or would become too long.
func (r Rule) longer(n int) (Rule, bool) {
	longer := r.Pattern.Longer(n)
	if longer.Len() != r.Pattern.Len()+n || longer.Len() > maxPath {
		return r, false
	}
	r.Pattern = longer
	if r.Written != "" {
		r.Written = pathpattern.Raw(r.Written).Longer(n).String()
	}
	return r, true
}

// withoutAllows removes the Allow lines of a group that has too many rules to compare, and adds a note.
func (im *importer) withoutAllows(rules []Rule, line int) []Rule {
	im.f.note(line, "the Allow lines of this group are left out, because the group has too many lines to find overlaps with this line. "+
		"Write shorter groups, or write the policy by hand")
	return slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return r.Allow })
}
