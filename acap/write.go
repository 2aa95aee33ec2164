// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"cmp"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
)

// VersionComment is the first line of a file that has records (section 2.9.3).
const VersionComment = "##ACAP version=1.0"

// Line is a line of the records, with its place in the policy.
type Line = policy.Line

// maxReports limits the number of reported problems for one statement. Each of them names a different conflict.
const maxReports = 3

// Published reports whether ACAP records are published for a policy. With "acap: full", this is always the case. In
// automatic mode, they are published only if no other channel can express some part of the policy.
func Published(p *policy.Policy) bool {
	spec := p.Spec()
	if spec.Publish.ACAP != policy.Auto {
		return spec.Publish.ACAP == policy.Full
	}
	return slices.ContainsFunc(spec.Rules, func(r policy.Rule) bool {
		requests := len(r.Requests) > 0 && spec.Publish.ActionRequests == policy.On
		return r.PermissionsReference != "" || requests || slices.ContainsFunc(r.Statements, func(s policy.Statement) bool {
			return !s.Usage.IsRight() && s.Usage != policy.Crawl || s.Qualifiers != nil || s.Usage == policy.Crawl && len(r.UsagePurposes) > 0
		})
	})
}

// Write returns the ACAP 1.0 records for the end of a host's robots.txt, or nil if none are published.
//
// In automatic mode, the records contain the parts of the policy that the groups of RFC 9309 cannot express. The usage
// "crawl" is among them in two cases. If a rule is about "other", the records must also say which crawling is
// permitted, because ACAP-disallow-other would prohibit it (section 2.5.6). If a rule about "crawl" is for usage
// purposes, only the records can express it. With "acap: full", the records contain the whole policy.
func (all *Writer) Write(host string) ([]Line, []policy.Problem) {
	if !all.published {
		return nil, nil
	}
	w := all.writer(host)
	records := append(w.records(), w.references()...)
	if len(records) == 0 && w.full {
		// The grammar requires at least one record. This record has no effect, because unstated usages are allowed.
		records = []*record{{crawlers: []string{"*"}, lines: []recordLine{{Line: Line{Text: "ACAP-allow-crawl: /"}}}}}
	}
	if len(records) == 0 {
		return nil, w.problems
	}
	var lines []Line
	if w.full {
		lines = append(lines, Line{Text: "ACAP-ignore-conventional-records"})
	}
	lines = append(lines, w.names.lines()...)
	for _, rec := range records {
		if len(lines) > 0 {
			lines = append(lines, Line{})
		}
		lines = append(lines, rec.write()...)
		w.checkNames(rec)
	}
	return lines, w.problems
}

// checkNames warns about crawler names that are not valid according to the grammar of section 3. A name must start with
// a letter.
func (w *writer) checkNames(rec *record) {
	for _, c := range rec.crawlers {
		if c == "*" || c[0] >= 'A' && c[0] <= 'Z' || c[0] >= 'a' && c[0] <= 'z' {
			continue
		}
		p := policy.NewProblem(policy.Hint, "acap-crawler-name", policy.Pos{}, "strict ACAP readers ignore a record for %q, "+
			"because the name of a crawler has to start with a letter (ACAP 1.0 section 3). Allow and Disallow lines still apply", c)
		if len(rec.lines) > 0 {
			p.Pos = rec.lines[0].Pos
		}
		w.problem(p)
		return // one warning for each record is enough
	}
}

// Writer writes the records of a policy for one host at a time. It is safe for concurrent use.
type Writer struct {
	p         *policy.Policy
	published bool
	full      bool
	crawl     bool // the records include the usage "crawl"
	other     bool // a rule is about the usage "other"
	order     map[*policy.Statement]int
	audiences []string // the names in the audiences "purpose:NAME" of the rules, in lower case
	defined   *names
}

// writer makes the records of one host.
type writer struct {
	*Writer
	host     string
	names    *names
	problems []policy.Problem
	reported map[policy.Problem]bool
	times    map[*policy.Statement]int // number of problems reported for each statement
	budget   *solve.Budget
}

// NewWriter returns a Writer for a policy.
func NewWriter(p *policy.Policy) *Writer {
	spec := p.Spec()
	w := &Writer{p: p, published: Published(p), full: spec.Publish.ACAP == policy.Full}
	if !w.published {
		return w
	}
	w.order, w.defined = map[*policy.Statement]int{}, newNames(spec)
	for i := range spec.Rules {
		r := &spec.Rules[i]
		for _, a := range r.For {
			if a.Kind == policy.ForPurpose {
				w.audiences = append(w.audiences, strings.ToLower(a.Name))
			}
		}
		for j := range r.Statements {
			s := &r.Statements[j]
			w.order[s] = len(w.order)
			w.other = w.other || s.Usage == policy.Other
			w.crawl = w.crawl || s.Usage == policy.Crawl && len(r.UsagePurposes) > 0
		}
	}
	w.crawl = w.crawl || w.full || w.other
	slices.Sort(w.audiences)
	w.audiences = slices.Compact(w.audiences)
	return w
}

