// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve/acap"
)

// Limits on the fields that a usage of a record gets for where patterns cross:
// of two patterns, and of all.
const (
	maxMeeting = 8
	maxAdded   = 100
)

// maxRecordWork bounds what is looked at for all records of a host together: pairs of
// patterns of which one has wildcards, and, at workOfConflict, those that cross and say
// different things and the places where several do.
const (
	maxRecordWork  = 1 << 24
	workOfConflict = 1 << 6
)

// claim is a permission or prohibition of one usage in an ACAP record.
type claim struct {
	pattern   pathpattern.Pattern
	folded    pathpattern.Pattern // as ACAP compares it
	allow     bool
	quals     string
	condition string // the purposes of its sub-record, "" for none
	rank      int    // of the policy: a lower one wins
	ref       policy.Ref
	added     bool // for where two patterns cross
}

func (c *claim) says(d *claim) bool { return c.allow == d.allow && c.quals == d.quals }

// speaksWith reports whether c speaks whenever d does.
func (c *claim) speaksWith(d *claim) bool { return c.condition == "" || c.condition == d.condition }

// scoping makes the claims of one usage in a record mean by ACAP's rules, in
// which the narrowest scope decides (section 2.4.5), what they mean by rank.
type scoping struct {
	claims []claim
	tell   func(code string, c *claim, why string)
	left   *int // of maxRecordWork

	// unscoped are permissions with qualifiers beside a weaker one without, of which
	// none has the narrower scope.
	unscoped []conflict
}

// scope returns the claims for verdicts, of which the first is the strongest. What it
// returns is of no use once no work is left.
func scope(vs []verdict, u policy.Usage, left *int, tell func(code string, c *claim, why string)) []claim {
	s := scoping{tell: tell, left: left}
	for i := range vs {
		v := &vs[i]
		s.claims = append(s.claims, claim{
			pattern: v.pattern, folded: acap.Fold(v.pattern), allow: v.allow, condition: v.condition, rank: i, ref: v.ref,
			quals: qualifiersOf(v.ref.Statement, u),
		})
	}
	s.dropCovered()
	if !s.contradicts() {
		return s.claims
	}
	for _, step := range []func(){s.narrow, s.settle, s.guard, s.unite} {
		if step(); *s.left < 0 {
			return nil
		}
	}
	return s.claims
}

// contradicts reports whether two claims say different things.
func (s *scoping) contradicts() bool {
	return slices.ContainsFunc(s.claims, func(c claim) bool { return !c.says(&s.claims[0]) })
}

// spend takes so much of the work that is left, and reports whether there was as much.
func (s *scoping) spend(work int) bool {
	*s.left -= work
	return *s.left >= 0
}

func qualifiers(s *policy.Statement) string { return strings.Join(s.Qualifiers.Strings(), " ") }

// qualifiersOf are the qualifiers of a statement that a usage can take. What
// qualifies present and is spelled out for what is derived from it loses what ACAP
// 1.0 section 2.5 does not define there, or no reader would take it for a
// permission at all.
func qualifiersOf(s *policy.Statement, u policy.Usage) string {
	takes := policy.QualifiersOf(u)
	return strings.Join(slices.DeleteFunc(slices.Clone(s.Qualifiers.Strings()), func(text string) bool {
		name, _, _ := strings.Cut(text, "=")
		return !slices.Contains(takes, policy.QualifierName(name))
	}), " ")
}

// index is over the patterns as ACAP compares them, or as the policy does.
func (s *scoping) index(folded bool) *pathpattern.Index[[]int] {
	return s.indexOf(func(c *claim) (pathpattern.Pattern, bool) {
		if folded {
			return c.folded, true
		}
		return c.pattern, true
	})
}

// prohibitions is over the patterns of those alone, as the policy compares them.
func (s *scoping) prohibitions() *pathpattern.Index[[]int] {
	return s.indexOf(func(c *claim) (pathpattern.Pattern, bool) { return c.pattern, !c.allow })
}

func (s *scoping) indexOf(patternOf func(*claim) (pattern pathpattern.Pattern, in bool)) *pathpattern.Index[[]int] {
	entries := make([]pathpattern.Entry[[]int], 0, len(s.claims))
	for i := range s.claims {
		if p, in := patternOf(&s.claims[i]); in {
			entries = append(entries, pathpattern.Entry[[]int]{Pattern: p, Value: []int{i}})
		}
	}
	return pathpattern.NewIndex(entries, func(a, b []int) []int { return slices.Concat(a, b) })
}

