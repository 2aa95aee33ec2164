// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"cmp"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
)

// winsInPolicy reports whether a wins over b in a policy (RFC 9309 section 2.2.2). A policy compares the lengths of
// patterns in normal form. In this form, a "*" at the start has a "/" before it, and no character is percent-encoded
// needlessly. Google's parser instead compares the lengths as written, which are in Size.
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

// meets reports whether some path matches both rules for parsers that compare octets as written.
func (r *Rule) meets(s *Rule) bool {
	return pathpattern.Compared(r.Pattern, r.Written, s.Pattern, s.Written)
}

// maxSteps limits the work for a group (see solve.Budget) to 30 milliseconds, because anyone may have written the file.
const maxSteps = 300_000

// maxPairs limits the number of comparisons between the rules of a group.
const maxPairs = 1 << 22

// lengthen changes rules so that the same rules win in the policy as in the file. In most files, it is enough to add "*"
// to some patterns. Some patterns, such as /a$, have no place for another "*". Then lengthen adds rules for the paths
// that several patterns match.
func (im *importer) lengthen(rules []Rule) []Rule {
	if !slices.ContainsFunc(rules, func(r Rule) bool { return !r.normal() }) {
		return rules
	}
	if longer := im.withStars(rules, false); longer != nil {
		return longer
	}
	notes := len(im.f.notes)
	if solved := im.solved(rules); solved != nil {
		return solved
	}
	im.f.notes = im.f.notes[:notes]
	if longer := im.withStars(rules, true); longer != nil {
		return longer
	}
	im.f.note(rules[0].number, "import and merge leave out the Allow lines of this group, because it has too many lines with overlapping paths. "+
		"Write shorter groups, or write the policy by hand")
	return slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return r.Allow })
}

// withStars adds "*" to patterns, which makes them longer, but does not change what they match:
//
//	Disallow: *.html        disallow: /*.html     (6 bytes as written, 7 in the policy)
//	Allow: /docs/      →    allow:    /docs/*
//
// It returns nil if there are too many rules to compare. If a pattern has no place for a "*", the result depends on
// inexact. If inexact is false, withStars returns nil. If inexact is true, it leaves out each Allow that would win over
// a Disallow with such a pattern, and lets an Allow with such a pattern lose.
func (im *importer) withStars(rules []Rule, inexact bool) []Rule {
	longer, pairs := slices.Clone(rules), 0
	left := map[*Rule]bool{}
	weakest := make([]*Rule, len(rules))
	for i := range longer {
		weakest[i] = &longer[i]
	}
	slices.SortStableFunc(weakest, func(a, b *Rule) int {
		switch {
		case a.Size != b.Size || a.Allow == b.Allow:
			return cmp.Compare(a.Size, b.Size)
		case a.Allow:
			return 1
		}
		return -1
	})
	for i, r := range weakest {
		length := r.Pattern.Len()
		var losers []*Rule
		for _, s := range weakest[:i] {
			if s.Allow == r.Allow || left[s] || winsInPolicy(*r, *s) {
				continue
			}
			if pairs++; pairs > maxPairs {
				return nil
			}
			if r.Pattern.Overlaps(s.Pattern) && r.meets(s) {
				length, losers = max(length, s.lengthToLose(r.Allow)), append(losers, s)
			}
		}
		switch {
		case r.lengthen(length - r.Pattern.Len()), slices.ContainsFunc(weakest, r.neededLessThan):
		case !inexact:
			return nil
		case r.Allow:
			im.noteLonger(r, losers[0])
		default:
			for _, s := range losers {
				left[s] = true
				im.noteLeftOut(s)
			}
		}
	}
	var kept []Rule
	for i := range longer {
		if !left[&longer[i]] {
			kept = append(kept, longer[i])
		}
	}
	return withoutTies(kept)
}

// noteLeftOut adds a note about an Allow that is left out, because in the policy it would win over a Disallow that wins
// in the file.
func (im *importer) noteLeftOut(allow *Rule) {
	im.f.note(allow.number, "import and merge leave out %q, because a policy and robots.txt measure the lengths of paths differently. In a policy, the line would also allow paths that this group disallows. "+
		"Add an allow entry to the policy for the paths that you mean", "Allow: "+allow.text())
}

// noteLonger adds a note about an Allow that wins over a Disallow in the file, but loses to it in the policy.
func (im *importer) noteLonger(allow, disallow *Rule) {
	im.f.note(allow.number, "in the policy, %q of line %d also disallows the paths that both lines match. A policy and robots.txt measure lengths differently: only in the policy, the path of *line %[2]d is the longer one",
		"Disallow: "+disallow.text(), disallow.number)
}

