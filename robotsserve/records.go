// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"cmp"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve/acap"
)

// records are the ACAP 1.0 records of a host. Action requests (section 2.6) are
// among them where the policy says so in so many words.
type records struct {
	p        *policy.Policy
	host     string
	usages   []policy.Usage
	chain    bool // what holds for present is spelled out for each present-*
	other    bool // some rule disallows other
	order    map[*policy.Statement]int
	names    *definitions
	problems []policy.Problem
	told     map[policy.Problem]bool
	times    map[*policy.Statement]int // how often something was told of each
	left     int                       // of maxRecordWork
}

// maxToldOf is how many problems of one statement are told: each names another one that
// it does not get along with.
const maxToldOf = 3

// PublishesACAP reports whether ACAP records are published: when they are asked
// for, and in automatic mode when the policy says something of ACAP other than
// crawl.
func PublishesACAP(p *policy.Policy) bool {
	spec := p.Spec()
	switch spec.Publish.ACAP {
	case policy.On:
		return true
	case policy.Auto:
		return slices.ContainsFunc(spec.Rules, func(r policy.Rule) bool {
			requests := len(r.Requests) > 0 && spec.Publish.ActionRequests == policy.On
			return r.PermissionsReference != "" || requests || slices.ContainsFunc(r.Statements, func(s policy.Statement) bool {
				return s.Usage.IsACAP() && s.Usage != policy.Crawl || s.Qualifiers != nil
			})
		})
	}
	return false
}

// newRecords returns nil when no records are published.
func newRecords(p *policy.Policy, host string) *records {
	if !PublishesACAP(p) {
		return nil
	}
	r := &records{p: p, host: host, order: map[*policy.Statement]int{}, told: map[policy.Problem]bool{}, times: map[*policy.Statement]int{}, left: maxRecordWork}
	spec := p.Spec()
	for i := range spec.Rules {
		for j := range spec.Rules[i].Statements {
			s := &spec.Rules[i].Statements[j]
			r.order[s] = len(r.order)
			r.chain = r.chain || s.Usage.IsPresentation()
			r.other = r.other || s.Usage == policy.Other
		}
	}
	for _, u := range policy.Usages() {
		if u.IsACAP() && (r.chain || !u.IsPresentation()) {
			r.usages = append(r.usages, u)
		}
	}
	r.names = newDefinitions(spec)
	return r
}

// record is a record before it is written.
type record struct {
	crawlers  []string
	reference string
	lines     []recordLine
}

// recordLine is a field, under a condition or not.
type recordLine struct{ condition, text string }

// write appends the ACAP part of the file (sections 2.7 and 2.3).
func (r *records) write(w *writer) []policy.Problem {
	all := r.references()
	byLines := map[string]*record{}
	classes := r.p.Classes(r.host)
	var records []*record
	for i := range classes {
		rec := r.record(&classes[i], i == 0)
		if len(rec.lines) == 0 {
			continue
		}
		var b strings.Builder
		for _, l := range rec.lines {
			b.WriteString(l.condition + "\x00" + l.text + "\n")
		}
		key := b.String()
		if same := byLines[key]; same != nil && i > 0 && same.crawlers[0] != "*" {
			same.crawlers = append(same.crawlers, rec.crawlers...)
			continue
		}
		byLines[key] = rec
		records = append(records, rec)
	}
	records = append(records, all...)
	if len(records) == 0 {
		// The grammar asks for a record, and unstated means allowed.
		records = []*record{{crawlers: []string{"*"}, lines: []recordLine{{text: "ACAP-allow-crawl: /"}}}}
	}
	w.line("ACAP-ignore-conventional-records")
	r.names.write(w)
	for _, rec := range records {
		w.line("")
		rec.write(w)
	}
	return r.problems
}