// dropCovered drops what never decides.
func (s *scoping) dropCovered() {
	x := s.index(false)
	gone := make([]bool, len(s.claims))
	for i := range s.claims {
		c := &s.claims[i]
		x.Covering(c.pattern, func(js []int) {
			for _, j := range js {
				if d := &s.claims[j]; j < i && d.speaksWith(c) {
					gone[i] = true
				}
			}
		})
	}
	var kept []claim
	for i, c := range s.claims {
		if !gone[i] {
			kept = append(kept, c)
		}
	}
	s.claims = kept
}

// conflict is two claims that speak of a common path and say different things.
type conflict struct {
	winner, loser int
	byCase        bool // only as ACAP compares without case
}

// conflicts lists those in which at least one claim is not before from.
func (s *scoping) conflicts(from int) (all []conflict) {
	x, wild := s.index(true), 0
	for i := range s.claims {
		if s.claims[i].folded.Wild() {
			wild++
		}
	}
	for i := from; i < len(s.claims) && s.spend(1+wild); i++ {
		c := &s.claims[i]
		var others []int
		x.Overlapping(c.folded, func(js []int) { others = append(others, js...) })
		slices.Sort(others)
		for _, j := range others {
			d := &s.claims[j]
			if j >= from && j <= i || c.says(d) || c.rank == d.rank {
				continue
			}
			k := conflict{winner: i, loser: j}
			if d.rank < c.rank {
				k.winner, k.loser = j, i
			}
			if !c.pattern.Overlaps(d.pattern) {
				if c.allow && d.allow {
					continue
				}
				k.byCase = true
				if s.claims[k.winner].allow {
					k.winner, k.loser = k.loser, k.winner
				}
			}
			all = append(all, k)
			s.spend(workOfConflict)
		}
	}
	return all
}

// decides reports whether a winner decides against a loser by scope.
func decides(winner, loser *claim) bool {
	scope := acap.Compare(winner.folded, loser.folded)
	switch {
	case !winner.allow:
		return scope != acap.Second // what does not tell is prohibited
	case loser.allow && winner.quals != "" && loser.quals == "":
		return scope != acap.Second // the stricter of two permissions is safe to obey
	}
	return scope == acap.First
}

// crossing is where the patterns of a conflict meet.
func (s *scoping) crossing(k conflict) ([]pathpattern.Pattern, bool) {
	w, l := &s.claims[k.winner], &s.claims[k.loser]
	if k.byCase {
		return pathpattern.Intersect(w.folded, l.folded, maxMeeting)
	}
	return pathpattern.Intersect(w.pattern, l.pattern, maxMeeting)
}

// narrow adds claims where a winner has not the narrower scope.
func (s *scoping) narrow() {
	type key struct {
		folded    pathpattern.Pattern
		allow     bool
		quals     string
		condition string
		rank      int
	}
	x := s.index(false)
	given, have := len(s.claims), map[key]bool{}
	for _, c := range s.claims {
		have[key{c.folded, c.allow, c.quals, c.condition, c.rank}] = true
	}
	for from := 0; from < len(s.claims); {
		all := s.conflicts(from)
		if *s.left < 0 {
			return
		}
		from = len(s.claims)
		for _, k := range all {
			if decides(&s.claims[k.winner], &s.claims[k.loser]) {
				continue
			}
			meet, ok := s.asked(x, k)
			if !ok || len(s.claims)+len(meet) > given+maxAdded {
				continue // settle sees to it
			}
			for _, m := range meet {
				c := s.claims[k.winner]
				c.pattern, c.folded, c.added = m.Plain(), acap.Fold(m.Plain()), true
				id := key{c.folded, c.allow, c.quals, c.condition, c.rank}
				if !have[id] {
					have[id] = true
					s.claims = append(s.claims, c)
				}
			}
		}
	}
}

// settle looks at the conflicts that are left. A permission that cannot win is a
// prohibition to readers, which is told. Where one wins that must not, it is
// prohibited as far as the other speaks.
func (s *scoping) settle() {
	x, plain := s.index(true), s.index(false)
	all := s.conflicts(0)
	if *s.left < 0 {
		return
	}
	for _, k := range all {
		w, l := &s.claims[k.winner], &s.claims[k.loser]
		if k.byCase {
			s.tell("acap-case", l, w.ref.Statement.Pattern.String())
		}
		if w.allow && l.allow && l.quals == "" && acap.Compare(w.folded, l.folded) == acap.Undetermined {
			s.unscoped = append(s.unscoped, k)
		}
		if decides(w, l) || s.settled(x, plain, k) {
			continue
		}
		switch {
		case w.allow && !l.allow, w.quals == "" && l.quals != "" && acap.Compare(w.folded, l.folded) == acap.Undetermined:
			s.lost(w, l)
		case w.allow:
			s.lost(w, l)
			s.prohibit(plain, k)
		default:
			s.prohibit(plain, k)
		}
	}
}

