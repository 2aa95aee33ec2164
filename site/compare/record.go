// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
)

type record struct {
	effect     Effect
	usages     []string
	old, now   string
	paths      []pathpattern.Pattern // no pattern covers another one
	except     []pathpattern.Pattern // parts of paths with another change or without a change
	already    []pathpattern.Pattern // parts of paths where the old policy had the same result
	identities uint8                 // a set of policy.Identity, as bits
	purpose    string
	subjects   []*subject
	hosts      []string
}

const everyIdentity = 1<<policy.Unknown | 1<<policy.Impostor | 1<<policy.Verified

// what returns the same text for records that differ only in crawlers, identities, hosts, usages or purpose.
func (r *record) what() string {
	return fmt.Sprint(r.effect, "\n", r.old, "\n", r.now, "\n", r.paths, "\n", r.except, "\n", r.already)
}

// key returns the same text for records that differ only in crawlers, identities, hosts or purpose.
func (r *record) key() string { return fmt.Sprint(r.usages, "\n", r.what()) }

// subject compares the decisions of both policies for a subject.
func (c *comparison) subject(s *subject, host string, id policy.Identity, purpose string) (all []record) {
	old, now := s.old, s.now
	if purpose != "" {
		old, now = c.old.WithPurpose(&old, purpose), c.now.WithPurpose(&now, purpose)
	}
	for _, u := range policy.Usages() {
		if u == policy.Other {
			continue // the usages that "other" includes are compared separately
		}
		q := old.Query(host, u, purpose)
		q.Identity, q.Now = id, c.at
		a, b := newSide(c.old, &old, q), newSide(c.now, &now, q)
		ka, kb := a.key(), b.key()
		if ka == kb {
			continue
		}
		blocks := u == policy.Crawl && len(s.sent) > 0
		key := fmt.Sprint(u, blocks, "\n", ka, "\n\n", kb)
		found, ok := c.done[key]
		if !ok {
			found = c.usage(a, b, blocks)
			c.done[key] = found
		}
		all = append(all, found...)
	}
	return all
}

func (c *comparison) usage(a, b *side, blocks bool) (all []record) {
	cells := c.cells(a, b)
	add := func(differ func(cell) bool, says func(state) string, effect func(*record, cell) Effect) {
		all = append(all, c.records(a.q.Usage.String(), cells, differ, says, effect)...)
	}
	add(func(x cell) bool { return x.Value.old.closed() != x.Value.now.closed() }, func(s state) string {
		if s.closed() {
			return disallowed
		}
		return ""
	}, func(r *record, first cell) Effect {
		// One of the two policies disallows all paths of the record. The other one may allow some of the paths, and not
		// state anything about others. For that policy, the record shows only the state of the first cell.
		if r.now == disallowed {
			r.old = first.Value.old.String()
			return Loss
		}
		r.now = first.Value.now.String()
		return Gain
	})
	add(func(x cell) bool {
		return x.Value.old.verdict != x.Value.now.verdict && !x.Value.old.closed() && !x.Value.now.closed()
	}, state.String, func(*record, cell) Effect { return Stated })
	add(func(x cell) bool {
		return x.Value.old.verdict == x.Value.now.verdict && x.Value.old.limits != x.Value.now.limits
	}, state.String, func(r *record, _ cell) Effect {
		if strings.HasPrefix(r.old, r.now) { // the change only removes limits
			return Gain
		}
		return Loss
	})
	if blocks { // blocking may change because of the decision, or only because of the mode
		says := func(s state) string { return max(s.mode, policy.ModeOff).String() }
		add(func(x cell) bool { return says(x.Value.old) != says(x.Value.now) }, says, func(*record, cell) Effect { return Edge })
	}
	return all
}

const disallowed = "disallowed"

