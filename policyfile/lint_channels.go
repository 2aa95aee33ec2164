// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// notPublished finds what only a record that is switched off could say.
func (l *linter) notPublished() {
	publish := &l.p.spec.Publish
	for i := range l.rules {
		r := &l.rules[i]
		switch {
		case len(r.Requests) == 0:
		case publish.ActionRequests == policy.Off:
			l.warn(r.Requests[0].Pos, "not-published", `requests are not published, as ACAP 1.0 calls them not ready for use; write "action-requests: on" under publish if you have agreed on them with the crawler's operator, or delete this`)
		case publish.ACAP == policy.Off:
			l.warn(r.Requests[0].Pos, "not-published", `only ACAP can say requests, and "acap: off" leaves it out; delete this, or write "acap: auto"`)
		}
		if publish.ACAP == policy.Off {
			switch {
			case r.PermissionsReference != "":
				l.warn(r.Pos, "not-published", `only ACAP can say permissions-reference, and "acap: off" leaves it out; delete the rule, or write "acap: auto"`)
			case len(r.UsagePurposes) > 0:
				l.warn(r.Pos, "not-published", `only ACAP can say usage-purposes, and "acap: off" leaves it out; delete the rule, or write "acap: auto"`)
			}
		}
		for j := range r.Statements {
			s := &r.Statements[j]
			switch {
			case s.Usage == policy.Other && publish.ACAP == policy.Off:
				l.warn(s.Pos, "not-published", `only ACAP can say "other", and "acap: off" leaves it out; delete it here, or write "acap: auto"`)
			case !s.Usage.IsACAP() && publish.ContentUsage == policy.Off && publish.ContentSignal == policy.Off:
				l.warn(s.Pos, "not-published", `nobody is told about %s, as content-usage and content-signal are off; switch one of them on under publish, or delete this`, s.Usage)
			}
		}
	}
}

// qualifiers finds qualifiers that only ACAP can say.
func (l *linter) qualifiers() {
	seen := map[*policy.Qualifiers]bool{nil: true}
	l.each(func(_ int, s *policy.Statement) {
		if seen[s.Qualifiers] { // one entry of the file, for several paths
			return
		}
		seen[s.Qualifiers] = true
		lost := lostQualifiers(s.Usage, s.Qualifiers)
		if len(lost) == 0 {
			return
		}
		if l.p.spec.Publish.ACAP == policy.Off {
			l.warn(l.place(s), "qualifier-dropped", `only ACAP can say %s, and "acap: off" leaves it out, so nobody is told; write "acap: auto" under publish, or delete the qualifier`, list(lost, "and"))
			return
		}
		l.warn(l.place(s), "qualifier-dropped", "only the ACAP records in robots.txt can say %s; the headers and the page cannot, and search engines do not read ACAP; disallow %s if they must not do it without that condition", list(lost, "and"), s.Usage)
	})
}

// lostQualifiers are the qualifiers of a permission that the rules of search
// engines have no words for. A date is kept: the server changes the answer on
// that day.
func lostQualifiers(u policy.Usage, q *policy.Qualifiers) (lost []string) {
	for _, text := range q.Strings() {
		name, value, _ := strings.Cut(text, "=")
		switch policy.QualifierName(name) {
		case policy.QualifierTimeLimit:
			if strings.HasPrefix(value, "until-2") {
				continue
			}
		case policy.QualifierMaxLength:
			if u == policy.PresentSnippet && strings.HasSuffix(value, "-chars") {
				continue
			}
		case policy.QualifierProhibitedModification:
			if value == "translation" {
				continue
			}
		}
		lost = append(lost, text)
	}
	return lost
}

// exemptions finds permissions for some crawlers that headers and pages cannot
// tell, because what those say to everyone holds for these crawlers too.
func (l *linter) exemptions() {
	var general []placed
	l.each(func(rule int, s *policy.Statement) {
		if !s.Allow && s.Usage != policy.Crawl && l.who[rule].everyone {
			general = append(general, placed{rule, s})
		}
	})
	if len(general) == 0 {
		return
	}
	l.each(func(rule int, s *policy.Statement) {
		r := &l.rules[rule]
		if !s.Allow || s.Usage == policy.Crawl || l.told[s.Pos] || l.who[rule].everyone {
			return
		}
		for _, g := range general {
			if !l.spend(1) {
				return
			}
			if !speaksOf(g.s.Usage, s.Usage) {
				continue
			}
			if narrow, ok := inner(s.Pattern, g.s.Pattern); ok && l.exempts(rule, s, g, narrow) {
				l.warn(s.Pos, "exemption-not-told", "%s is disallowed for everyone (line %d), and the page and its headers cannot make an exception: they tell %s the same; only robots.txt tells the difference; instead of everyone, name those whom line %d is meant for",
					s.Usage, g.s.Pos.Line, forText(r), g.s.Pos.Line)
				return
			}
		}
	})
}

// speaksOf reports whether a statement about one usage answers for another.
func speaksOf(about, usage policy.Usage) bool {
	return about == usage || about == policy.Present && usage.IsPresentation() || about == policy.Other
}

// inner is the narrower of two patterns, if one covers the other.
func inner(p, q pathpattern.Pattern) (pathpattern.Pattern, bool) {
	switch {
	case covers(p, q):
		return q, true
	case covers(q, p):
		return p, true
	}
	return pathpattern.Pattern{}, false
}

