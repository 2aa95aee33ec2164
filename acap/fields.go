// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
)

// conditional is a statement that applies to all purposes, or only to some.
type conditional struct {
	policy.Applied
	condition string // the purposes of its sub-record in lower case, one on each line, or "" if there is none
}

// statements lists the statements about a usage for a class, with their conditions. A condition consists of the usage
// purposes of the statement's rule. If the rule is for a purpose that no crawler of the class has, the condition is
// this purpose.
func (w *writer) statements(c *policy.Class, u policy.Usage) (all []conditional) {
	has := func(a *policy.Applied) bool {
		return slices.ContainsFunc(all, func(b conditional) bool { return b.Statement == a.Statement && b.Audience == a.Audience })
	}
	for _, a := range w.p.Statements(c, u, "") {
		all = append(all, conditional{Applied: a})
	}
	for _, purpose := range w.purposes {
		for _, a := range w.p.Statements(c, u, purpose) {
			if !has(&a) {
				all = append(all, conditional{a, joinPurposes(a.Rule.UsagePurposes)})
			}
		}
		with := w.p.WithPurpose(c, purpose)
		for _, a := range w.p.Statements(&with, u, purpose) {
			if !has(&a) { // the rule is for a purpose that no crawler of the class has
				all = append(all, conditional{a, purpose})
			}
		}
	}
	return all
}

func joinPurposes(names []string) string {
	lower := strings.Split(strings.ToLower(strings.Join(names, "\n")), "\n")
	slices.Sort(lower)
	return strings.Join(slices.Compact(lower), "\n")
}

func (s conditional) same(t conditional) bool {
	return s.Statement == t.Statement && s.Audience == t.Audience && s.condition == t.condition
}

// claim is a permission or prohibition of one usage in a record.
type claim struct {
	pattern   pathpattern.Pattern
	folded    pathpattern.Pattern // the pattern in the form for comparisons
	allow     bool
	quals     string // the printed qualifiers of a permission
	opens     bool   // a statement that allows the usage has the pattern, or the policy allows the usage there
	condition string
	by        policy.Decision // the decision that the claim expresses
	added     bool            // added for a place where other claims give the wrong decision
	gone      bool
}

// appliesWith reports whether the claim c applies whenever d applies.
func (c *claim) appliesWith(d *claim) bool { return c.condition == "" || c.condition == d.condition }

// meets reports whether a crawler may apply both claims. Two purposes with wildcards may have names in common.
func (c *claim) meets(d *claim) bool {
	if c.condition == "" || d.condition == "" {
		return true
	}
	for p := range strings.SplitSeq(c.condition, "\n") {
		for q := range strings.SplitSeq(d.condition, "\n") {
			if policy.MatchPurpose(p, q) || policy.MatchPurpose(q, p) || strings.Contains(p, "*") && strings.Contains(q, "*") {
				return true
			}
		}
	}
	return false
}

// isFor reports whether readers with a purpose, or without one, apply the claim.
func (c *claim) isFor(purpose string) bool {
	s := SubRecord{Purposes: strings.Split(c.condition, "\n")}
	return c.condition == "" || s.isFor(purpose)
}

// fieldSolver finds the claims about one usage in a record. For readers that follow section 2.4.5 of ACAP, the claims
// must have the same meaning as the policy. According to this section, the claim with the narrowest scope decides. A
// usage is prohibited if no claim is the narrowest.
//
//	everyone:  disallow index /*/drafts/     ACAP-disallow-index: /*/drafts/
//	everyone:  allow index /news/         →  ACAP-allow-index: /news/
//	                                         ACAP-disallow-index: /news/drafts/   (which /news/ would win over)
//	                                         ACAP-disallow-index: /news/*/drafts/
type fieldSolver struct {
	*writer
	class      *policy.Class
	usage      policy.Usage
	statements []conditional
	conditions []string // the conditions of the statements, after ""
	claims     []*claim
	latest     map[spot]*claim       // the last claim about each spot
	places     []pathpattern.Pattern // the patterns of statements, and the patterns for paths where two claims cross
	seen       map[pathpattern.Pattern]bool
	folded     solve.Set // the folded patterns of claims
	wild       int       // the work of one lookup in the set, in steps of the budget
	room       int       // the number of claims that may still be added
}

// spot is a pattern for the readers with a condition.
type spot struct {
	pattern   pathpattern.Pattern
	condition string
}

func (w *writer) fields(c *policy.Class, u policy.Usage, everyone bool) (fields []field) {
	s := fieldSolver{
		writer: w, class: c, usage: u, statements: w.statements(c, u), conditions: []string{""}, wild: 1, room: maxAdded,
		latest: map[spot]*claim{}, seen: map[pathpattern.Pattern]bool{},
	}
	s.state(u == policy.Crawl && w.other && everyone)
	s.narrow()
	s.verify()
	if w.budget.Exceeded() {
		if len(s.statements) == 0 {
			return nil
		}
		w.problem(policy.NewProblem(policy.Error, "acap-cross", s.statements[0].Statement.Pos,
			"too many paths with * overlap here for ACAP records to express which one wins; write fewer of them, or write \"acap: off\" under publish"))
		return nil
	}
	for _, c := range s.claims {
		if !c.gone {
			fields = append(fields, field{claim: *c, usage: u})
		}
	}
	for i := range s.statements {
		w.checkQualifiers(c, &s.statements[i], u)
	}
	return fields
}