func (rec *record) write(w *writer) {
	for _, c := range rec.crawlers {
		w.line("ACAP-crawler: " + c)
	}
	if rec.reference != "" {
		w.line("ACAP-permissions-reference: " + rec.reference)
	}
	condition := ""
	for _, l := range rec.lines {
		if l.condition != condition {
			condition = l.condition
			for purpose := range strings.SplitSeq(condition, "\n") {
				w.line("ACAP-usage-purpose: " + purpose)
			}
		}
		w.line(l.text)
	}
}

// references are the records that refer to another file (section 2.3.2).
func (r *records) references() (all []*record) {
	byPath := map[string]*record{}
	add := func(rule *policy.Rule, crawler string) {
		path := rule.PermissionsReference
		star := crawler == "*"
		key := yesNo(star, "*", "") + path
		if byPath[key] == nil {
			byPath[key] = &record{reference: path}
			all = append(all, byPath[key])
		}
		if rec := byPath[key]; !slices.Contains(rec.crawlers, crawler) {
			rec.crawlers = append(rec.crawlers, crawler)
		}
	}
	classes := r.p.Classes(r.host)
	for i := range classes {
		for _, rank := range r.p.Ranks(&classes[i]) {
			for _, rule := range rank.Rules {
				if rule.PermissionsReference == "" || (rank.Tier == policy.TierEveryone) != (i == 0) {
					continue
				}
				if i == 0 {
					add(rule, "*")
				}
				for _, id := range classes[i].Crawlers {
					add(rule, r.p.CrawlerInfo(id).Token)
				}
			}
		}
	}
	return all
}

// record returns what the record of a class says: that of everybody what rules
// for everyone state, and another what narrower rules do, as crawlers that it
// names look for the rest in that of everybody (section 2.2).
func (r *records) record(c *policy.Class, everybody bool) *record {
	rec := &record{crawlers: []string{"*"}}
	if !everybody {
		rec.crawlers = nil
		for _, id := range c.Crawlers {
			rec.crawlers = append(rec.crawlers, r.p.CrawlerInfo(id).Token)
		}
	}
	ranks, in := r.ranks(c)
	if !everybody {
		ranks = slices.DeleteFunc(ranks, func(k policy.Rank) bool { return k.Tier == policy.TierEveryone })
	}
	var fields []recordField
	for _, u := range r.usages {
		for _, cl := range r.claims(ranks, u, in, everybody) {
			fields = append(fields, recordField{claim: cl, usage: u})
		}
	}
	slices.SortStableFunc(fields, func(a, b recordField) int {
		return cmp.Or(strings.Compare(a.condition, b.condition), cmp.Compare(r.at(a), r.at(b)), cmp.Compare(a.usage, b.usage))
	})
	rec.lines = r.names.compact(fields)
	at := slices.IndexFunc(rec.lines, func(l recordLine) bool { return l.condition != "" })
	if at < 0 {
		at = len(rec.lines)
	}
	rec.lines = slices.Insert(rec.lines, at, r.requests(ranks)...)
	return rec
}

// requests are the action requests of rules. They stand before sub-records, in
// which the grammar has none.
func (r *records) requests(ranks []policy.Rank) (lines []recordLine) {
	if r.p.Spec().Publish.ActionRequests != policy.On {
		return nil
	}
	for _, rank := range ranks {
		for _, rule := range rank.Rules {
			for _, q := range rule.Requests {
				l := recordLine{text: "ACAP-request-" + q.Action + ": " + q.Path}
				if !slices.Contains(lines, l) {
					lines = append(lines, l)
				}
			}
		}
	}
	return lines
}

// at is where the file states a field; what no rule states comes first.
func (r *records) at(f recordField) int {
	if n, ok := r.order[f.ref.Statement]; ok {
		return n
	}
	return -1
}

// conditions are the purposes under which rules speak in a tier, as written in
// sub-records; "" is none.
type conditions map[policy.Tier]map[*policy.Rule]string

