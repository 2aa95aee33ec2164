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

// statements lists the statements that reach the crawlers of the class c about the usage u. Each has a condition: the
// usage purposes of its rule. The list also contains the statements of rules for "purpose:NAME", even if NAME is not a
// purpose of any crawler in c. A crawler of c may still have this purpose, so the condition of such a statement is
// NAME.
func (w *writer) statements(c *policy.Class, u policy.Usage) (all []conditional) {
	type key struct {
		statement *policy.Statement
		audience  policy.Audience
	}
	listed := map[key]bool{}
	add := func(a policy.Applied, condition string) {
		if k := (key{a.Statement, a.Audience}); !listed[k] {
			listed[k] = true
			all = append(all, conditional{a, condition})
		}
	}
	for _, a := range w.p.AllStatements(c, u) {
		add(a, joinPurposes(a.Rule.UsagePurposes))
	}
	for _, purpose := range w.audiences {
		with := w.p.WithPurpose(c, purpose)
		for _, a := range w.p.Statements(&with, u, purpose) {
			add(a, purpose) // the rule is for a purpose that no crawler of the class has
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
	folded    pathpattern.Pattern // the pattern as Fold returns it
	allow     bool
	quals     string // the printed qualifiers of a permission
	condition string
	by        policy.Decision // the decision that the claim expresses
	open      bool            // true for a prohibition if the policy may permit the usage for some of its paths
	added     bool            // added for a place where other claims give the wrong decision
}

// isFor reports whether crawlers with the purpose apply the claim. If purpose is "", it reports this for crawlers
// without a purpose.
func (c *claim) isFor(purpose string) bool { return appliesTo(c.condition, purpose) }

// appliesTo reports whether crawlers with the purpose apply the parts of a record that have the condition. If purpose
// is "", it reports this for crawlers without a purpose.
func appliesTo(condition, purpose string) bool {
	if condition == "" || purpose == "" {
		return condition == ""
	}
	for pattern := range strings.SplitSeq(condition, "\n") {
		if policy.MatchPurpose(pattern, purpose) {
			return true
		}
	}
	return false
}

// fieldSolver computes which claims about one usage a record must contain. For readers that follow section 2.4.5 of
// ACAP, the claims must have the same meaning as the policy. According to this section, the claim with the narrowest
// scope decides. If claims match, but none of them is the narrowest, the usage is prohibited.
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
	stated     []stated
	statedAt   solve.Set           // the folded patterns of stated, by index
	qualified  bool                // at least one statement has qualifiers
	purposes   []string            // "", followed by the purposes of the conditions
	matching   map[string][]string // for each condition, the purposes that it applies to
	claims     []*claim
	claimsAt   solve.Set // the folded patterns of claims, by index
	places     []*place
	placesAt   solve.Set // the folded patterns of places, by index
	known      map[pathpattern.Pattern]*place
	crossed    map[[2]pathpattern.Pattern]bool // the results of cross, by pair of patterns
	losses     map[loss][]pathpattern.Pattern  // the reported places
	notReady   map[*policy.Qualifiers]bool     // qualifiers that some place needs, but that are not ready for use
	wild       int                             // the work of one lookup in a set, in steps of the budget
	room       int                             // the number of claims that may still be added
}

// stated is a pattern of a statement.
type stated struct {
	*conditional
	pattern, folded pathpattern.Pattern
}

func (w *writer) fields(c *policy.Class, u policy.Usage, everyone bool) (fields []field) {
	s := fieldSolver{
		writer: w, class: c, usage: u, statements: w.statements(c, u), purposes: []string{""}, matching: map[string][]string{},
		wild: 1, room: maxAdded,
		known: map[pathpattern.Pattern]*place{}, crossed: map[[2]pathpattern.Pattern]bool{},
		losses: map[loss][]pathpattern.Pattern{}, notReady: map[*policy.Qualifiers]bool{},
	}
	s.state(u == policy.Crawl && w.other && everyone)
	possible := s.crossPurposes()
	if possible {
		s.correct()
	}
	if !possible || w.budget.Exceeded() {
		if len(s.statements) == 0 {
			return nil
		}
		w.problem(policy.NewProblem(policy.Error, "acap-cross", s.statements[0].Statement.Pos,
			"ACAP records cannot express which entry applies, because too many entries with * in the path or with usage-purposes overlap here. Write fewer of them, or write \"acap: off\" under publish"))
		return nil
	}
	for _, c := range s.claims {
		fields = append(fields, field{claim: *c, usage: u})
	}
	for i := range s.statements {
		w.checkQualifiers(c, &s.statements[i], u)
	}
	return fields
}

// state adds the first claims: one for each pattern of a statement, unless another statement overrides this one there.
// If crawl is true, it also permits crawling of all paths. This is necessary because in ACAP, "other" includes all
// usages that are not explicitly permitted (section 2.5.6), but in a policy, "other" never includes "crawl".
//
// Some readers treat a permission of Present as a permission of each presentation (section 2.5.5). So if the policy
// prohibits a presentation on the paths of a statement that allows Present, state adds the prohibition for these paths,
// too:
//
//	allow present /photos/            ACAP-allow-present: /photos/
//	disallow present-oldcopy /   →    ACAP-disallow-present-oldcopy: /
//	                                  ACAP-disallow-present-oldcopy: /photos/
func (s *fieldSolver) state(crawl bool) {
	seen := map[string]bool{"": true}
	for i := range s.statements {
		st := &s.statements[i]
		s.qualified = s.qualified || st.Statement.Qualifiers != nil
		for purpose := range strings.SplitSeq(st.condition, "\n") {
			if !seen[purpose] {
				seen[purpose] = true
				s.purposes = append(s.purposes, purpose)
			}
		}
		for _, p := range st.Statement.Pattern.Rooted() {
			x := stated{st, p.Plain(), Fold(p.Plain())}
			if x.folded.Wild() {
				s.wild++
			}
			s.statedAt.Add(x.folded, len(s.stated))
			s.stated = append(s.stated, x)
			s.placeOf(x.pattern)
		}
	}
	for i := range s.stated {
		if s.budget.Exceeded() {
			return
		}
		x := &s.stated[i]
		by := s.decide(x.pattern, x.condition)
		if by.Statement == x.Statement || x.Statement.Allow && !x.Direct && by.Verdict == policy.Disallowed {
			s.add(by.claim(x.pattern, x.condition))
		}
	}
	if crawl {
		s.add(&claim{pattern: pathpattern.All, folded: pathpattern.All, allow: true})
	}
}

// crossPurposes adds to s.purposes the names that two patterns of purposes match. For example, it adds "n*s" for the
// names that both "n*" and "*s" match. It returns false if there are too many.
func (s *fieldSolver) crossPurposes() bool {
	pattern := func(purpose string) pathpattern.Pattern {
		return pathpattern.Raw(strings.TrimSuffix(purpose, "$") + "$")
	}
	given := s.purposes
	for i := 0; i < len(s.purposes); i++ {
		q := s.purposes[i]
		if !strings.Contains(q, "*") {
			continue
		}
		if !s.budget.Spend(len(given)) {
			return false
		}
		for _, p := range given {
			if !strings.Contains(p, "*") || policy.MatchPurpose(p, q) {
				continue
			}
			meet, ok := s.budget.Cross(pattern(p), pattern(q))
			if !ok || len(s.purposes)+len(meet) > len(given)+maxAdded {
				return false
			}
			for _, m := range meet {
				name, anchored := strings.CutSuffix(m.String(), "$")
				if name += yesNo(anchored, "", "*"); !slices.Contains(s.purposes, name) {
					s.purposes = append(s.purposes, name)
				}
			}
		}
	}
	return true
}

// add adds a claim, unless the place of its pattern already has a claim with the same condition.
func (s *fieldSolver) add(c *claim) {
	p := s.placeOf(c.pattern)
	if p.claim(c.condition) != nil {
		return
	}
	by := c.by.Applied()
	c.open = c.open || !c.allow && slices.ContainsFunc(s.overlapping(&s.statedAt, c.folded), func(i int) bool {
		x := &s.stated[i]
		return x.Statement.Allow && (by.Statement.Allow || s.p.Overrides(&x.Applied, &by))
	})
	p.claims = append(p.claims, c)
	s.claimsAt.Add(c.folded, len(s.claims))
	s.claims = append(s.claims, c)
}

// answer is the policy's decision about a place.
type answer struct {
	policy.Decision
	quals string // the printed qualifiers of a permission
	said  bool   // ACAP can express the decision; otherwise the records prohibit the usage

	unknown bool // the place overlaps too many patterns, so the decisions about its parts were not compared
}

func (a *answer) permits() bool { return a.Verdict == policy.Allowed && a.said }

// claim returns a claim that expresses the answer.
func (a *answer) claim(p pathpattern.Pattern, condition string) *claim {
	c := &claim{pattern: p, folded: Fold(p), condition: condition, by: a.Decision, allow: a.permits()}
	if c.allow {
		c.quals = a.quals
	}
	return c
}

// decide returns the policy's decision about the paths that match the pattern at, but no narrower pattern. condition is
// the purposes of the crawlers, one on each line, or "". ACAP cannot express a permission in these cases:
//   - Two of its qualifiers differ, and neither is stricter.
//   - A statement with a time limit ends on a date, and the decision is different afterwards. But no qualifier of the
//     permission contains this date.
//   - The specification calls its qualifiers not ready for use (see unready).
func (s *fieldSolver) decide(at pathpattern.Pattern, condition string) (a answer) {
	s.budget.Spend(s.wild + len(s.purposes)/4) // the decision checks the purposes of all rules
	q := s.class.Query(s.host, s.usage, "")
	if condition != "" {
		q.Purposes = strings.Split(condition, "\n")
	}
	a = answer{Decision: s.p.DecideAt(q, at), said: true}
	if a.Verdict != policy.Allowed {
		return a
	}
	a.quals, a.said = qualifiersOf(a.Qualifiers(), s.usage)
	a.said = a.said && !s.unready(a.quals)
	for d := a.Decision; a.said && !d.Until.IsZero() && !endsBefore(a.quals, d.Until); {
		s.budget.Spend(s.wild)
		q.Now = d.Until
		d = s.p.DecideAt(q, at)
		quals, ok := qualifiersOf(d.Qualifiers(), s.usage)
		a.said = d.Verdict == policy.Allowed && ok && quals == a.quals
	}
	return a
}

// endsBefore reports whether printed qualifiers limit a permission to a time before t.
func endsBefore(quals string, t time.Time) bool {
	for text := range strings.FieldsSeq(quals) {
		if day, ok := strings.CutPrefix(text, string(policy.QualifierTimeLimit)+"=until-"); ok {
			last, err := time.Parse(time.DateOnly, day)
			return err == nil && !t.Before(last.AddDate(0, 0, 1))
		}
	}
	return false
}

// unready reports whether a permission has qualifiers that the specification calls not ready for use (sections
// 2.5.5.2.2 and 2.5.5.2.5).
func (s *fieldSolver) unready(quals string) bool {
	if s.usage != policy.Present && !s.usage.IsPresentation() || s.p.Spec().Publish.ActionRequests == policy.On {
		return false
	}
	return slices.ContainsFunc(strings.Fields(quals), func(text string) bool { return strings.HasPrefix(text, "must-") })
}

// warnUnready warns about the statements whose qualifiers are not ready for use (see unready). For such a statement,
// the records contain a prohibition, although the statement allows a usage. If they contained a permission, a crawler
// that ignores the qualifiers would use more than the policy allows.
func (s *fieldSolver) warnUnready() {
	for i := range s.statements {
		if st := s.statements[i].Statement; s.notReady[st.Qualifiers] {
			s.warn(st, "acap-not-ready", fmt.Sprintf("according to ACAP 1.0, the must-… qualifiers of %s are not ready for use, so the ACAP records disallow %q instead. Write \"action-requests: on\" under publish if you know crawlers that read these qualifiers",
				st.Usage, st.Pattern))
		}
	}
}

// field is a claim with its usage.
type field struct {
	claim
	usage policy.Usage
}
