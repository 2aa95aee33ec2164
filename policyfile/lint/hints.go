// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

type obstacle struct {
	code    string
	allow   placed
	deny    placed
	host    string
	region  []pathpattern.Pattern // patterns of the paths that both the permission and the prohibition match
	blocked []policy.CrawlerID
}

const (
	maxMet      = 64
	maxRegions  = 3
	maxBlocked  = 400
	maxPatterns = 3
)

// stillClosed reports entries that allow paths, although another rule still disallows some of them. It leaves out cases
// that an author probably expects, and cases that a test of the policy file expects.
func (l *linter) stillClosed() {
	var found []obstacle
	l.each(func(rule int, s *policy.Statement) {
		if s.Allow && l.budget > 0 {
			found = append(found, l.obstacles(placed{rule, s})...)
		}
	})
	for _, group := range grouped(found) {
		l.hint(group)
	}
}

func (l *linter) obstacles(a placed) (found []obstacle) {
	r := &l.rules[a.rule]
	denials := l.overlapping(a.s.Pattern, a.s.Usage, false)
	slices.SortStableFunc(denials, func(x, y placed) int {
		return cmp.Or(x.s.Pos.Line-y.s.Pos.Line, x.s.Pos.Column-y.s.Pos.Column)
	})
	for _, d := range denials[:min(len(denials), maxMet)] {
		host, ok := hostsMeet(r, &l.rules[d.rule])
		if d.rule == a.rule || !ok {
			continue
		}
		o := obstacle{allow: a, deny: d, host: host}
		if slices.ContainsFunc(l.sampleCrawlers(r), func(id policy.CrawlerID) bool { return l.stands(&o, id) }) {
			found = append(found, o)
		}
	}
	return found
}

// stands looks at a crawler on the paths that both entries of the obstacle o match. It reports whether the disallow
// entry decides there, and the author may not expect that. If so, stands fills the fields code and blocked of o.
func (l *linter) stands(o *obstacle, id policy.CrawlerID) bool {
	if !l.isFor(o.deny.rule, id) || !l.spend(1) {
		return false
	}
	if o.region == nil {
		o.region = overlap(o.allow.s.Pattern, o.deny.s.Pattern)
	}
	if len(o.region) == 0 || l.budget <= 0 || l.decide(id, o.host, o.region[0].Example(), o.allow.s.Usage).Statement != o.deny.s {
		return false // allowed, or disallowed by a narrower line, which is reported instead
	}
	if o.code = l.obstacleCode(o, id); o.code == "" || l.expected(o) {
		return false
	}
	o.blocked = l.blocked(o, id)
	return true
}

// obstacleCode returns the code of the message that explains why the allow entry of o does not override the disallow
// entry. It returns "" if authors expect that. They expect it if the disallow entry names the crawler more closely.
// They also expect it if both entries are for the same crawlers, and the disallow entry has a longer path or a narrower
// host.
func (l *linter) obstacleCode(o *obstacle, id policy.CrawlerID) string {
	ra, rd := &l.rules[o.allow.rule], &l.rules[o.deny.rule]
	allowed, by := l.Policy.NamedBy(ra, id)
	denied, than := l.Policy.NamedBy(rd, id)
	switch {
	case allowed > denied:
		return ""
	case allowed == denied && (allowed != policy.TierGroup || by.Kind == than.Kind && strings.EqualFold(by.Name, than.Name)):
		return ""
	case hostRank(rd, o.host) > hostRank(ra, o.host):
		return "disallowed-on-host"
	case allowed == denied:
		return "neither-narrower"
	case than.Kind == policy.ForAI && !by.NarrowsAI():
		return "neither-narrower"
	case o.allow.s.Pattern.Covers(o.deny.s.Pattern):
		return "still-disallowed"
	}
	return "partly-disallowed"
}

// hostRank returns a number that is larger if a rule names a host more narrowly. It returns 0 if the rule does not name
// the host.
func hostRank(r *policy.Rule, host string) int {
	rank := 0
	for _, h := range r.Hosts {
		if h.Covers(host) {
			n := len(h)
			if !h.Wildcard() {
				n += 1000
			}
			rank = max(rank, n)
		}
	}
	return rank
}

func overlap(p, q pathpattern.Pattern) []pathpattern.Pattern {
	if narrow, ok := inner(p, q); ok {
		return []pathpattern.Pattern{narrow}
	}
	all, ok := pathpattern.Intersect(p, q, maxRegions)
	if !ok {
		return nil
	}
	return all
}