func (l *linter) exempts(rule int, s *policy.Statement, g placed, path pathpattern.Pattern) bool {
	r := &l.rules[rule]
	hosts := l.who[rule].hosts
	if len(r.Hosts) == 0 {
		hosts = l.who[g.rule].hosts
	}
	for _, host := range hosts {
		if l.decide(0, host, sample(path), s.Usage).Verdict != policy.Disallowed {
			continue
		}
		for _, id := range l.someCrawlers(r) {
			if d := l.decide(id, host, sample(path), s.Usage); d.Verdict == policy.Allowed && d.Rule == r {
				return true
			}
		}
	}
	return false
}

// hostOverridden finds rules for hosts that a rule for narrower audiences on every
// host overrides.
func (l *linter) hostOverridden() {
	allows := map[policy.Usage][]placed{}
	l.each(func(rule int, s *policy.Statement) {
		if r := &l.rules[rule]; s.Allow && len(r.Hosts) == 0 && !l.who[rule].everyone {
			allows[s.Usage] = append(allows[s.Usage], placed{rule, s})
		}
	})
	if len(allows) == 0 {
		return
	}
	l.each(func(rule int, s *policy.Statement) {
		r := &l.rules[rule]
		if s.Allow || len(r.Hosts) == 0 || !l.who[rule].everyone && !l.who[rule].group {
			return
		}
		for _, a := range allows[s.Usage] {
			if l.told[s.Pos] || !l.spend(1) {
				return
			}
			narrow, ok := inner(s.Pattern, a.s.Pattern)
			if !ok {
				continue
			}
			other := &l.rules[a.rule]
			for _, id := range l.someCrawlers(other) {
				d := l.decide(id, l.who[rule].hosts[0], sample(narrow), s.Usage)
				if d.Verdict == policy.Allowed && d.Rule == other && l.speaksTo(rule, id) {
					who := l.policy.CrawlerInfo(id).Token
					l.warn(s.Pos, "host-overridden", "this does not hold for %s on %s: line %d allows %s on every host, and a rule that names a crawler more narrowly comes before one for a host; add %s to the names under for here",
						who, r.Hosts[0], a.s.Pos.Line, s.Usage, who)
					break
				}
			}
		}
	})
}

// speaksTo reports whether a rule's audiences include a crawler.
func (l *linter) speaksTo(rule int, id policy.CrawlerID) bool {
	if id == 0 || l.who[rule].everyone {
		return id != 0
	}
	for _, a := range l.rules[rule].For {
		if slices.Contains(l.crawlersOf(a), id) {
			return true
		}
	}
	return false
}

// acapPublished reports whether robots.txt carries ACAP records.
func (l *linter) acapPublished() bool {
	if l.p.spec.Publish.ACAP != policy.Auto {
		return l.p.spec.Publish.ACAP == policy.On
	}
	for i := range l.rules {
		r := &l.rules[i]
		requests := len(r.Requests) > 0 && l.p.spec.Publish.ActionRequests == policy.On
		if r.PermissionsReference != "" || requests || slices.ContainsFunc(r.Statements, func(s policy.Statement) bool {
			return s.Usage.IsACAP() && s.Usage != policy.Crawl || s.Qualifiers != nil
		}) {
			return true
		}
	}
	return false
}

// acapScopes finds paths of one rule that readers of ACAP rank otherwise than
// readers of RFC 9309, or take for the same.
func (l *linter) acapScopes() {
	if !l.acapPublished() {
		return
	}
	for i := range l.rules {
		var lists [2][]*policy.Statement
		for j := range l.rules[i].Statements {
			s := &l.rules[i].Statements[j]
			switch {
			case !s.Usage.IsACAP():
			case s.Allow:
				lists[1] = append(lists[1], s)
			default:
				lists[0] = append(lists[0], s)
			}
		}
		for _, d := range lists[0] {
			for _, a := range lists[1] {
				if !l.spend(1) {
					return
				}
				if a.Usage == d.Usage && (unusual(a.Pattern) || unusual(d.Pattern)) {
					l.acapPair(a, d)
				}
			}
		}
	}
}

// unusual reports a pattern that ACAP may rank otherwise: among plain lower-case
// paths the longest is the narrowest.
func unusual(p pathpattern.Pattern) bool {
	text := p.String()
	return p.Wild() || p.Anchored() || strings.ToLower(text) != text
}

func (l *linter) acapPair(a, d *policy.Statement) {
	p, q := a.Pattern.String(), d.Pattern.String()
	if !l.spend(len(p)*len(q)/16) || !overlap(strings.ToLower(p), strings.ToLower(q)) {
		return
	}
	later, first := a, d
	if d.Pos.Line > a.Pos.Line {
		later, first = d, a
	}
	if !overlap(p, q) {
		l.warn(later.Pos, "acap-ranks-differently", "readers of ACAP do not tell upper from lower case, so to them this path and the one in line %d meet; choose paths that differ by more than case", first.Pos.Line)
		return
	}
	allowed := len(p) >= len(q)
	if acapAllows := narrower(p, q) < 0; allowed == acapAllows {
		return
	}
	result := "disallowed"
	if !allowed {
		result = "allowed"
	}
	l.warn(later.Pos, "acap-ranks-differently", "where both this path and the one in line %d match, the longer one wins, but readers of ACAP take the page for %s; avoid wildcards in one of the two", first.Pos.Line, result)
}
