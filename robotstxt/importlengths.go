// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"cmp"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// winsInPolicy reports whether a wins over b in a policy (RFC 9309 section 2.2.2). A policy compares the lengths of
// patterns in normal form: they have a "/" before a "*" at the start, and no needless "%". Google's parser compares Size.
func winsInPolicy(a, b Rule) bool { return a.Pattern.Len() >= b.lengthToLose(a.Allow) }

// lengthToLose returns the shortest length of an Allow, or of a Disallow, that wins over the rule in a policy.
func (r *Rule) lengthToLose(toAllow bool) int {
	if toAllow {
		return r.Pattern.Len()
	}
	return r.Pattern.Len() + 1
}

func (r *Rule) normal() bool { return r.Size == r.Pattern.Len() }

// meets reports whether readers that compare octets as written find the two to meet.
func (r *Rule) meets(s *Rule) bool {
	return pathpattern.Compared(r.Pattern, r.Written, s.Pattern, s.Written)
}

// maxPairs bounds the comparisons of the rules of a group.
const maxPairs = 1 << 22

// measured is a rule whose length may change.
type measured struct {
	Rule
	read Rule      // as it was read
	over *measured // the rule that it became longer for, or nil
	left bool      // left out
}

// lengthen makes the same rules win in the policy as in the file. It adds "*" to patterns, which only make them longer:
//
//	Disallow: *.html        disallow: /*.html     (6 bytes as written, 7 in the policy)
//	Allow: /docs/      →    allow:    /docs/*
//
// A pattern such as /a$ has no place for them. If such an Allow loses in the policy, more is disallowed than in the file.
// If such a Disallow loses, the Allow that wins is left out, or stays as it was read, so that nothing opens that the file
// disallows.
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
	var lost []*measured // Allow lines that win as written, and not in the policy
	for i, r := range weakest {
		length := r.Pattern.Len()
		var losers []*measured // as written, which win in the policy
		for _, s := range weakest[:i] {
			if s.Allow == r.Allow || s.left || winsInPolicy(r.Rule, s.Rule) {
				continue
			}
			if pairs++; pairs > maxPairs {
				return im.withoutAllows(rules, r.number)
			}
			if r.Pattern.Overlaps(s.Pattern) && r.meets(&s.Rule) {
				losers = append(losers, s)
				if n := s.lengthToLose(r.Allow); n > length {
					length, r.over = n, s
				}
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
		for _, s := range losers {
			if s.left = !winsInPolicy(r.Rule, s.read); s.left {
				im.f.note(s.number, "%q is left out, because a policy compares the lengths of paths differently. The line would also allow paths that %q of line %d disallows; "+
					"in the policy, add an allow entry for the paths that you mean", "Allow: "+s.read.text(), "Disallow: "+r.read.text(), r.number)
			} else {
				s.Rule, lost = s.read, append(lost, s)
			}
		}
	}
	for _, r := range lost {
		if !r.left && !slices.ContainsFunc(all, func(a *measured) bool {
			return a.Allow && !a.left && winsInPolicy(a.Rule, r.over.Rule) && a.Pattern.Covers(r.Pattern)
		}) {
			im.f.note(r.number, "in the policy, %q of line %d also disallows the paths that both lines match: there it is longer than this line's path, but not in robots.txt",
				r.over.read.text(), r.over.number)
		}
	}
	return kept(all)
}

// weakestFirst sorts rules so that each wins, as written, over those before it.
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

// kept returns the rules that are not left out. An Allow wins over an equal Disallow.
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

// longer returns the rule with n more "*". It is not ok if the pattern has no place for them.
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

// withoutAllows leaves out the Allow lines of a group that cannot be compared.
func (im *importer) withoutAllows(rules []Rule, line int) []Rule {
	im.f.note(line, "the Allow lines of this group are left out, because the group has too many lines to find overlaps with this line. "+
		"Write shorter groups, or write the policy by hand")
	return slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return r.Allow })
}
