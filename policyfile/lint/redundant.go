// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

const maxNames = 16

// redundant reports statements that can be deleted, because another statement with the same verdict covers their paths,
// crawlers and hosts. It leaves out a statement that also overrides a statement with the opposite verdict, because
// deleting it could change decisions.
func (l *linter) redundant() {
	lines := map[int]int{} // by index of the reported problem: number of further unnecessary statements in its rule
	first := map[int]int{} // by rule: index of the reported problem in l.problems
	l.each(func(rule int, s *policy.Statement) {
		if s.Usage == policy.Other || s.Resource != "" || s.Local != "" || l.budget <= 0 {
			return
		}
		t, ok := l.impliedBy(rule, s)
		if !ok {
			return
		}
		if at, ok := first[rule]; ok {
			lines[at]++
			return
		}
		n := len(l.problems)
		verdict := "disallows"
		if s.Allow {
			verdict = "allows"
		}
		what := quote(t.s.Pattern.String())
		if t.s.Usage != s.Usage {
			what = t.s.Usage.String() + " of " + what
		}
		l.report("changes-nothing", s.Pos, fmt.Sprintf("%s has no effect here: line %d already %s %s for %s; delete this entry", quote(s.Pattern.String()), t.s.Pos.Line, verdict, what, audienceText(&l.rules[t.rule])))
		if len(l.problems) > n {
			first[rule] = n
		}
	})
	for at, more := range lines {
		also := "1 more line of this rule also has no effect"
		if more > 1 {
			also = fmt.Sprintf("%d more lines of this rule also have no effect", more)
		}
		l.problems[at].Message += " (" + also + ")"
	}
}

// impliedBy returns a statement that makes s unnecessary.
func (l *linter) impliedBy(rule int, s *policy.Statement) (placed, bool) {
	r := &l.rules[rule]
	if len(r.For) > maxNames || len(r.Hosts) > maxNames {
		return placed{}, false
	}
	for _, usage := range usagesOf(s.Usage) {
		for _, t := range l.covering(s.Pattern, usage, s.Allow) {
			if t.s != s && l.implies(t, rule, s) {
				return t, !l.contested(rule, s)
			}
		}
	}
	return placed{}, false
}

// opensNothing reports permissions for paths that no rule disallows. Their authors may think that such a permission
// disallows all other paths.
func (l *linter) opensNothing() {
	for i := range l.rules {
		r := &l.rules[i]
		if slices.ContainsFunc(r.Statements, func(s policy.Statement) bool {
			return s.Usage == policy.Crawl && (!s.Allow || s.Pattern.IsAll() || s.Qualifiers != nil)
		}) {
			continue
		}
		for j := range r.Statements {
			s := &r.Statements[j]
			if s.Usage != policy.Crawl || s.Local != "" || l.isExpected(s) {
				continue
			}
			if !l.contested(i, s) {
				l.report("allows-nothing", s.Pos, fmt.Sprintf(`this allow entry has no effect, because no rule disallows %s for %s; to allow only these paths, add "disallow: {crawl: /}" to this rule`, quote(s.Pattern.String()), audienceText(r)))
				break
			}
		}
	}
}

// isExpected reports whether a test expects that a path of a permission is allowed.
func (l *linter) isExpected(s *policy.Statement) bool {
	return slices.ContainsFunc(l.Policy.Spec().Expect, func(e policy.Expectation) bool {
		return e.Allowed && e.Usage == s.Usage && s.Pattern.Match(e.Path)
	})
}

// usagesOf lists the usages whose statements apply to u.
func usagesOf(u policy.Usage) []policy.Usage {
	if u.IsPresentation() {
		return []policy.Usage{u, policy.Present}
	}
	return []policy.Usage{u}
}

// implies reports whether the statement t has the same effect as s for all crawlers of s.
func (l *linter) implies(t placed, rule int, s *policy.Statement) bool {
	r, q := &l.rules[rule], &l.rules[t.rule]
	if !l.spend(1) || !sameFilters(r, q) || qualifierText(s) != qualifierText(t.s) || s.OverSite != t.s.OverSite || l.modeOf(q) < l.modeOf(r) {
		return false
	}
	if !l.includesAll(q, r) {
		return false
	}
	// If two statements imply each other, the later one is reported.
	same := t.s.Pattern == s.Pattern && t.s.Usage == s.Usage
	if same && t.rule == rule {
		return false // another check reports a path that is listed twice
	}
	return !same || t.s.Pos.Line < s.Pos.Line || !l.includesAll(r, q)
}

