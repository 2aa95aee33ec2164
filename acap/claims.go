// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Limits on what one usage of a record may cost.
const (
	maxMeeting = 8       // patterns for where two patterns cross
	maxAdded   = 60      // fields for where patterns cross
	maxWork    = 1 << 24 // pairs of patterns, of all records of a host

	workOfMeeting = 1 << 6 // of finding where two patterns meet
)

// conditional is a statement that holds for some purposes only, or for all.
type conditional struct {
	policy.Applied
	condition string // the purposes of its sub-record in lower case, one a line; "" for none
}

// statements lists what is stated to a class about a usage, with the conditions under
// which rules speak: their usage purposes, and purposes that they are for and that no
// crawler of the class is known by.
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
			if !has(&a) { // it is for the purpose, by which no crawler of the class is known
				all = append(all, conditional{a, purpose})
			}
		}
	}
	return all
}

// purposesOf lists what rules are for and what they ask for, in lower case.
func purposesOf(spec *policy.Spec) (names []string) {
	seen := map[string]bool{}
	add := func(name string) {
		if name = strings.ToLower(name); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for i := range spec.Rules {
		r := &spec.Rules[i]
		for _, a := range r.For {
			if a.Kind == policy.ForPurpose {
				add(a.Name)
			}
		}
		for _, u := range r.UsagePurposes {
			add(u)
		}
	}
	return names
}

func joinPurposes(names []string) string {
	lower := make([]string, len(names))
	for i, n := range names {
		lower[i] = strings.ToLower(n)
	}
	slices.Sort(lower)
	return strings.Join(slices.Compact(lower), "\n")
}

// same reports whether two classes get the same records.
func (w *writer) same(a, b []conditional) bool {
	return slices.EqualFunc(a, b, func(s, t conditional) bool {
		return s.Statement == t.Statement && s.Audience == t.Audience && s.condition == t.condition
	})
}

// claim is a permission or prohibition of one usage in a record.
type claim struct {
	pattern   pathpattern.Pattern
	folded    pathpattern.Pattern // as ACAP compares it
	allow     bool
	quals     string // of a permission, as they are printed
	condition string
	from      []*conditional // what it stands for: of a prohibition one, of a permission any number
	unsayable bool           // a permission whose qualifiers ACAP cannot say together
	added     bool           // for where two patterns cross
	gone      bool
}

// speaksWith reports whether c speaks whenever d does.
func (c *claim) speaksWith(d *claim) bool { return c.condition == "" || c.condition == d.condition }

// overlaps reports whether both may speak of a path at once.
func (c *claim) overlaps(d *claim) bool { return c.speaksWith(d) || d.speaksWith(c) }

// claiming makes the claims of one usage in a record mean by ACAP's rule, in which the
// narrowest scope decides and what cannot be decided is prohibited (section 2.4.5), what
// the policy means:
//
//	everyone:  disallow index /*/drafts/     ACAP-disallow-index: /*/drafts/
//	everyone:  allow index /news/         →  ACAP-allow-index: /news/
//	                                         ACAP-disallow-index: /news/drafts/   (which /news/ would win over)
//	                                         ACAP-disallow-index: /news/*/drafts/
type claiming struct {
	*writer
	usage      policy.Usage
	statements []conditional
	claims     []claim
	given      int
	exact      *pathpattern.Index[[]int32] // of statements
	folded     *pathpattern.Index[[]int32] // of claims
	wild       int                         // what it costs to ask these
}

// fields returns what the record of a class says about a usage.
func (w *writer) fields(c *policy.Class, u policy.Usage, everyone bool) (fields []field) {
	s := claiming{writer: w, usage: u, statements: w.statements(c, u)}
	for i := range s.statements {
		st := &s.statements[i]
		for _, p := range st.Statement.Pattern.Rooted() {
			s.add(p.Plain(), st.Statement.Allow, st.condition, []*conditional{st})
		}
	}
	if u == policy.Crawl && w.other && everyone {
		// Other covers what is not explicitly permitted (section 2.5.6), but in the
		// policy never crawl.
		s.add(pathpattern.All, true, "", nil)
	}
	s.given, s.wild = len(s.claims), 1
	for i := range s.claims {
		if s.claims[i].folded.Wild() {
			s.wild++
		}
	}
	s.dropDecided()
	s.narrow()
	s.prohibitUnready()
	s.verify()
	if w.left < 0 && len(s.statements) > 0 {
		w.problem(policy.Problem{
			Severity: policy.Error, Code: "acap-cross", Pos: s.statements[0].Statement.Pos,
			Message: "too many paths with * are allowed here and disallowed there for ACAP records to say which one wins; state fewer of them, or write \"acap: off\" under publish",
		})
	}
	if w.left < 0 {
		return nil
	}
	for i := range s.claims {
		if c := &s.claims[i]; !c.gone {
			fields = append(fields, field{claim: *c, usage: u})
		}
	}
	for i := range s.statements {
		w.checkQualifiers(c, &s.statements[i], u)
	}
	return fields
}

func (s *claiming) add(p pathpattern.Pattern, allow bool, condition string, from []*conditional) {
	c := claim{pattern: p, folded: Fold(p), allow: allow, condition: condition, from: from, added: s.given > 0}
	if allow {
		c.quals, c.unsayable = s.qualifiers(from)
	}
	s.claims = append(s.claims, c)
}

// decide is what the policy says at a time where exactly these statements speak.
func (s *claiming) decide(from []*conditional, now time.Time) policy.Decision {
	matching := make([]policy.Applied, len(from))
	for i, f := range from {
		matching[i] = f.Applied
	}
	return s.p.Outcome(matching, now)
}

// ever is after all dates that a time limit may have.
var ever = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// qualifiers prints those that hold where exactly these statements speak. It is unsayable
// where of two none is the stricter, and where what is permitted without a date rests on
// a permission with one.
func (s *claiming) qualifiers(from []*conditional) (text string, unsayable bool) {
	text, ok := qualifiersOf(s.decide(from, time.Time{}).Qualifiers(), s.usage)
	ends := strings.Contains(text, "time-limit=until-2") || strings.Contains(text, "time-limit=until-1")
	return text, !ok || !ends && s.decide(from, ever).Verdict == policy.Disallowed
}

// overrides reports whether a permission wins over a prohibition in the policy.
func (s *claiming) overrides(a, d *claim) bool {
	return slices.ContainsFunc(a.from, func(f *conditional) bool { return s.p.Overrides(&f.Applied, &d.from[0].Applied) })
}

// dropDecided drops what never decides.
func (s *claiming) dropDecided() {
	x := s.index(func(c *claim) pathpattern.Pattern { return c.pattern })
	for i := range s.claims {
		if s.left -= s.wild; s.left < 0 {
			return
		}
		c := &s.claims[i]
		x.Covering(c.pattern, func(js []int32) {
			for _, j := range js {
				switch d := &s.claims[j]; {
				case int(j) == i || d.gone || !d.speaksWith(c):
				case c.allow && d.allow:
					c.gone = c.gone || len(c.from) > 0 && len(d.from) > 0 && s.p.SetsAside(&d.from[0].Applied, &c.from[0].Applied)
				case c.allow: // its qualifiers hold where another permission opens the same
					c.gone = c.gone || !s.overrides(c, d) && !s.opened(d)
				case d.allow:
					c.gone = c.gone || s.overrides(d, c)
				default: // of two prohibitions of one pattern one will do
					c.gone = c.gone || c.pattern == d.pattern && int(j) < i && c.condition == d.condition && s.sameOverrides(c, d)
				}
			}
		})
	}
}

// opened reports whether some permission wins over a prohibition.
func (s *claiming) opened(d *claim) bool {
	return slices.ContainsFunc(s.claims, func(a claim) bool { return a.allow && s.overrides(&a, d) })
}

// sameOverrides reports whether the same permissions win over two prohibitions.
func (s *claiming) sameOverrides(c, d *claim) bool {
	return !slices.ContainsFunc(s.claims, func(a claim) bool { return a.allow && s.overrides(&a, c) != s.overrides(&a, d) })
}

func (s *claiming) index(patternOf func(*claim) pathpattern.Pattern) *pathpattern.Index[[]int32] {
	var entries []pathpattern.Entry[[]int32]
	for i := range s.claims {
		if !s.claims[i].gone {
			entries = append(entries, pathpattern.Entry[[]int32]{Pattern: patternOf(&s.claims[i]), Value: []int32{int32(i)}})
		}
	}
	return pathpattern.NewIndex(entries, func(a, b []int32) []int32 { return slices.Concat(a, b) })
}

func foldedOf(c *claim) pathpattern.Pattern { return c.folded }

// pairs calls yield for each two claims that speak of a common path, of which at least
// one is not before from.
func (s *claiming) pairs(from int, yield func(i, j int)) {
	x := s.index(foldedOf)
	n := len(s.claims)
	for i := from; i < n; i++ {
		if s.left -= s.wild; s.left < 0 {
			return
		}
		var others []int32
		x.Overlapping(s.claims[i].folded, func(js []int32) { others = append(others, js...) })
		slices.Sort(others)
		for _, j := range others {
			if s.left--; s.left < 0 {
				return
			}
			if int(j) >= from && int(j) <= i || s.claims[i].gone || s.claims[j].gone || !s.claims[i].overlaps(&s.claims[j]) {
				continue
			}
			yield(i, int(j))
		}
	}
}

// narrow adds claims where the one that should decide has not the narrower scope.
func (s *claiming) narrow() {
	for from := 0; from < len(s.claims) && s.left >= 0; {
		next := len(s.claims)
		s.pairs(from, func(i, j int) {
			if s.claims[i].allow == s.claims[j].allow {
				if s.claims[i].allow {
					s.join(i, j)
				}
				return
			}
			if !s.claims[i].allow {
				i, j = j, i
			}
			s.decidePair(i, j)
		})
		from = next
	}
}

// decidePair looks at a permission and a prohibition.
func (s *claiming) decidePair(i, j int) {
	a, d := &s.claims[i], &s.claims[j]
	exact := a.pattern.Overlaps(d.pattern)
	first := Compare(a.folded, d.folded) == First
	wins := exact && s.overrides(a, d)
	if wins == first {
		return
	}
	p, q := a.pattern, d.pattern
	if !exact { // only as ACAP compares, without case
		p, q = a.folded, d.folded
	}
	winner := *d
	if wins {
		winner = *a
	}
	loser, against := a.folded, d.folded
	ok := s.addAt(p, q, winner.allow, winner.condition, winner.from, func(m pathpattern.Pattern) bool {
		if wins {
			return Compare(m, against) == First
		}
		return Compare(loser, m) != First
	})
	if !ok && !wins { // rather less than more
		s.claims[i].gone = true
		s.lost(&s.claims[i], p)
	}
}

// join looks at two permissions: where both speak, what remains of their qualifiers
// unites, and together they may override more than each.
func (s *claiming) join(i, j int) {
	a, b := &s.claims[i], &s.claims[j]
	if !a.pattern.Overlaps(b.pattern) || len(a.from) == 0 || len(b.from) == 0 {
		return
	}
	from := slices.Clone(a.from)
	for _, f := range b.from {
		if !slices.Contains(from, f) {
			from = append(from, f)
		}
	}
	quals, unsayable := s.qualifiers(from)
	scope := Compare(a.folded, b.folded)
	alone := !unsayable && (scope == First && a.quals == quals || scope == Second && b.quals == quals || a.quals == quals && b.quals == quals)
	if alone && !s.needBoth(a, b) {
		return
	}
	condition := a.condition
	if condition == "" {
		condition = b.condition
	}
	p, q := *a, *b
	decides := func(m pathpattern.Pattern, c *claim) bool { // of one pattern that with qualifiers does
		return Compare(m, c.folded) == First || m == c.folded && c.quals == "" && quals != ""
	}
	s.addAt(p.pattern, q.pattern, true, condition, from, func(m pathpattern.Pattern) bool { return decides(m, &p) && decides(m, &q) })
}

// needBoth reports whether each of two permissions overrides a prohibition, where both
// speak, that the other does not.
func (s *claiming) needBoth(a, b *claim) bool {
	mine, other := false, false
	for k := range s.claims[:s.given] {
		d := &s.claims[k]
		if d.gone || d.allow || !d.folded.Overlaps(a.folded) || !d.folded.Overlaps(b.folded) {
			continue
		}
		x, y := s.overrides(a, d), s.overrides(b, d)
		mine, other = mine || x && !y, other || y && !x
	}
	return mine && other
}

// addAt adds claims for where two patterns meet that do not stand already. It reports
// whether they say all that is needed.
func (s *claiming) addAt(p, q pathpattern.Pattern, allow bool, condition string, from []*conditional, suffices func(pathpattern.Pattern) bool) bool {
	if s.left -= workOfMeeting; s.left < 0 || len(s.claims) >= s.given+maxAdded {
		return false
	}
	meet, ok := pathpattern.Intersect(p, q, maxMeeting)
	if !ok || len(s.claims)+len(meet) > s.given+maxAdded {
		return false
	}
	for _, m := range meet {
		m = m.Plain()
		if !suffices(Fold(m)) {
			ok = false
			continue
		}
		if all := s.absorb(m, allow, condition, from); all != nil {
			s.add(m, allow, condition, all)
		}
	}
	return ok
}

// absorb drops the permissions of the same pattern, as a reader could not tell which of
// them to obey, and returns what one in their stead stands for; nil if one stands already.
func (s *claiming) absorb(p pathpattern.Pattern, allow bool, condition string, from []*conditional) []*conditional {
	all := slices.Clone(from)
	var same []*claim
	for i := range s.claims {
		c := &s.claims[i]
		if c.gone || c.allow != allow || c.condition != condition || c.pattern != p {
			continue
		}
		same = append(same, c)
		for _, f := range c.from {
			if allow && !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	if slices.ContainsFunc(same, func(c *claim) bool { return len(c.from) == len(all) && (allow || c.from[0] == from[0]) }) {
		return nil
	}
	for _, c := range same {
		c.gone = allow
	}
	return all
}

// field is a claim about a usage.
type field struct {
	claim
	usage policy.Usage
}

// statement is the one that a field comes from, or nil.
func (f *field) statement() *policy.Statement {
	if len(f.from) == 0 {
		return nil
	}
	return f.from[0].Statement
}

// unready reports whether a permission of the usage has qualifiers that the document
// calls not ready (sections 2.5.5.2.2 and 2.5.5.2.5).
func (s *claiming) unready(quals string) bool {
	if s.usage != policy.Present && !s.usage.IsPresentation() || s.p.Spec().Publish.ActionRequests == policy.On {
		return false
	}
	return slices.ContainsFunc(strings.Fields(quals), func(text string) bool { return strings.HasPrefix(text, "must-") })
}

// prohibitUnready makes prohibitions of permissions that no reader is to be expected
// to understand: without the qualifier they would permit too much.
func (s *claiming) prohibitUnready() {
	for i := range s.claims {
		c := &s.claims[i]
		if c.gone || !c.allow || !c.unsayable && !s.unready(c.quals) {
			continue
		}
		if c.allow, c.quals = false, ""; c.unsayable {
			continue // verify reports it
		}
		for _, f := range c.from {
			if f.Statement.Qualifiers != nil {
				s.report(f.Statement, policy.Warning, "acap-not-ready", fmt.Sprintf("ACAP 1.0 calls the must-… qualifiers of %s not ready, so that its records disallow %q instead; write \"action-requests: on\" under publish if crawlers that you know read them",
					f.Statement.Usage, f.Statement.Pattern))
			}
		}
	}
}

// checkQualifiers reports what the records cannot say of a permission.
func (w *writer) checkQualifiers(c *policy.Class, st *conditional, u policy.Usage) {
	q := st.Statement.Qualifiers
	if q == nil {
		return
	}
	if len(q.ProhibitedModification) > 0 && !slices.Contains(policy.QualifiersOf(u), policy.QualifierProhibitedModification) {
		w.report(st.Statement, policy.Warning, "acap-modification", fmt.Sprintf("ACAP knows prohibited-modification for %s, but not for %s, which a rule of its own speaks of: for %s the records say %q without it",
			st.Statement.Usage, u, u, st.Statement.Pattern))
	}
	for _, resource := range []string{q.MustUseResource, q.MustIncludeResource} {
		host, path := w.resource(resource)
		if path == "" || !w.serves(host) {
			continue
		}
		query := policy.Query{Host: host, Path: path, Usage: policy.Crawl, Identity: policy.Verified}
		if len(c.Crawlers) > 0 {
			query.Crawler = c.Crawlers[0]
		}
		if w.p.Decide(query).Verdict == policy.Disallowed {
			w.report(st.Statement, policy.Warning, "acap-resource-closed", fmt.Sprintf("crawlers must be able to fetch %q to obey this (ACAP sections 2.5.3.2 and 2.5.5.2), and they may not crawl it; allow crawl of %q", resource, path))
		}
	}
}

// resource is the host and path of a resource that a qualifier names, "" for one
// within the page.
func (w *writer) resource(uri string) (host, path string) {
	for _, role := range []string{"the-acap:credit:", "the-acap:link:"} {
		uri = strings.TrimPrefix(uri, role)
	}
	for _, within := range []string{"the-acap:", "id:", "class:", "meta:"} {
		if strings.HasPrefix(uri, within) {
			return "", ""
		}
	}
	if host, path = splitURL(uri, w.host); !strings.HasPrefix(path, "/") {
		return "", ""
	}
	return host, path
}
