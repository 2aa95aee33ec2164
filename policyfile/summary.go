// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// HostSummary summarizes the policy for some hosts, for pages that no rule mentions. It tells who may crawl and index
// these pages, and who may use them for AI training or AI answers.
type HostSummary struct {
	Hosts []string `json:"hosts"`          // hosts as in the policy, or "any other host" or "every host"
	More  int      `json:"more,omitempty"` // hosts that are not in Hosts
	Crawl Answers  `json:"crawl"`
	Index Answers  `json:"index"`
	Train Answers  `json:"train_ai"`
	AIUse Answers  `json:"ai_use"`
}

// Answers lists the crawlers that may do something and those that may not.
type Answers struct {
	// May and MayNot count known crawlers by category, the largest first.
	May     []CategoryCount `json:"may"`
	MayNot  []CategoryCount `json:"may_not"`
	Unknown bool            `json:"unlisted_may"` // an unlisted client may do it
}

// CategoryCount is the number of crawlers of a category in one part of a summary.
type CategoryCount struct {
	Category string   `json:"category"`        // "other" for crawlers without one
	Count    int      `json:"count"`           // number of crawlers with this answer
	Total    int      `json:"total"`           // number of crawlers in the category
	Names    []string `json:"names,omitempty"` // at most ten; empty if it is the whole category
}

const maxSummaryHosts = 50

// Summary returns a summary for each host that rules name, and for all other hosts. Hosts with the same answers are
// together.
func (f *File) Summary(now time.Time) []HostSummary {
	var hosts []string
	seen := map[string]bool{}
	for i := range f.Spec.Rules {
		for _, h := range f.Spec.Rules[i].Hosts {
			if !seen[string(h)] {
				seen[string(h)] = true
				hosts = append(hosts, string(h))
			}
		}
	}
	asked := append(slices.Clone(hosts[:min(len(hosts), maxSummaryHosts)]), "")
	x := newEvaluator(f.Effect, now)
	var all []HostSummary
	at := map[string]int{}
	for _, host := range asked {
		example := policy.Host(host).Example()
		of := func(u policy.Usage) Answers { return x.answers(example, plainPage, u) }
		s := HostSummary{Crawl: of(policy.Crawl), Index: of(policy.Index), Train: of(policy.TrainAI), AIUse: of(policy.AIUse)}
		key := fmt.Sprint(s)
		i, ok := at[key]
		if !ok {
			i = len(all)
			at[key] = i
			all = append(all, s)
		}
		switch {
		case host != "":
			all[i].Hosts = append(all[i].Hosts, host)
		case len(hosts) > 0:
			all[i].Hosts = append(all[i].Hosts, "any other host")
		default:
			all[i].Hosts = append(all[i].Hosts, "every host")
		}
	}
	all[len(all)-1].More = len(hosts) + 1 - len(asked)
	return all
}

// plainPage is the path of a page that no rule mentions.
var plainPage = pathpattern.All.Example()

func (x *evaluator) answers(host, path string, u policy.Usage) (s Answers) {
	total := map[string]int{}
	names := map[bool]map[string][]string{true: {}, false: {}}
	for _, m := range x.ask(policy.Audience{Kind: policy.ForEveryone}, host) {
		q := policy.Query{Crawler: m.id, Identity: policy.Verified, Host: host, Path: path, Usage: u, Now: x.now}
		may := !x.effect.Answer(q).Disallowed
		for _, id := range m.alike {
			if id == 0 {
				s.Unknown = may
				continue
			}
			c := x.policy.CrawlerInfo(id)
			total[c.Category]++
			names[may][c.Category] = append(names[may][c.Category], c.Name())
		}
	}
	s.May, s.MayNot = counts(names[true], total), counts(names[false], total)
	return s
}

// mostNamed is the maximum number of crawlers of a category that a summary names.
const mostNamed = 10

func counts(names map[string][]string, total map[string]int) []CategoryCount {
	counts := make([]CategoryCount, 0, len(names)) // [] rather than null
	for kind, tokens := range names {
		c := CategoryCount{Category: cmp.Or(kind, "other"), Count: len(tokens), Total: total[kind]}
		if c.Count < c.Total {
			slices.SortFunc(tokens, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
			c.Names = tokens[:min(len(tokens), mostNamed)]
		}
		counts = append(counts, c)
	}
	slices.SortFunc(counts, func(a, b CategoryCount) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(a.Category, b.Category))
	})
	return counts
}

