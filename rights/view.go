// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
)

// View is a host's policy for channels that cannot distinguish crawlers. For each path and usage, the policy may have
// several decisions, which depend on the crawler, its purpose and its identity. A View has the strictest of them.
type View struct {
	clients  []*Client // one for each class, purpose and identity; the first is for crawlers that no rule names
	patterns []pathpattern.Pattern

	cells func() ([]solve.Cell[Preferences], bool)
}

// maxClients limits the number of clients with own rules about rights. If there are more clients, the View has only one
// decision about each usage for all paths. It disallows the usage if the policy disallows it for at least one of these
// clients on at least one path.
const maxClients = 200

// NewView returns the view of a host. The host may include a port.
func NewView(p *policy.Policy, host string) *View {
	v := &View{}
	v.cells = sync.OnceValues(v.tile)
	seen := map[string]bool{}
	classes := p.PublicClasses(host)
	for _, purpose := range append([]string{""}, p.Spec().Purposes()...) {
		for i := range classes {
			c := classes[i]
			if purpose != "" {
				c = p.WithPurpose(&c, purpose)
			}
			if (i > 0 || purpose != "") && !ownRights(p, &c, purpose) {
				continue
			}
			key := keyOf(p, &c, purpose)
			if seen[key] {
				continue
			}
			seen[key] = true
			for _, id := range p.Identities() {
				client := NewClient(p, &c, host, purpose)
				client.query.Identity = id
				v.clients = append(v.clients, client)
			}
		}
	}
	known := map[pathpattern.Pattern]bool{}
	for _, c := range v.clients {
		for _, u := range policyUsages {
			for _, s := range c.Statements(u) {
				for _, pattern := range s.Statement.Pattern.Rooted() {
					if !known[pattern] {
						known[pattern] = true
						v.patterns = append(v.patterns, pattern)
					}
				}
			}
		}
	}
	return v
}

// ownRights reports whether a class has rules about rights that do not apply to all crawlers.
func ownRights(p *policy.Policy, c *policy.Class, purpose string) bool {
	for tier := range policy.TierEveryone + 1 {
		for _, r := range p.Rules(c, tier) {
			if (tier < policy.TierEveryone || purpose != "" && len(r.UsagePurposes) > 0) && slices.ContainsFunc(r.Statements, func(s policy.Statement) bool {
				return s.Usage == policy.Other || slices.Contains(policyUsages, s.Usage)
			}) {
				return true
			}
		}
	}
	return false
}

// keyOf returns a key that is equal for classes with equal statements.
func keyOf(p *policy.Policy, c *policy.Class, purpose string) string {
	var key []byte
	for _, u := range append(slices.Clone(policyUsages), policy.Other) {
		for _, a := range p.Statements(c, u, purpose) {
			key = binary.AppendUvarint(key, uint64(a.Statement.Pos.Line))
			key = binary.AppendUvarint(key, uint64(a.Statement.Pos.Column))
			key = append(key, byte(a.Tier), byte(a.Statement.Usage))
			key = append(key, a.Statement.Pattern.String()...)
			key = append(append(append(key, 0), a.Audience.String()...), 0)
		}
		key = append(key, 1)
	}
	return string(key)
}

var policyUsages = func() []policy.Usage { u := policy.RightsUsages(); return u[:] }()

// Answer holds the strictest decision about each usage of policy.RightsUsages. For each of these decisions, Clients has
// the index of the client in View.clients that the decision is about. If several clients have equally strict decisions,
// it is the first of these clients.
type Answer struct {
	Decisions Preferences
	Clients   [3]int
}

// At returns the decisions about the paths that a pattern matches. It ignores statements of the policy that do not
// apply to all of these paths.
func (v *View) At(pattern pathpattern.Pattern) (all Answer) {
	all.Decisions = v.clients[0].Preferences(pattern)
	for i, c := range v.clients[1:] {
		for j, d := range c.Preferences(pattern) {
			if severity[d.Verdict] > severity[all.Decisions[j].Verdict] {
				all.Decisions[j], all.Clients[j] = d, i+1
			}
		}
	}
	return all
}

// alike reports whether two answers have the same verdicts for the same reasons.
func (a Answer) alike(b Answer) bool {
	for i := range a.Decisions {
		x, y := a.Decisions[i], b.Decisions[i]
		if x.Verdict != y.Verdict || x.Verdict != policy.Allowed && (x.Statement != y.Statement || a.Clients[i] != b.Clients[i]) {
			return false
		}
	}
	return true
}