// prohibit adds what keeps a loser from being the narrowest: prohibitions of
// where it meets the winner, else of all that it permits.
func (s *scoping) prohibit(plain *pathpattern.Index[[]int], k conflict) {
	w, l := s.claims[k.winner], s.claims[k.loser]
	c := l
	c.allow, c.quals, c.added = false, "", true
	if w.condition != "" {
		c.condition = w.condition
	}
	meet, ok := s.asked(plain, k)
	for _, m := range meet {
		ok = ok && acap.Compare(l.folded, acap.Fold(m.Plain())) != acap.First
	}
	if !ok || w.condition == l.condition && !w.allow {
		s.lost(&l, &w)
		meet = []pathpattern.Pattern{l.pattern}
	}
	for _, m := range meet {
		c.pattern, c.folded = m.Plain(), acap.Fold(m.Plain())
		if !slices.ContainsFunc(s.claims, func(d claim) bool { return d.folded == c.folded && !d.allow && d.condition == c.condition }) {
			s.claims = append(s.claims, c)
		}
	}
}

// asked is where the patterns of a conflict meet and the policy asks which of the two
// wins: no claim that is stronger than both, and speaks whenever the winner does,
// speaks of all paths there.
func (s *scoping) asked(plain *pathpattern.Index[[]int], k conflict) ([]pathpattern.Pattern, bool) {
	meet, ok := s.crossing(k)
	if k.byCase {
		return meet, ok
	}
	if !ok {
		// At least not where the loser does not speak alone.
		return nil, s.overruled(plain, s.claims[k.loser].pattern, &s.claims[k.winner])
	}
	return slices.DeleteFunc(meet, func(m pathpattern.Pattern) bool { return s.overruled(plain, m, &s.claims[k.winner]) }), true
}

// overruled reports whether a claim that is stronger than another, and speaks whenever
// it does, speaks of all paths of a pattern.
func (s *scoping) overruled(plain *pathpattern.Index[[]int], p pathpattern.Pattern, w *claim) (found bool) {
	plain.Covering(p, func(js []int) {
		for _, j := range js {
			c := &s.claims[j]
			found = found || c.rank < w.rank && c.speaksWith(w)
		}
	})
	return found
}

// settled reports whether other claims that say what the winner says decide
// wherever the two meet and the policy asks.
func (s *scoping) settled(x, plain *pathpattern.Index[[]int], k conflict) bool {
	meet, ok := s.asked(plain, k)
	w, l := &s.claims[k.winner], &s.claims[k.loser]
	for _, m := range meet {
		found := false
		x.Covering(acap.Fold(m.Plain()), func(js []int) {
			for _, j := range js {
				c := &s.claims[j]
				found = found || c.says(w) && c.speaksWith(w) && decides(c, l)
			}
		})
		ok = ok && found
	}
	return ok
}

// lost tells that a permission is a prohibition to readers because of another claim.
func (s *scoping) lost(permission, other *claim) {
	stronger := permission
	if other.rank < permission.rank {
		stronger = other
	}
	code := "acap-undecidable"
	if stronger.condition != "" && permission.condition != other.condition {
		code = "acap-purpose"
	}
	s.tell(code, permission, other.ref.Statement.Pattern.String())
}

// acapProblem tells what the records say less than the policy.
func acapProblem(code string, c *claim, other string) policy.Problem {
	p := c.ref.Statement
	what := fmt.Sprintf("%s of %q", p.Usage, p.Pattern)
	why := map[string]string{
		"acap-undecidable": "ACAP crawlers cannot tell which of the two patterns is narrower, and then take it as disallowed",
		"acap-purpose":     "ACAP has no way to let what is said for a usage purpose override what is said for all",
		"acap-case":        "ACAP compares paths without case, so that both patterns are one there, and it is disallowed",
	}[code]
	return policy.Problem{
		Severity: policy.Warning, Code: code, Pos: p.Pos,
		Message: fmt.Sprintf("the ACAP records disallow the %s where %q says otherwise: %s; write one of the two differently", what, other, why),
	}
}

// tooManyCrossings is where records are given up.
func tooManyCrossings(at *policy.Statement) policy.Problem {
	return policy.Problem{
		Severity: policy.Error, Code: "acap-cross", Pos: at.Pos,
		Message: "too many paths with * are allowed here and disallowed there for ACAP records to say which one wins; state fewer of them, or write \"acap: off\" under publish",
	}
}