// SummaryText returns a summary as the command "check" prints it: the hosts, and two to five lines for them. If brief
// is true, the longer list is replaced by "everyone else", and only two sets of hosts are shown.
func SummaryText(all []HostSummary, brief bool) string {
	const most = 2
	var b strings.Builder
	for i, s := range all {
		if brief && i == most {
			fmt.Fprintf(&b, "and %s with other rules (--explain lists them)\n", english.Count(len(all)-most, "more host group"))
			break
		}
		hosts := english.Some(s.Hosts, 3)
		if s.More > 0 {
			hosts += fmt.Sprintf(" (and %d more hosts, which are not shown)", s.More)
		}
		may, mayNot := s.Crawl.texts(brief)
		fmt.Fprintf(&b, "%s:\n", hosts)
		for i, who := range []string{may, mayNot} {
			if who != everyoneElse || len(all) == 1 {
				b.WriteString(SummaryRow([]string{"may crawl:", "may not crawl:"}[i], who))
			}
		}
		for _, more := range []struct {
			what string
			Answers
		}{{"may not index:", s.Index}, {"may not train AI:", s.Train}, {"not in AI answers:", s.AIUse}} {
			if mayNot := more.mayNot(); !mayNot.isEmpty() {
				b.WriteString(SummaryRow(more.what, mayNot.String()))
			}
		}
	}
	return b.String()
}

// SummaryRow returns a row of the text of a summary.
func SummaryRow(label, text string) string {
	return fmt.Sprintf("  %-19s%s\n", label, text)
}

func (s *Answers) texts(brief bool) (may, mayNot string) {
	may, mayNot = countText(s.May, s.Unknown), countText(s.MayNot, !s.Unknown)
	switch {
	case s.may().isEmpty():
		mayNot = everyoneText(s.MayNot)
	case s.mayNot().isEmpty():
		may = everyoneText(s.May)
	case brief && len(s.May) > len(s.MayNot):
		may = everyoneElse
	case brief:
		mayNot = everyoneElse
	}
	return may, mayNot
}

const everyoneElse = "everyone else"

const nobody = "nobody"

func everyoneText(counts []CategoryCount) string {
	n := 0
	for _, c := range counts {
		n += c.Count
	}
	return fmt.Sprintf("everyone (%d known crawlers, and unlisted clients)", n)
}

func countText(counts []CategoryCount, unknown bool) string {
	var parts []string
	for _, c := range counts {
		switch {
		case c.Count == c.Total:
			parts = append(parts, fmt.Sprintf("%s (all %d)", c.Category, c.Count))
		case c.Count <= len(c.Names):
			parts = append(parts, fmt.Sprintf("%s (%d of %d: %s)", c.Category, c.Count, c.Total, english.Some(c.Names, 3)))
		default:
			parts = append(parts, fmt.Sprintf("%s (%d of %d)", c.Category, c.Count, c.Total))
		}
	}
	if unknown {
		parts = append(parts, "unlisted clients")
	}
	if len(parts) == 0 {
		return nobody
	}
	return strings.Join(parts, ", ")
}

// Closed lists the paths and the enforced rules that a Summary leaves out.
type Closed struct {
	Crawl []string `json:"crawl,omitempty"` // patterns that some or all crawlers may not crawl, except for whole hosts
	Index []string `json:"index,omitempty"` // patterns that some or all crawlers may not index
	Train []string `json:"train_ai,omitempty"`
	AIUse []string `json:"ai_use,omitempty"`
	Open  []string `json:"allowed,omitempty"` // patterns that some or all crawlers may crawl
	// Blocked are the lines of rules that disallow crawling with the mode "block". Logged are the lines of rules that
	// do so with the mode "log". Asked are the lines of rules that only robots.txt states and the server does not
	// enforce.
	Blocked []int `json:"blocked_by_lines,omitempty"`
	Logged  []int `json:"logged_by_lines,omitempty"`
	Asked   []int `json:"asked_by_lines,omitempty"`
}