func (l *linter) includesAll(r, q *policy.Rule) bool {
	return coversHosts(r, q) && len(q.For) <= maxNames &&
		!slices.ContainsFunc(q.For, func(a policy.Audience) bool { return !l.includes(r, a) })
}

func qualifierText(s *policy.Statement) string { return strings.Join(s.Qualifiers.Strings(), " ") }

// modeOf returns the mode in which the server handles requests that the rule disallows.
func (l *linter) modeOf(r *policy.Rule) policy.Mode {
	return l.Policy.Mode(policy.Decision{Rule: r})
}

// includes reports whether the rule r is for all crawlers of the audience a. If r is only for everyone-else, it
// includes only a rule for everyone-else. The reason is that some allow entries override a rule for everyone-else, but
// not a rule for everyone.
func (l *linter) includes(r *policy.Rule, a policy.Audience) bool {
	for _, b := range r.For {
		if b.Kind == policy.ForEveryone || b.Kind == a.Kind && strings.EqualFold(b.Name, a.Name) {
			return true
		}
		if a.Kind != policy.ForToken {
			continue
		}
		if id := l.Policy.Crawler(a.Name); id != 0 && (b.Tier() == policy.TierGroup || b.Kind == policy.ForAI) && l.hasFamily(b, id) {
			return true
		}
	}
	return false
}

func (l *linter) hasFamily(group policy.Audience, head policy.CrawlerID) bool {
	for id, c := range l.Policy.Crawlers {
		if (id == head || l.Policy.Family(id) == head) && (!l.spend(1) || !group.Includes(c)) {
			return false
		}
	}
	return true
}

func coversHosts(a, b *policy.Rule) bool {
	if len(a.Hosts) == 0 {
		return true
	}
	if len(b.Hosts) == 0 || len(a.Hosts) > maxNames || len(b.Hosts) > maxNames {
		return false
	}
	return !slices.ContainsFunc(b.Hosts, func(h policy.Host) bool {
		return !slices.ContainsFunc(a.Hosts, func(g policy.Host) bool { return g.Covers(string(h)) })
	})
}

func hostsMeet(a, b *policy.Rule) (string, bool) {
	switch {
	case len(a.Hosts) == 0 && len(b.Hosts) == 0:
		return "", true
	case len(a.Hosts) == 0:
		return b.Hosts[0].Example(), true
	case len(b.Hosts) == 0:
		return a.Hosts[0].Example(), true
	}
	for _, g := range a.Hosts[:min(len(a.Hosts), maxNames)] {
		for _, h := range b.Hosts[:min(len(b.Hosts), maxNames)] {
			switch {
			case g.Covers(string(h)):
				return h.Example(), true
			case h.Covers(string(g)):
				return g.Example(), true
			}
		}
	}
	return "", false
}

// contested reports whether another statement can contradict s: its pattern overlaps the pattern of s, it has the
// opposite verdict, and it applies to some of the same crawlers and hosts. If s allows a usage, statements that allow
// it with qualifiers are also contrary to s. contested returns true if the budget is spent.
func (l *linter) contested(rule int, s *policy.Statement) bool {
	usages := usagesOf(s.Usage)
	if s.Usage == policy.Present {
		usages = presentations
	}
	for _, usage := range usages {
		others := l.overlapping(s.Pattern, usage, !s.Allow)
		if s.Allow {
			for _, o := range l.overlapping(s.Pattern, usage, true) {
				if o.s.Qualifiers != nil {
					others = append(others, o)
				}
			}
		}
		for _, o := range others {
			if _, meet := hostsMeet(&l.rules[o.rule], &l.rules[rule]); meet && l.audiencesMeet(&l.rules[o.rule], &l.rules[rule]) {
				return true
			}
		}
	}
	return l.budget <= 0
}

var presentations = func() []policy.Usage {
	usages := []policy.Usage{policy.Present}
	for _, u := range policy.Usages() {
		if u.IsPresentation() {
			usages = append(usages, u)
		}
	}
	return usages
}()

func (l *linter) audiencesMeet(a, b *policy.Rule) bool {
	if len(a.For) > maxNames || len(b.For) > maxNames {
		return true
	}
	for _, x := range a.For {
		for _, y := range b.For {
			if l.audienceMeets(x, y) {
				return true
			}
		}
	}
	return false
}