// blocked lists crawlers that may still not use the paths, although the allow entry of o is for them. The caller has
// already found one of them, known, which is the first one in the list.
func (l *linter) blocked(o *obstacle, known policy.CrawlerID) []policy.CrawlerID {
	ids := []policy.CrawlerID{known}
	path := o.region[0].Example()
	for _, a := range l.rules[o.allow.rule].For {
		for _, id := range l.crawlersOf(a) {
			if len(ids) >= maxBlocked || l.budget <= 0 {
				return ids
			}
			if l.isFor(o.deny.rule, id) && l.decide(id, o.host, path, o.allow.s.Usage).Verdict == policy.Disallowed {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func (l *linter) expected(o *obstacle) bool {
	for _, e := range l.Policy.Spec().Expect {
		if e.Allowed || e.Usage != o.allow.s.Usage || !l.spend(1) ||
			!o.allow.s.Pattern.Match(e.Path) || !o.deny.s.Pattern.Match(e.Path) {
			continue
		}
		if e.Host != "" && !ruleHasHost(&l.rules[o.deny.rule], e.Host) {
			continue
		}
		agents := policy.Rule{For: []policy.Audience{e.Agent}}
		if l.audiencesMeet(&agents, &l.rules[o.allow.rule]) {
			return true
		}
	}
	return false
}

func ruleHasHost(r *policy.Rule, host string) bool {
	return len(r.Hosts) == 0 || slices.ContainsFunc(r.Hosts, func(h policy.Host) bool { return h.Covers(host) })
}

// grouped divides the obstacles into groups, and the linter gives one hint for each group. A group has all obstacles of
// one allow entry. Allow entries with the same path and the same disallow entries share a group. If a whole host is
// disallowed, all paths of one rule share a group.
func grouped(all []obstacle) (groups [][]obstacle) {
	byAllow := groupBy(all, func(o obstacle) string { return fmt.Sprintf("%s %p", o.code, o.allow.s) })
	for _, same := range groupBy(byAllow, met) {
		groups = append(groups, slices.Concat(same...))
	}
	return groups
}

// met returns a key for the obstacles of one allow entry. Allow entries with equal keys share a hint, see grouped.
func met(group []obstacle) string {
	o := &group[0]
	var b strings.Builder
	if fmt.Fprint(&b, o.code, o.allow.s.Usage); o.code == "disallowed-on-host" && opensNothing(group) {
		fmt.Fprint(&b, " in rule ", o.allow.rule)
	} else {
		fmt.Fprint(&b, o.allow.s.Pattern)
	}
	for _, o := range group {
		fmt.Fprint(&b, " ", o.deny.s.Pos)
	}
	return b.String()
}

// groupBy groups elements with equal keys. The groups are in the order of their first elements.
func groupBy[T any](all []T, key func(T) string) (groups [][]T) {
	at := map[string]int{}
	for _, v := range all {
		k := key(v)
		if _, ok := at[k]; !ok {
			at[k] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[k]] = append(groups[at[k]], v)
	}
	return groups
}

func opensNothing(group []obstacle) bool {
	return slices.ContainsFunc(group, func(o obstacle) bool { return o.deny.s.Pattern.Covers(o.allow.s.Pattern) })
}

func (l *linter) hint(group []obstacle) {
	o := &group[0]
	var ids []policy.CrawlerID
	var paths, lines, hosts []string
	var denials, allows []*policy.Statement
	covered := false // a prohibition covers the whole permission
	for i := range group {
		g := &group[i]
		ids = append(ids, g.blocked...)
		if !slices.Contains(allows, g.allow.s) {
			allows = append(allows, g.allow.s)
		}
		if !slices.Contains(denials, g.deny.s) {
			denials = append(denials, g.deny.s)
			paths = append(paths, readable(g.deny.s.Pattern))
			lines = append(lines, strconv.Itoa(g.deny.s.Pos.Line))
			if rd := &l.rules[g.deny.rule]; len(rd.Hosts) > 0 && !slices.Contains(hosts, string(rd.Hosts[0])) {
				hosts = append(hosts, string(rd.Hosts[0]))
			}
			covered = covered || g.deny.s.Pattern.Covers(g.allow.s.Pattern)
		}
	}
	names := l.someTokens(ids)
	usage := o.allow.s.Usage
	closing := fmt.Sprintf("(%s)", lineText(slices.Compact(lines)))
	here := "this allow entry"
	if len(allows) > 1 {
		at := make([]string, 0, len(allows)-1)
		for _, a := range allows[1:] {
			at = append(at, strconv.Itoa(a.Pos.Line))
		}
		here = fmt.Sprintf("this allow entry and to those in %s", lineText(at))
		if len(at) == 1 {
			here = fmt.Sprintf("this allow entry and to the one in %s", lineText(at))
		}
	}
	var message string
	switch o.code {
	case "still-disallowed":
		fix := fmt.Sprintf("To allow it, add %s to %s", quote(o.deny.s.Pattern.String()), here)
		if len(paths) > 1 {
			fix = "To allow one of them, add its path to " + here
		}
		message = fmt.Sprintf("%s still may not %s %s %s. %s", names, usage, english.Some(paths, shown), closing, fix)
	case "partly-disallowed":
		what, it := fmt.Sprintf("addresses that match both %s and %s", readable(o.allow.s.Pattern), quote(o.deny.s.Pattern.String())), "them"
		if len(paths) > 1 {
			what, it = fmt.Sprintf("addresses that match %s and also one of %s", readable(o.allow.s.Pattern), english.Some(paths, shown)), "those that match "+paths[0]
		}
		message = fmt.Sprintf("%s still may not %s %s %s. To allow %s, allow %s here", names, usage, what, closing, it, patternList(o.region))
	case "neither-narrower":
		message = l.neitherNarrower(o, names)
	case "disallowed-on-host":
		what, fix := "This allow entry has no effect on "+hosts[0], "write this entry"
		if !covered || len(hosts) > 1 {
			what, fix = fmt.Sprintf("This allow entry does not allow %s on %s", english.Some(paths, shown), english.Some(hosts, shown)), "allow that path"
		}
		message = fmt.Sprintf(`%s, because %s is disallowed for %s there %s. To allow it there, %s in a rule with "hosts: %s"`, what, usage, audienceText(&l.rules[o.deny.rule]), closing, fix, AsWritten(hosts[0]))
	}
	delete(l.reported, o.allow.s.Pos) // report every kind of hint for a place
	l.report(o.code, o.allow.s.Pos, message)
}

func (l *linter) neitherNarrower(o *obstacle, names string) string {
	ra, rd := &l.rules[o.allow.rule], &l.rules[o.deny.rule]
	_, allowed := l.Policy.NamedBy(ra, o.blocked[0])
	_, denied := l.Policy.NamedBy(rd, o.blocked[0])
	where, token := "", l.tokens(o.blocked)
	if !o.region[0].IsAll() {
		where = " on " + readable(o.region[0])
	}
	stays, it := "stays", "it"
	if len(token) > 1 {
		stays, it = "stay", "one of them"
	}
	return fmt.Sprintf(`%s %s disallowed%s: %s is allowed here, but %s is not (line %d), and neither name is more specific than the other. To allow %s, write a rule "for: %s" that allows "%s: %s"`,
		names, stays, where, allowed, denied, o.deny.s.Pos.Line, it, token[0], o.allow.s.Usage, AsWritten(o.region[0].String()))
}

func readable(p pathpattern.Pattern) string {
	if p.Wild() || p.Anchored() {
		return quote(p.String())
	}
	return p.String()
}

func patternList(patterns []pathpattern.Pattern) string {
	texts := make([]string, 0, len(patterns))
	for _, p := range patterns {
		texts = append(texts, quote(p.String()))
	}
	return english.List(texts, "and")
}

func lineText(lines []string) string {
	if len(lines) == 1 {
		return "line " + lines[0]
	}
	return "lines " + english.Some(lines, shown)
}

// droppedQualifiers reports permissions that have no qualifier, but override a wider permission that has one.
func (l *linter) droppedQualifiers() {
	wider := map[policy.Usage]bool{}
	l.eachQualified(func(_ int, s *policy.Statement) { wider[s.Usage] = true })
	if len(wider) == 0 {
		return
	}
	l.each(func(rule int, s *policy.Statement) {
		if !s.Allow || l.budget <= 0 {
			return
		}
		for _, usage := range usagesOf(s.Usage) {
			if !wider[usage] {
				continue
			}
			for _, w := range l.covering(s.Pattern, usage, true) {
				if w.s.Qualifiers != nil && l.dropsLimit(rule, s, w) {
					return
				}
			}
		}
	})
}

func (l *linter) dropsLimit(rule int, s *policy.Statement, w placed) bool {
	ra, rw := &l.rules[rule], &l.rules[w.rule]
	host, ok := hostsMeet(ra, rw)
	if !ok || w.rule == rule && w.s.Pattern == s.Pattern {
		return false
	}
	for _, id := range l.sampleCrawlers(ra) {
		if !l.spend(l.cost) || !l.isFor(w.rule, id) {
			continue
		}
		d := l.decide(id, host, s.Pattern.Example(), s.Usage)
		if d.Verdict != policy.Allowed || d.Statement != s {
			continue
		}
		var lost []string
		holds := d.Qualifiers().Strings()
		for _, q := range w.s.Qualifiers.Strings() {
			name, _, _ := strings.Cut(q, "=")
			if !slices.ContainsFunc(holds, func(h string) bool { return strings.HasPrefix(h, name+"=") }) {
				lost = append(lost, strings.Replace(q, "=", ": ", 1))
			}
		}
		if len(lost) > 0 {
			l.report("limit-dropped", s.Pos, fmt.Sprintf(`The condition "%s" of line %d does not apply here, because this narrower allow entry has no condition. To keep the condition, write %s: {paths: %s, %s} here`,
				lost[0], l.pos(w.s).Line, s.Usage, AsWritten(s.Pattern.String()), join(lost)))
			return true
		}
	}
	return false
}

func (l *linter) isFor(rule int, id policy.CrawlerID) bool {
	n, _ := l.Policy.NamedBy(&l.rules[rule], id)
	return n != policy.NotNamed
}