// records returns a record for each set of cells with the same change. Three parameters are functions: differ selects
// cells, says returns a state in words, and effect returns the effect of a change. The result is nil if the budget is
// used up.
func (c *comparison) records(usage string, cells []cell, differ func(cell) bool, says func(state) string, effect func(*record, cell) Effect) (found []record) {
	for _, x := range cells {
		if !differ(x) {
			continue
		}
		old, now := says(x.Value.old), says(x.Value.now)
		i := slices.IndexFunc(found, func(o record) bool { return o.old == old && o.now == now })
		if i < 0 {
			i = len(found)
			found = append(found, record{usages: []string{usage}, old: old, now: now})
		}
		found[i].paths = append(found[i].paths, x.Pattern)
	}
	at := map[pathpattern.Pattern]states{}
	for _, x := range cells {
		at[x.Pattern] = x.Value
	}
	for i := 0; i < len(found); i++ {
		o := &found[i]
		paths := o.paths
		if !c.budget.Spend(coverCost(paths, len(paths)) + coverCost(paths, len(cells))) {
			return nil
		}
		o.paths = widest(slices.Clone(paths))
		inside := setOf(o.paths)
		var first cell
		for _, x := range cells {
			if x.Pattern == o.paths[0] {
				first = x
			}
			if len(inside.Covering(x.Pattern)) == 0 {
				continue
			}
			switch old, now := says(x.Value.old), says(x.Value.now); {
			case old == o.now && now == o.now:
				o.already = append(o.already, x.Pattern)
			case old != o.old || now != o.now:
				o.except = append(o.except, x.Pattern)
			}
		}
		inner := record{usages: o.usages, old: o.old, now: o.now}
		o.effect = effect(o, first)
		if !c.budget.Spend(coverCost(o.except, len(o.except)) + coverCost(o.already, len(o.already))) {
			return nil
		}
		// o.paths has only the widest patterns. A narrower pattern needs its own record, inner, if it overlaps an
		// exception of o, and if the paths that match both of them change. Whether these paths change is known from the
		// cell for their overlap.
		all := slices.Concat(widest(slices.Clone(o.except)), widest(slices.Clone(o.already)))
		outside := setOf(all)
		inner.paths = slices.DeleteFunc(paths, func(p pathpattern.Pattern) bool {
			return slices.Contains(o.paths, p) || !slices.ContainsFunc(outside.Overlapping(p), func(i int) bool {
				if p.Covers(all[i]) {
					return false
				}
				meet, ok := c.budget.Cross(p, all[i])
				return !ok || slices.ContainsFunc(meet, func(m pathpattern.Pattern) bool {
					x, known := at[m]
					return !known || says(x.old) == inner.old && says(x.now) == inner.now
				})
			})
		})
		if len(inner.paths) > 0 {
			found = append(found, inner)
		}
	}
	var apart []record
	for i := range found {
		apart = append(apart, c.apart(&found[i])...)
	}
	if c.budget.Exceeded() {
		return nil
	}
	return apart
}

// apart splits a record if necessary for its text, as in "/a/ and /*.pdf, except /a/b/". In this example, /a/b/ is an
// exception only from /a/. But people would think that it is also an exception from /*.pdf, although /a/b/x.pdf
// changes. So apart returns a record with /a/ and its exception, and another record with /*.pdf.
func (c *comparison) apart(r *record) (parts []record) {
	all := slices.Concat(r.except, r.already)
	set := setOf(all)
	var covered, crossed []map[int]bool // the exceptions of each part, as indexes in all
	meet := func(ids []int, of map[int]bool) bool {
		return slices.ContainsFunc(ids, func(i int) bool { return of[i] })
	}
	for _, p := range r.paths {
		var covers, crosses []int
		for _, i := range set.Overlapping(p) {
			if p.Covers(all[i]) {
				covers = append(covers, i)
			} else if i < len(r.except) {
				crosses = append(crosses, i)
			}
		}
		at := 0
		for at < len(parts) && (meet(covers, crossed[at]) || meet(crosses, covered[at])) {
			at++
		}
		if at == len(parts) {
			part := *r
			part.paths, part.except, part.already = nil, nil, nil
			parts, covered, crossed = append(parts, part), append(covered, map[int]bool{}), append(crossed, map[int]bool{})
		}
		parts[at].paths = append(parts[at].paths, p)
		for _, i := range covers {
			covered[at][i] = true
		}
		for _, i := range crosses {
			crossed[at][i] = true
		}
	}
	for at := range parts {
		for i, e := range all {
			switch {
			case !covered[at][i]:
			case i < len(r.except):
				parts[at].except = append(parts[at].except, e)
			default:
				parts[at].already = append(parts[at].already, e)
			}
		}
		if !c.budget.Spend(coverCost(parts[at].except, len(parts[at].except)) + coverCost(parts[at].already, len(parts[at].already))) {
			return nil
		}
		parts[at].except, parts[at].already = widest(parts[at].except), widest(parts[at].already)
	}
	return parts
}

// coverCost returns the number of budget steps that a search takes. The search finds, for each of n patterns, the
// patterns in list that cover it. It tries only patterns with wildcards one by one.
func coverCost(list []pathpattern.Pattern, n int) int {
	wild := 0
	for _, p := range list {
		if p.Wild() {
			wild++
		}
	}
	return n * (4 + wild)
}

// widest sorts patterns and drops each pattern that another one covers.
func widest(all []pathpattern.Pattern) []pathpattern.Pattern {
	slices.SortFunc(all, func(a, b pathpattern.Pattern) int {
		return cmp.Or(len(a.String())-len(b.String()), strings.Compare(a.String(), b.String()))
	})
	set := setOf(all)
	var left []pathpattern.Pattern
	for i, p := range all {
		narrower := slices.ContainsFunc(set.Covering(p), func(j int) bool {
			return all[j] != p && (j < i || !p.Covers(all[j])) // if two patterns cover each other, the first is kept
		})
		if !narrower && (len(left) == 0 || left[len(left)-1] != p) {
			left = append(left, p)
		}
	}
	return left
}

// setOf returns the patterns in list as a set. The ID of each pattern is its index in list.
func setOf(list []pathpattern.Pattern) *solve.Set {
	var set solve.Set
	for i, p := range list {
		set.Add(p, i)
	}
	return &set
}
