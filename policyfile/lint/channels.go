// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
)

// notPublished reports parts of rules if the only channel that could express them is switched off.
func (l *linter) notPublished() {
	publish := l.Policy.Spec().Publish
	only := channels.Only()
	check := func(at policy.Pos, what string) {
		if !only.On(&publish) {
			l.report("not-published", at, fmt.Sprintf(`only %s can express %s, and %[1]s is off; write "%[3]s" under publish, or delete the key`, only.Name, what, only.Records.SwitchOn))
		}
	}
	for i := range l.rules {
		r := &l.rules[i]
		if len(r.Requests) > 0 && publish.ActionRequests == policy.Off {
			l.report("not-published", r.Requests[0].Pos, fmt.Sprintf(`the action requests of this rule are not published, because %s says that such requests are not ready for use. If you have agreed with the crawler's operator to use them, write "action-requests: on" under publish; otherwise delete them`, only.Document))
		} else if len(r.Requests) > 0 {
			check(r.Requests[0].Pos, "requests")
		}
		if r.PermissionsReference != "" {
			check(r.Pos, "permissions-reference")
		} else if len(r.UsagePurposes) > 0 {
			check(r.Pos, "usage-purposes")
		}
		for j := range r.Statements {
			switch s := &r.Statements[j]; {
			case s.Usage == policy.Other:
				check(s.Pos, `"other"`)
			case s.Usage.IsRight() && !channels.Published(&publish, s.Usage):
				l.report("not-published", s.Pos, fmt.Sprintf(`no channel publishes %s; switch on %s under publish, or delete this line`, s.Usage, english.List(registerKeys(), "or")))
			}
		}
	}
}

// registerKeys lists the keys of the channels that publish all usages for AI and search.
func registerKeys() (keys []string) {
	for _, f := range rights.Vocabularies {
		keys = append(keys, f.Key)
	}
	return keys
}

// noElements reports rules about pages for crawlers that are not known to read meta tags.
func (l *linter) noElements() {
	for i := range l.rules {
		r := &l.rules[i]
		inPages := len(r.EngineRules) > 0 || slices.ContainsFunc(r.Statements, func(s policy.Statement) bool {
			return s.Usage == policy.Index || s.Usage == policy.Follow || s.Usage == policy.Preserve || s.Usage == policy.Present || s.Usage.IsPresentation()
		})
		var names []string
		var at policy.Pos
		for j, a := range r.For {
			c, ok := l.Catalog.Lookup(a.Name)
			if inPages && ok && a.Kind == policy.ForToken && c.RobotsOnly && !c.ReadsMeta && !channels.CarriesAll(&l.Policy.Spec().Publish) {
				l.report("not-published", l.Sources[i].Audiences[j], fmt.Sprintf(`no crawler fetches pages with the token %s, so headers and meta tags cannot name it; name the crawler that fetches for %s, or delete this line`, c.Token, c.Operator))
			}
			info := l.Policy.CrawlerInfo(l.Policy.Crawler(a.Name))
			if inPages && ok && a.Kind == policy.ForToken && !info.InTags() && !c.RobotsOnly && !c.FromPolicy {
				names, at = append(names, c.Token), l.Sources[i].Audiences[j]
			}
		}
		if len(names) > 0 {
			l.report("no-meta-tag", at, fmt.Sprintf(`pages do not get a meta tag for %s, because no documentation says that the crawler reads such a tag. The rule is only in the header X-Robots-Tag. If the crawler reads meta tags with its name, write "%s: {reads-meta: true}" under "crawlers"`,
				english.Some(names, shown), names[0]))
		}
	}
}

// eachQualified calls visit for every permission with qualifiers. It calls visit once for each entry of the file.
func (l *linter) eachQualified(visit func(rule int, s *policy.Statement)) {
	seen := map[*policy.Qualifiers]bool{nil: true}
	l.each(func(rule int, s *policy.Statement) {
		if !seen[s.Qualifiers] {
			seen[s.Qualifiers] = true
			visit(rule, s)
		}
	})
}

func (l *linter) timeLimits() {
	l.eachQualified(func(_ int, s *policy.Statement) {
		if limit := s.Qualifiers.TimeLimit; limit.Passed(l.Now) {
			l.report("time-limit-passed", l.pos(s), fmt.Sprintf("the allow entry ended on %s, and %s has been disallowed since; choose a later date, or write the usage under disallow without time-limit", limit.Last.Format("2 January 2006"), s.Usage))
		}
	})
}