// neededLessThan reports whether another rule makes r unnecessary, because it has the same effect for all paths of r.
func (r *Rule) neededLessThan(other *Rule) bool {
	return other.Allow == r.Allow && other.Size >= r.Size && other.Pattern != r.Pattern && other.Pattern.Covers(r.Pattern) && other.meets(r)
}

// lengthen adds n "*" to the pattern of a rule. It returns false if the pattern has no place for a "*", or would become
// too long.
func (r *Rule) lengthen(n int) bool {
	longer := r.Pattern.Longer(n)
	if longer.Len() != r.Pattern.Len()+n || longer.Len() > maxPath {
		return false
	}
	r.Pattern = longer
	if r.Written != "" {
		r.Written = pathpattern.Raw(r.Written).Longer(n).String()
	}
	return true
}

// solved returns rules for a policy that gives the same answers as the file, although the longest pattern in normal form
// decides in a policy. It adds rules for the paths that several patterns match. An Allow that would allow paths that the
// file disallows is left out. The result is nil if too many rules would be necessary.
func (im *importer) solved(rules []Rule) []Rule {
	patterns, decides := deciding(rules)
	lengths := map[pathpattern.Pattern]int{} // in the policy
	length := func(c *solve.Cell[bool]) int {
		if lengths[c.Pattern] == 0 {
			lengths[c.Pattern] = normal(c.Pattern).Len()
		}
		return lengths[c.Pattern]
	}
	tooMany := false
	cells, ok := (&solve.Form[bool]{
		Budget: solve.BudgetOf(maxSteps),
		Value:  func(p pathpattern.Pattern) (disallowed bool) { return !decides(p).Allow },
		Same:   func(a, b bool) bool { return a == b },
		Beats:  func(x, y *solve.Cell[bool]) bool { return length(x) > length(y) },
		Keep:   func(c *solve.Cell[bool]) bool { return c.Order < len(patterns) },
		Unsaid: func(c, both *solve.Cell[bool]) (drop bool) {
			r := decides(c.Pattern)
			switch {
			case r.Allow:
				im.noteLeftOut(r)
			case both != nil:
				im.noteLonger(decides(both.Pattern), r)
			default:
				tooMany = true
			}
			return r.Allow
		},
	}).Cells(patterns)
	if !ok || tooMany {
		return nil
	}
	return im.ofCells(cells, len(rules), decides)
}

// deciding returns the patterns of rules as written, and a function that returns the rule that decides about all paths of
// a pattern in the file, or nil.
func deciding(rules []Rule) (patterns []pathpattern.Pattern, decides func(pathpattern.Pattern) *Rule) {
	entries := make([]pathpattern.Entry[*Rule], len(rules))
	patterns = make([]pathpattern.Pattern, len(rules))
	for i := range rules {
		r := &rules[i]
		patterns[i] = pathpattern.Raw(r.text())
		entries[i] = pathpattern.Entry[*Rule]{Pattern: patterns[i], Value: r}
	}
	index := pathpattern.NewIndex(entries, winner)
	return patterns, func(p pathpattern.Pattern) (best *Rule) {
		index.Covering(p, func(r *Rule) { best = winner(best, r) })
		return best
	}
}

// ofCells returns a rule for each cell. If the order of a cell is less than the argument written, the file has a line
// with the cell's pattern. ofCells returns nil if a path is too long for a policy file.
func (im *importer) ofCells(cells []solve.Cell[bool], written int, decides func(pathpattern.Pattern) *Rule) (all []Rule) {
	closed := map[pathpattern.Pattern]bool{}
	for _, c := range cells {
		closed[normal(c.Pattern)] = closed[normal(c.Pattern)] || c.Value
	}
	for _, c := range cells {
		r := *decides(c.Pattern)
		if r.Pattern = normal(c.Pattern); r.Allow && closed[r.Pattern] {
			im.f.note(r.number, respelledNote, "Allow: "+c.Pattern.String())
			continue
		}
		if r.Pattern.Len() > maxPath {
			return nil
		}
		if c.Order >= written && !im.below {
			r.number = 0 // the comments of the line are already at another rule
		}
		r.Written = pathpattern.Written(r.Pattern, c.Pattern.String())
		all = append(all, r)
	}
	return all
}

// withoutTies removes each Disallow with the pattern of an Allow, because the Allow wins.
func withoutTies(rules []Rule) []Rule {
	allowed := map[pathpattern.Pattern]bool{}
	for _, r := range rules {
		allowed[r.Pattern] = allowed[r.Pattern] || r.Allow
	}
	return slices.DeleteFunc(rules, func(r Rule) bool { return !r.Allow && allowed[r.Pattern] })
}

// normal returns the normal form of a pattern as written.
func normal(p pathpattern.Pattern) pathpattern.Pattern { return pathpattern.MustParse(p.String()) }