func (all *Writer) writer(host string) *writer {
	names := *all.defined
	names.usedSets, names.usedNames = map[string]bool{}, map[string]bool{}
	return &writer{
		Writer: all, host: host, names: &names,
		reported: map[policy.Problem]bool{}, times: map[*policy.Statement]int{}, budget: solve.NewBudget(),
	}
}

type record struct {
	crawlers  []string
	reference string
	pos       policy.Pos // the place of the reference
	lines     []recordLine
}

// recordLine is a line of a record, with its condition if it has one.
type recordLine struct {
	Line
	condition string // the purposes of its sub-record, one on each line, or "" if there is none
}

func (rec *record) write() (lines []Line) {
	for _, c := range rec.crawlers {
		lines = append(lines, Line{Text: "ACAP-crawler: " + c})
	}
	if rec.reference != "" {
		lines = append(lines, Line{Text: "ACAP-permissions-reference: " + rec.reference, Pos: rec.pos})
	}
	condition := ""
	for _, l := range rec.lines {
		if l.condition != condition {
			condition = l.condition
			for purpose := range strings.SplitSeq(condition, "\n") {
				lines = append(lines, Line{Text: "ACAP-usage-purpose: " + purpose})
			}
		}
		lines = append(lines, l.Line)
	}
	return lines
}

func (rec *record) key() string {
	var b strings.Builder
	for _, l := range rec.lines {
		b.WriteString(l.condition + "\x00" + l.Text + "\n")
	}
	return b.String()
}

// records returns the record for any crawler, and the records of the classes whose crawlers have their own rules. If
// the records of two classes have the same lines, they become one record that names the crawlers of both classes.
func (w *writer) records() (all []*record) {
	classes := w.p.PublicClasses(w.host)
	byKey := map[string]*record{}
	for i := range classes {
		rec := w.record(&classes[i], &classes[0])
		if len(rec.lines) == 0 {
			continue
		}
		key := rec.key()
		if same := byKey[key]; same != nil {
			same.crawlers = append(same.crawlers, rec.crawlers...)
			continue
		}
		if i > 0 {
			byKey[key] = rec
		}
		all = append(all, rec)
	}
	return all
}

// record returns the record of a class. For a usage that this record does not mention, crawlers use the record for any
// crawler (section 2.2). So if a rule for the class mentions a usage, the record contains all fields about this usage,
// also those from rules for everyone.
func (w *writer) record(c, everyone *policy.Class) *record {
	rec := &record{crawlers: []string{"*"}}
	if c != everyone {
		rec.crawlers = nil
		for _, id := range c.Crawlers {
			rec.crawlers = append(rec.crawlers, w.p.CrawlerInfo(id).Token)
		}
	}
	usages := w.usages(c, everyone)
	fields := make([]field, 0, len(usages))
	for _, u := range usages {
		fields = append(fields, w.fields(c, u, c == everyone)...)
	}
	slices.SortStableFunc(fields, func(a, b field) int { return w.compare(&a, &b) })
	rec.lines = w.names.compact(fields)
	at := slices.IndexFunc(rec.lines, func(l recordLine) bool { return l.condition != "" })
	if at < 0 {
		at = len(rec.lines)
	}
	rec.lines = slices.Insert(rec.lines, at, w.requests(c, c == everyone)...)
	return rec
}

// usages lists the usages that have fields in the record of a class. A usage that is a kind of "present", such as
// "present-oldcopy", has fields only if a rule mentions this usage.
func (w *writer) usages(c, everyone *policy.Class) (all []policy.Usage) {
	differs := map[policy.Usage]bool{}
	present := c == everyone
	for _, u := range policy.Usages() {
		differs[u] = c == everyone || !slices.EqualFunc(w.statements(c, u), w.statements(everyone, u), conditional.same)
		present = present || differs[u] && (u == policy.Present || u.IsPresentation())
	}
	for _, u := range policy.Usages() {
		switch {
		case u.IsRight(), u == policy.Crawl && !w.crawl:
		case u.IsPresentation():
			if present && slices.ContainsFunc(w.statements(c, u), func(s conditional) bool { return s.Direct }) {
				all = append(all, u)
			}
		case differs[u], u == policy.Present && present:
			all = append(all, u)
		}
	}
	return all
}