// lostQualifiers reports qualifiers that can only be expressed by special records in robots.txt, which search engines
// do not read.
func (l *linter) lostQualifiers() {
	only := channels.Only()
	l.eachQualified(func(_ int, s *policy.Statement) {
		lost := unknownToSearch(s.Usage, s.Qualifiers)
		switch {
		case len(lost) == 0:
		case !only.On(&l.Policy.Spec().Publish):
			l.report("qualifier-dropped", l.pos(s), fmt.Sprintf(`only %s can express %s, and %[1]s is off; write "%[3]s" under publish, or delete the qualifier`, only.Name, english.List(lost, "and"), only.Records.SwitchOn))
		default:
			l.report("qualifier-dropped", l.pos(s), fmt.Sprintf("only the %s records in robots.txt can express %s, and search engines do not read %[1]s. If this condition is essential to you, disallow %[3]s", only.Name, english.List(lost, "and"), s.Usage))
		}
	})
}

// unknownToSearch lists the qualifiers of q that cannot be converted to rules that search engines know. It leaves out
// an end date, because the server itself ends the permission at that date.
func unknownToSearch(u policy.Usage, q *policy.Qualifiers) (lost []string) {
	for _, text := range q.Strings() {
		name, value, _ := strings.Cut(text, "=")
		said := map[policy.QualifierName]bool{
			policy.QualifierTimeLimit:              strings.HasPrefix(value, "until-2"),
			policy.QualifierMaxLength:              u == policy.PresentSnippet && strings.HasSuffix(value, "-chars"),
			policy.QualifierProhibitedModification: value == "translation",
		}
		if !said[policy.QualifierName(name)] {
			lost = append(lost, text)
		}
	}
	return lost
}

// exemptions reports entries that allow a usage for some crawlers, while another rule disallows it for everyone.
// Headers and meta tags cannot express such an exception, because these crawlers also obey the rules for everyone in
// headers and meta tags.
func (l *linter) exemptions() {
	l.each(func(rule int, s *policy.Statement) {
		if !s.Allow || s.Usage == policy.Crawl || l.reported[s.Pos] || l.reach[rule].everyone {
			return
		}
		for _, usage := range append(usagesOf(s.Usage), policy.Other) {
			for _, g := range l.overlapping(s.Pattern, usage, false) {
				if !l.reach[g.rule].everyone || l.budget <= 0 {
					continue
				}
				if narrow, ok := inner(s.Pattern, g.s.Pattern); ok && l.exempts(rule, s, g, narrow) {
					channels := "No header or meta tag"
					if s.Usage.IsRight() {
						channels = "Only robots.txt"
					}
					all, line := l.everyone(g.rule)
					l.report("exemption-not-published", s.Pos, fmt.Sprintf("%s is disallowed for %[5]s (line %[2]d). %[3]s can make an exception for %[4]s; in line %[6]d, replace %[5]s with the names of the crawlers that you want to restrict",
						s.Usage, g.s.Pos.Line, channels, audienceText(&l.rules[rule]), all, line))
					return
				}
			}
		}
	})
}

// everyone returns the audience of a rule that means all crawlers (everyone or everyone-else), and the line of this
// audience.
func (l *linter) everyone(rule int) (audience policy.Audience, line int) {
	r := &l.rules[rule]
	i := slices.IndexFunc(r.For, func(a policy.Audience) bool { return a.Tier() == policy.TierEveryone })
	return r.For[i], l.Sources[rule].Audiences[i].Line
}

func inner(p, q pathpattern.Pattern) (pathpattern.Pattern, bool) {
	switch {
	case p.Covers(q):
		return q, true
	case q.Covers(p):
		return p, true
	}
	return pathpattern.Pattern{}, false
}

func (l *linter) exempts(rule int, s *policy.Statement, g placed, path pathpattern.Pattern) bool {
	r := &l.rules[rule]
	hosts := l.reach[rule].hosts
	if len(r.Hosts) == 0 {
		hosts = l.reach[g.rule].hosts
	}
	for _, host := range hosts {
		if l.decide(0, host, path.Example(), s.Usage).Verdict != policy.Disallowed {
			continue
		}
		for _, id := range l.sampleCrawlers(r) {
			if d := l.decide(id, host, path.Example(), s.Usage); d.Verdict == policy.Allowed && d.Rule == r {
				return true
			}
		}
	}
	return false
}