// Statements lists the policy's statements about a usage, separately for each client of the view. usage is an index of
// policy.RightsUsages.
func (v *View) Statements(usage int) [][]policy.Applied {
	all := make([][]policy.Applied, len(v.clients))
	for i, c := range v.clients {
		all[i] = c.Statements(policyUsages[usage])
	}
	return all
}

// Stated reports whether the view has a decision about the usage u on at least one path.
func (v *View) Stated(u policy.Usage) bool {
	i := slices.Index(policyUsages, u)
	cells, _ := v.Cells()
	return slices.ContainsFunc(cells, func(c solve.Cell[Preferences]) bool { return c.Value[i].Verdict != policy.Unstated })
}

// StatesAny reports whether the view has a decision about any usage.
func (v *View) StatesAny() bool {
	return slices.ContainsFunc(policyUsages, v.Stated)
}

// Cells divides all paths into cells, such that the decisions are the same for all paths of a cell. The cells are for
// readers that use the longest matching pattern. If the patterns overlap in too many ways, exact is false. Then there
// is only one cell for all paths, which disallows each usage that the policy disallows on at least one path.
func (v *View) Cells() (cells []solve.Cell[Preferences], exact bool) {
	return v.cells()
}

func (v *View) tile() (cells []solve.Cell[Preferences], exact bool) {
	if len(v.patterns) == 0 {
		return nil, true
	}
	if len(v.clients) <= maxClients {
		form := solve.Form[Answer]{Value: v.At, Alike: Answer.alike, Same: func(a, b Answer) bool { return a.Decisions.Verdicts() == b.Decisions.Verdicts() }}
		if all, exact := form.Cells(v.patterns); exact {
			for _, c := range all {
				cells = append(cells, solve.Cell[Preferences]{Pattern: c.Pattern, Value: c.Value.Decisions, Order: c.Order})
			}
			return cells, true
		}
	}
	strict := v.strictest()
	if !strict.Verdicts().Stated() {
		return nil, false
	}
	return []solve.Cell[Preferences]{{Pattern: pathpattern.All, Value: strict}}, false
}

func (v *View) strictest() (all Preferences) {
	for _, pattern := range v.patterns {
		for i, d := range v.At(pattern).Decisions {
			if d.Verdict == policy.Disallowed && all[i].Verdict != policy.Disallowed {
				all[i] = d
			}
		}
	}
	return all
}

// Exceptions explains where the view is stricter than the policy, because the policy disallows a usage only for some
// clients. If the policy disallows the usage for everyone, but an allow entry exempts a client, Exceptions lists the
// allow entry. If the disallow entry is only for some clients, Exceptions lists the disallow entry. The decisions are
// sorted by their place in the policy file.
func (v *View) Exceptions() (all []policy.Decision) {
	seen := map[*policy.Statement]bool{}
	add := func(d policy.Decision) {
		if d.Statement != nil && !seen[d.Statement] {
			seen[d.Statement] = true
			all = append(all, d)
		}
	}
	for _, pattern := range v.patterns {
		strict, everyone := v.At(pattern).Decisions, v.clients[0].Preferences(pattern)
		for _, c := range v.clients {
			for i, d := range c.Preferences(pattern) {
				switch {
				case strict[i].Verdict != policy.Disallowed || d.Verdict == policy.Disallowed:
				case d.Verdict == policy.Allowed && everyone[i].Verdict == policy.Disallowed:
					add(d) // the statement exempts this client
				default:
					add(strict[i])
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b policy.Decision) int {
		return cmp.Or(cmp.Compare(a.Statement.Pos.Line, b.Statement.Pos.Line), cmp.Compare(a.Statement.Pos.Column, b.Statement.Pos.Column))
	})
	return all
}

// ForEveryone returns the decisions that the View of the query's host has about the query's path.
func ForEveryone(p *policy.Policy, q policy.Query) Preferences {
	var all Preferences
	first := true
	ids := p.Identities()
	for _, purpose := range append([]string{""}, p.Spec().Purposes()...) {
		q.Purposes = nil
		if purpose != "" {
			q.Purposes = []string{purpose}
		}
		for _, c := range p.ClassesOf(q) {
			q.Crawler = 0
			if len(c.Crawlers) > 0 {
				q.Crawler = c.Crawlers[0]
			}
			for _, q.Identity = range ids {
				one := Decide(p, q)
				if first {
					all, first = one, false
				}
				all = all.Stricter(one)
			}
		}
	}
	return all
}