// requests returns the lines for the action requests of rules (section 2.6). They must precede the sub-records, which
// cannot have requests.
func (w *writer) requests(c *policy.Class, everyone bool) (lines []recordLine) {
	if w.p.Spec().Publish.ActionRequests != policy.On {
		return nil
	}
	for tier := policy.TierToken; tier <= policy.TierEveryone; tier++ {
		if (tier == policy.TierEveryone) != everyone {
			continue
		}
		for _, rule := range w.p.Rules(c, tier) {
			for _, q := range rule.Requests {
				l := recordLine{Line: Line{Text: "ACAP-request-" + q.Action + ": " + q.Path, Pos: q.Pos}}
				if !slices.ContainsFunc(lines, func(m recordLine) bool { return m.Text == l.Text }) {
					lines = append(lines, l)
				}
			}
		}
	}
	return lines
}

// compare orders fields by their conditions, so that the fields for all purposes come first. Fields with the same
// condition have the order of their statements in the policy.
func (w *writer) compare(a, b *field) int {
	return cmp.Or(strings.Compare(a.condition, b.condition), cmp.Compare(w.at(a), w.at(b)), cmp.Compare(a.usage, b.usage),
		strings.Compare(a.pattern.String(), b.pattern.String()))
}

// at returns the index of a field's statement in the policy, or -1 if the field has none.
func (w *writer) at(f *field) int {
	if n, ok := w.order[f.by.Statement]; ok {
		return n
	}
	return -1
}

// references returns the records that refer to another file (section 2.3.2).
func (w *writer) references() (all []*record) {
	byPath := map[string]*record{}
	add := func(rule *policy.Rule, crawler string) {
		path := rule.PermissionsReference
		key := yesNo(crawler == "*", "*", "") + path
		if byPath[key] == nil {
			byPath[key] = &record{reference: path, pos: rule.Pos}
			all = append(all, byPath[key])
		}
		if rec := byPath[key]; !slices.Contains(rec.crawlers, crawler) {
			rec.crawlers = append(rec.crawlers, crawler)
		}
	}
	classes := w.p.PublicClasses(w.host)
	for i := range classes {
		for tier := policy.TierToken; tier <= policy.TierEveryone; tier++ {
			for _, rule := range w.p.Rules(&classes[i], tier) {
				if rule.PermissionsReference == "" || (tier == policy.TierEveryone) != (i == 0) || w.circular(rule) {
					continue
				}
				if i == 0 {
					add(rule, "*")
				}
				for _, id := range classes[i].Crawlers {
					add(rule, w.p.CrawlerInfo(id).Token)
				}
			}
		}
	}
	return all
}

// circular reports whether a rule refers to a file that also has references. Section 2.3.2 forbids this.
func (w *writer) circular(rule *policy.Rule) bool {
	host, path := splitURL(rule.PermissionsReference, w.host)
	if path != "/robots.txt" || !w.serves(host) {
		return false
	}
	w.problem(policy.NewProblem(policy.Error, "acap-circular", rule.Pos,
		"the permissions-reference %q leads back to a robots.txt of this policy that has a permissions-reference, too. ACAP forbids circular references (section 2.3.2); name another file", rule.PermissionsReference))
	return true
}

// serves reports whether the records are for a host, or a rule of the policy names the host.
func (w *writer) serves(host string) bool {
	host = policy.NormalizeHost(host)
	if host == policy.NormalizeHost(w.host) {
		return true
	}
	return slices.ContainsFunc(w.p.Spec().Rules, func(r policy.Rule) bool {
		return slices.ContainsFunc(r.Hosts, func(h policy.Host) bool { return h.Covers(host) })
	})
}

// splitURL splits a reference into host and path. If ref is only a path, the host is the value of own.
func splitURL(ref, own string) (host, path string) {
	_, rest, absolute := strings.Cut(ref, "://")
	if !absolute {
		return own, ref
	}
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		return rest[:i], rest[i:]
	}
	return rest, "/"
}

func (w *writer) problem(p policy.Problem) {
	if !w.reported[p] {
		w.reported[p] = true
		w.problems = append(w.problems, p)
	}
}

func (w *writer) warn(s *policy.Statement, code, message string) {
	p := policy.Problem{Severity: policy.Warning, Code: code, Pos: s.Pos, Message: message}
	if w.reported[p] || w.times[s] == maxReports {
		return
	}
	w.times[s]++
	w.problem(p)
}

func yesNo(yes bool, y, n string) string {
	if yes {
		return y
	}
	return n
}