func (l *linter) audienceMeets(x, y policy.Audience) bool {
	cx, cy := x.Tier(), y.Tier()
	if cx > cy {
		x, y, cx, cy = y, x, cy, cx
	}
	if cx == policy.TierToken && cy == policy.TierToken {
		return strings.EqualFold(x.Name, y.Name) || l.isFamily(l.Policy.Crawler(x.Name), y.Name) || l.isFamily(l.Policy.Crawler(y.Name), x.Name)
	}
	if cx == policy.TierToken && cy < policy.TierEveryone {
		return y.Includes(l.Policy.CrawlerInfo(l.Policy.Crawler(x.Name))) || y.Kind == policy.ForPurpose
	}
	return true
}

// ties reports disallow entries for a path that another rule allows for the same crawlers on the same hosts.
func (l *linter) ties() {
	l.each(func(rule int, s *policy.Statement) {
		if s.Allow || l.budget <= 0 {
			return
		}
		for _, a := range l.covering(s.Pattern, s.Usage, true) {
			ra, rs := &l.rules[a.rule], &l.rules[rule]
			if a.s.Pattern != s.Pattern || a.rule == rule || a.s.Qualifiers != nil || !sameFilters(ra, rs) || !l.namesAll(ra, rs) {
				continue
			}
			later, first := a.s, s
			if s.Pos.Line > a.s.Pos.Line {
				later, first = s, a.s
			}
			l.report("tie", later.Pos, fmt.Sprintf("for %s, this entry and line %d contradict each other: one allows %s of %s, and the other disallows it. The allow entry wins. Delete the disallow entry in line %d, which has no effect, or the allow entry in line %d",
				audienceText(rs), first.Pos.Line, s.Usage, quote(s.Pattern.String()), s.Pos.Line, a.s.Pos.Line))
			return
		}
	})
}

func (l *linter) namesAll(r, q *policy.Rule) bool {
	return l.spend(len(q.For)+len(q.Hosts)) && max(len(r.For), len(q.For), len(r.Hosts), len(q.Hosts)) <= maxNames &&
		(len(q.Hosts) > 0 || len(r.Hosts) == 0) &&
		!slices.ContainsFunc(q.Hosts, func(h policy.Host) bool { return !slices.Contains(r.Hosts, h) }) &&
		!slices.ContainsFunc(q.For, func(a policy.Audience) bool {
			return !slices.ContainsFunc(r.For, func(b policy.Audience) bool { return b.Kind == a.Kind && strings.EqualFold(b.Name, a.Name) })
		})
}

// onlyDisallowed reports rules that only disallow paths, such as /a/ for Googlebot, while another rule disallows wider
// paths for everyone-else, such as /. The authors may think that Googlebot may crawl the rest of /. But everyone-else
// includes Googlebot, because no rule allows it anything.
func (l *linter) onlyDisallowed() {
	named := l.allowedTokens()
	l.each(func(rule int, s *policy.Statement) {
		r := &l.rules[rule]
		if s.Allow || s.Usage != policy.Crawl || len(r.For) > maxNames || l.budget <= 0 {
			return
		}
		for _, a := range r.For {
			if a.Kind != policy.ForToken || named[strings.ToLower(a.Name)] {
				return
			}
		}
		for _, e := range l.covering(s.Pattern, policy.Crawl, false) {
			other := &l.rules[e.rule]
			if e.s.Pattern == s.Pattern || !slices.ContainsFunc(other.For, func(a policy.Audience) bool { return a.Kind == policy.ForEveryoneElse }) || !coversHosts(other, r) {
				continue
			}
			if !slices.ContainsFunc(l.sampleCrawlers(r), func(id policy.CrawlerID) bool {
				return l.decide(id, l.reach[rule].hosts[0], e.s.Pattern.Example(), policy.Crawl).Statement != e.s
			}) {
				l.report("only-disallowed", s.Pos, fmt.Sprintf(`%s may not crawl the rest of %s either: line %d disallows it for everyone-else, which includes crawlers whose rules allow nothing. To allow the rest, add "allow: {crawl: %s}" here`,
					audienceText(r), readable(e.s.Pattern), e.s.Pos.Line, AsWritten(e.s.Pattern.String())))
				return
			}
		}
	})
}

// allowedTokens returns the tokens, in lower case, of rules that allow crawling of some path.
func (l *linter) allowedTokens() map[string]bool {
	tokens := map[string]bool{}
	for i := range l.rules {
		r := &l.rules[i]
		if !slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Allow && s.Usage == policy.Crawl }) {
			continue
		}
		for _, a := range r.For {
			if a.Kind == policy.ForToken {
				tokens[strings.ToLower(a.Name)] = true
			}
		}
	}
	return tokens
}