// state adds a claim for each statement that decides about the paths of its pattern. If crawl is true, it also
// permits crawling explicitly. In ACAP, "other" includes all usages that are not explicitly permitted (section 2.5.6),
// but in a policy, "other" never includes "crawl".
//
// Some readers treat a permission of Present as a permission of each presentation (section 2.5.5). So if the policy
// prohibits a presentation where a statement allows Present, state adds the prohibition there, too:
//
//	allow present /photos/            ACAP-allow-present: /photos/
//	disallow present-oldcopy /   →    ACAP-disallow-present-oldcopy: /
//	                                  ACAP-disallow-present-oldcopy: /photos/
func (s *fieldSolver) state(crawl bool) {
	for i := range s.statements {
		st := &s.statements[i]
		if !slices.Contains(s.conditions, st.condition) {
			s.conditions = append(s.conditions, st.condition)
		}
		for _, p := range st.Statement.Pattern.Rooted() {
			if p = p.Plain(); Fold(p).Wild() {
				s.wild++
			}
			s.notice(p)
			c := s.claim(p, st.condition)
			// A statement that does not decide there can still decide where its pattern crosses others.
			c.gone = c.by.Statement != st.Statement && (!st.Statement.Allow || st.Direct || c.by.Verdict != policy.Disallowed)
			c.opens = c.opens || st.Statement.Allow
			s.add(c)
		}
	}
	if c := (&claim{pattern: pathpattern.All, folded: pathpattern.All, allow: true, opens: true}); crawl {
		s.add(c)
	}
}

func (s *fieldSolver) notice(p pathpattern.Pattern) {
	if !s.seen[p] {
		s.seen[p] = true
		s.places = append(s.places, p)
	}
}

// claim returns a claim with the policy's decision about a place. Where ACAP cannot express a permission, the claim is
// a prohibition.
func (s *fieldSolver) claim(p pathpattern.Pattern, condition string) *claim {
	c := &claim{pattern: p, folded: Fold(p), condition: condition}
	var inexpressible bool
	c.by, c.quals, inexpressible = s.decide(p, condition)
	c.opens = c.by.Verdict == policy.Allowed
	if c.allow = c.opens && !inexpressible; !c.allow {
		c.quals = ""
	}
	return c
}

// add adds a claim, unless there is one about the same place.
func (s *fieldSolver) add(c *claim) {
	at := spot{c.pattern, c.condition}
	if s.isClaimed(at) {
		return
	}
	s.latest[at] = c
	s.claims = append(s.claims, c)
	s.folded.Add(c.folded, len(s.claims)-1)
	for _, i := range s.folded.Overlapping(c.folded) {
		s.meet(c, s.claims[i])
	}
}

func (s *fieldSolver) isClaimed(at spot) bool {
	c := s.latest[at]
	return c != nil && !c.gone
}

var ever = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// decide returns the policy's decision about paths that match a pattern but no narrower one, and the printed qualifiers
// of that decision. ACAP cannot express a permission in these cases:
//   - Two of its qualifiers differ, and neither is stricter.
//   - It has no date, but depends on a permission with a date.
//   - Readers are not expected to understand its qualifiers.
func (s *fieldSolver) decide(at pathpattern.Pattern, condition string) (d policy.Decision, quals string, inexpressible bool) {
	s.budget.Spend(s.wild)
	q := s.class.Query(s.host, s.usage, "")
	if condition != "" {
		q.Purposes = strings.Split(condition, "\n")
	}
	if d = s.p.DecideAt(q, at); d.Verdict != policy.Allowed {
		return d, "", false
	}
	quals, ok := qualifiersOf(d.Qualifiers(), s.usage)
	if ok && s.unready(quals) {
		s.warnUnready(d.Qualifiers())
		return d, quals, true
	}
	ends := strings.Contains(quals, "time-limit=until-2") || strings.Contains(quals, "time-limit=until-1")
	q.Now = ever
	return d, quals, !ok || !ends && s.p.DecideAt(q, at).Verdict == policy.Disallowed
}

// unready reports whether a permission has qualifiers that the specification calls not ready for use (sections
// 2.5.5.2.2 and 2.5.5.2.5).
func (s *fieldSolver) unready(quals string) bool {
	if s.usage != policy.Present && !s.usage.IsPresentation() || s.p.Spec().Publish.ActionRequests == policy.On {
		return false
	}
	return slices.ContainsFunc(strings.Fields(quals), func(text string) bool { return strings.HasPrefix(text, "must-") })
}

// warnUnready warns about statements with such qualifiers. The records prohibit what they allow, because readers that
// ignored the qualifiers would use too much.
func (s *fieldSolver) warnUnready(limits policy.Limits) {
	for i := range s.statements {
		if st := s.statements[i].Statement; st.Qualifiers != nil && slices.Contains(limits, st.Qualifiers) {
			s.warn(st, "acap-not-ready", fmt.Sprintf("ACAP 1.0 calls the must-… qualifiers of %s not ready, so its records disallow %q instead. Write \"action-requests: on\" under publish if crawlers that you know read them",
				st.Usage, st.Pattern))
		}
	}
}

// field is a claim with its usage.
type field struct {
	claim
	usage policy.Usage
}