// ranks are the rules that speak to a class, with those for purposes that its
// crawlers may have, and under which condition each does.
func (r *records) ranks(c *policy.Class) ([]policy.Rank, conditions) {
	with := *c
	for _, p := range purposeAudiences(r.p.Spec()) {
		with = r.p.WithPurpose(&with, strings.ToLower(p))
	}
	in := conditions{}
	ranks := r.p.Ranks(&with)
	for i := range ranks {
		tier := ranks[i].Tier
		if in[tier] == nil {
			in[tier] = map[*policy.Rule]string{}
		}
		always := map[*policy.Rule]bool{}
		for _, rule := range r.p.Rules(c, tier) {
			always[rule] = true
		}
		ranks[i].Rules = slices.DeleteFunc(ranks[i].Rules, func(rule *policy.Rule) bool {
			if always[rule] {
				in[tier][rule] = joinPurposes(rule.UsagePurposes)
				return false
			}
			named := namedPurposes(rule)
			in[tier][rule] = joinPurposes(named)
			return len(named) == 0
		})
	}
	return slices.DeleteFunc(ranks, func(k policy.Rank) bool { return len(k.Rules) == 0 }), in
}

// purposeAudiences lists the purposes that rules are for.
func purposeAudiences(spec *policy.Spec) (names []string) {
	for i := range spec.Rules {
		for _, a := range spec.Rules[i].For {
			if a.Kind == policy.ForPurpose && !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, a.Name) }) {
				names = append(names, a.Name)
			}
		}
	}
	return names
}

// namedPurposes lists the purposes that a rule is for, as far as its usage
// purposes have them too.
func namedPurposes(rule *policy.Rule) (names []string) {
	for _, a := range rule.For {
		if a.Kind != policy.ForPurpose {
			continue
		}
		if len(rule.UsagePurposes) == 0 || slices.ContainsFunc(rule.UsagePurposes, func(p string) bool { return acap.MatchPurpose(p, a.Name) }) {
			names = append(names, a.Name)
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

// claims returns what the rules of a record say about a usage.
func (r *records) claims(ranks []policy.Rank, u policy.Usage, in conditions, everybody bool) []claim {
	if r.left < 0 {
		return nil
	}
	usages := []policy.Usage{u}
	if u.IsPresentation() {
		usages = append(usages, policy.Present)
	}
	var vs []verdict
	for _, rank := range ranks {
		for _, usage := range usages {
			l := policy.Layer{Tier: rank.Tier, Usage: usage}
			for _, rule := range rank.Rules {
				for i := range rule.Statements {
					if s := &rule.Statements[i]; s.Usage == usage {
						l.Statements = append(l.Statements, policy.Ref{Rule: rule, Statement: s})
					}
				}
			}
			vs = append(vs, verdictsOf(&l, func(rule *policy.Rule) string { return in[rank.Tier][rule] }, func(v *verdict, paths pathpattern.Pattern) {
				r.tell("acap-undecidable", &claim{ref: v.ref}, paths.String())
			})...)
		}
	}
	if u == policy.Crawl && r.other && everybody {
		// Other covers what is not explicitly permitted (section 2.5.6), but in
		// the policy never crawl.
		vs = append(vs, verdict{pattern: pathpattern.All, allow: true, ref: policy.Ref{Statement: &policy.Statement{Allow: true, Pattern: pathpattern.All}}})
	}
	claims := scope(vs, u, &r.left, r.tell)
	if r.left < 0 {
		r.problems = append(r.problems, tooManyCrossings(vs[0].ref.Statement))
	}
	return claims
}

func (r *records) tell(code string, c *claim, other string) {
	if c.ref.Rule == nil {
		return
	}
	if r.times[c.ref.Statement] == maxToldOf {
		return
	}
	if p := acapProblem(code, c, other); !r.told[p] {
		r.told[p] = true
		r.times[c.ref.Statement]++
		r.problems = append(r.problems, p)
	}
}