// Closed returns the paths that rules disallow or allow, and the enforced rules.
func (f *File) Closed() (c Closed) {
	add := func(list *[]string, s *policy.Statement) {
		if text := s.Pattern.String(); !s.Pattern.IsAll() && !slices.Contains(*list, text) {
			*list = append(*list, text)
		}
	}
	for i := range f.Spec.Rules {
		r := &f.Spec.Rules[i]
		closes := false
		for j := range r.Statements {
			switch s := &r.Statements[j]; {
			case s.Allow && s.Usage == policy.Crawl:
				add(&c.Open, s)
			case s.Allow:
			case s.Usage == policy.Crawl:
				closes = true
				add(&c.Crawl, s)
			case s.Usage == policy.Index:
				add(&c.Index, s)
			case s.Usage == policy.TrainAI:
				add(&c.Train, s)
			case s.Usage == policy.AIUse:
				add(&c.AIUse, s)
			}
		}
		if !closes {
			continue
		}
		lines := &c.Asked
		switch f.Policy.Mode(policy.Decision{Rule: r}) {
		case policy.ModeBlock:
			lines = &c.Blocked
		case policy.ModeLog:
			lines = &c.Logged
		case policy.ModeOff, policy.ModeUnset:
		}
		*lines = append(*lines, r.Pos.Line)
	}
	return c
}

// ClosedText returns the result of Closed as the command "check" prints it. paths is the maximum number of paths. It
// returns "" if there are no such paths and rules.
func (f *File) ClosedText(now time.Time, paths int) string {
	c := f.Closed()
	x := newEvaluator(f.Effect, now)
	answers := func(pattern string, u policy.Usage) Answers {
		return x.answers(f.hostOf(pattern, u).Example(), pathpattern.MustParse(pattern).Example(), u)
	}
	open := slices.DeleteFunc(slices.Clone(c.Open), func(pattern string) bool {
		plain := x.answers(f.hostOf(pattern, policy.Crawl).Example(), plainPage, policy.Crawl)
		return slices.Contains(c.Crawl, pattern) || answers(pattern, policy.Crawl).may().String() == plain.may().String()
	})
	text := ""
	for _, row := range []struct {
		head     string
		usage    policy.Usage
		patterns []string
		of       func(Answers) party
	}{
		{"may not crawl:", policy.Crawl, c.Crawl, Answers.mayNot},
		{"may crawl:", policy.Crawl, open, Answers.may},
		{"may not index:", policy.Index, c.Index, Answers.mayNot},
		{"may not train AI:", policy.TrainAI, c.Train, Answers.mayNot},
		{"not in AI answers:", policy.AIUse, c.AIUse, Answers.mayNot},
	} {
		text += f.pathsText(row.head, row.usage, row.patterns, paths, func(pattern string) party { return row.of(answers(pattern, row.usage)) })
	}
	if refused := c.refused(f.Spec.Enforcement); refused != "" {
		text += SummaryRow("blocked:", refused)
	}
	return text
}

// ShownText describes what search engines may show of a page that no rule mentions, on a host that no rule names. It
// also names some pages that they may show differently. The argument most limits the number of these pages.
func (f *File) ShownText(now time.Time, most int) string {
	q := policy.Query{Crawler: f.Policy.Crawler("Googlebot"), Identity: policy.Verified, Path: plainPage, Now: now}
	all := f.Effect.Shown(q).WithoutUnknown()
	text := shownOf(all, "")
	var others []string
	seen := map[string]bool{}
	for i := range f.Spec.Rules {
		r := &f.Spec.Rules[i]
		q.Host = ""
		if len(r.Hosts) > 0 {
			q.Host = r.Hosts[0].Example()
		}
		for pattern := range r.PagePatterns {
			q.Path = pattern.Example()
			where := pattern.String()
			if q.Host != "" {
				where += " on " + string(r.Hosts[0])
			}
			if part := f.Effect.Shown(q).WithoutUnknown(); part != all && !seen[where] {
				seen[where] = true
				others = append(others, shownOf(part, " of "+where))
			}
		}
	}
	if len(others) > most {
		others = append(others[:most], "other rules for "+english.Count(len(others)-most, "more path"))
	}
	return strings.Join(append([]string{text}, others...), "; ")
}

func shownOf(rules robotsrule.Set, where string) string {
	switch text := rules.String(); {
	case rules.Has("noindex"):
		return "no page" + where + " (noindex)"
	case text != "":
		return "pages" + where + " with " + text
	case where == "":
		return "all of a page"
	}
	return "all" + where
}

// A party holds the crawlers that get the same answer.
type party struct {
	crawlers, others []CategoryCount
	unlisted         bool // the party includes unlisted clients
}

func (s Answers) may() party    { return party{s.May, s.MayNot, s.Unknown} }
func (s Answers) mayNot() party { return party{s.MayNot, s.May, !s.Unknown} }

func (p party) isEmpty() bool { return len(p.crawlers) == 0 && !p.unlisted }

func (p party) String() string {
	switch {
	case !p.unlisted:
		return countText(p.crawlers, false)
	case len(p.others) > 0:
		return "everyone except " + countText(p.others, false)
	}
	return "everyone"
}

func (f *File) pathsText(head string, u policy.Usage, patterns []string, most int, of func(pattern string) party) string {
	var shown []string
	left := 0
	for _, pattern := range patterns {
		if len(shown) == most {
			left++
			continue
		}
		who := of(pattern)
		if who.isEmpty() {
			continue
		}
		where := pattern
		if host := f.hostOf(pattern, u); host != "" {
			where += " on " + string(host)
		}
		shown = append(shown, fmt.Sprintf("%s, for %s", where, who))
	}
	var b strings.Builder
	for i, text := range shown {
		if i == most-1 && left > 0 {
			text += fmt.Sprintf(" (and %s)", english.Count(left, "more path"))
		}
		b.WriteString(SummaryRow(head, text))
		head = ""
	}
	return b.String()
}

// hostOf returns a host of the first rule that has a pattern for a usage. It returns "" if that rule is for all hosts.
func (f *File) hostOf(pattern string, u policy.Usage) policy.Host {
	for i := range f.Spec.Rules {
		r := &f.Spec.Rules[i]
		if len(r.Hosts) > 0 && slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Usage == u && s.Pattern.String() == pattern }) {
			return r.Hosts[0]
		}
	}
	return ""
}

func (c *Closed) refused(e policy.Enforcement) string {
	answer := fmt.Sprintf("get %d", cmp.Or(e.Status, http.StatusForbidden))
	if e.Close {
		answer = "are disconnected"
	}
	who := nobody
	if e.Impostors == policy.ModeBlock {
		who = "only impostors"
	}
	switch {
	case len(c.Blocked) > 0 && len(c.Logged)+len(c.Asked) == 0:
		return "known crawlers " + answer + " wherever they may not crawl"
	case len(c.Blocked) > 0:
		return fmt.Sprintf("known crawlers %s by the %s; the other rules are not enforced", answer, rulesIn(c.Blocked))
	case len(c.Logged) > 0:
		return who + ` yet; the log says which ones would be. To answer 403, change "log" to "block"`
	case len(c.Asked) > 0:
		return who + `; robots.txt only asks crawlers to stay away. To answer 403, add "enforce: block" to a rule`
	}
	return ""
}

func rulesIn(lines []int) string {
	words := make([]string, len(lines))
	for i, n := range lines {
		words[i] = fmt.Sprint(n)
	}
	if len(words) == 1 {
		return "rule in line " + words[0]
	}
	return "rules in lines " + english.Some(words, 4)
}

// MaxMode returns the strictest mode that a server could apply under the policy. It considers the rules that disallow
// crawling, and the setting for impostors. Without any of them, it returns ModeOff.
func (f *File) MaxMode() policy.Mode {
	mode := max(f.Spec.Enforcement.Impostors, policy.ModeOff)
	closes := func(s policy.Statement) bool { return s.Usage == policy.Crawl && (!s.Allow || s.Qualifiers != nil) }
	for i := range f.Spec.Rules {
		if r := &f.Spec.Rules[i]; slices.ContainsFunc(r.Statements, closes) {
			mode = max(mode, f.Policy.Mode(policy.Decision{Rule: r}))
		}
	}
	return mode
}
