// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// SummaryRow is a row of the text of a summary.
type SummaryRow struct {
	Label, Text string

	path bool // the row is about a path, and is left out if there are too many of them
}

// SummaryText returns a summary as the command "check" prints it. Each element of all is a set of hosts. If a row is
// not the same for all sets, it is printed in a section for the hosts of its set. A last section has the rows that are
// the same for all sets, and the rows in common. If brief is true, the text has only one path for each label, such as
// "may crawl:", and at most two of the sections for single sets.
func SummaryText(all []HostSummary, common []SummaryRow, brief bool) string {
	const mostHosts, mostPaths, mostPathsInFull = 2, 1, 50
	most := mostPathsInFull
	if brief {
		most = mostPaths
	}
	count := map[SummaryRow]int{} // the number of sets with this row
	rows := make([][]SummaryRow, len(all))
	for i := range all {
		rows[i] = all[i].rows(brief, len(all) == 1)
		for _, r := range rows[i] {
			count[r]++
		}
	}
	shared := slices.DeleteFunc(slices.Clone(rows[0]), func(r SummaryRow) bool { return count[r] < len(all) })
	var b strings.Builder
	shown, left := 0, 0
	for i := range all {
		own := slices.DeleteFunc(rows[i], func(r SummaryRow) bool { return count[r] == len(all) })
		switch {
		case len(own) == 0:
		case brief && shown == mostHosts:
			left++
		default:
			shown++
			writeSection(&b, english.Some(all[i].Hosts, 3), excepting(own, all[i:i+1]), most)
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, "and %s with other rules (--explain lists them)\n", english.Count(left, "more host group"))
	}
	head := "every host"
	if more := all[len(all)-1].More; more > 0 {
		fmt.Fprintf(&b, "%s of the policy: not looked at\n", english.Count(more, "more host"))
		head = "every host looked at"
	}
	writeSection(&b, head, append(excepting(shared, all), common...), most)
	return b.String()
}

// writeSection writes the rows for some hosts, with at most "most" paths for each label. If consecutive rows have the
// same label, only the first one shows it. Without rows, writeSection writes nothing.
func writeSection(b *strings.Builder, hosts string, rows []SummaryRow, most int) {
	if len(rows) > 0 {
		fmt.Fprintf(b, "%s:\n", hosts)
	}
	paths := map[string]int{}
	for _, r := range rows {
		if r.path {
			paths[r.Label]++
		}
	}
	label, shown := "", map[string]int{}
	for _, r := range rows {
		text := r.Text
		if r.path {
			if shown[r.Label]++; shown[r.Label] > most {
				continue
			}
			if left := paths[r.Label] - most; left > 0 && shown[r.Label] == most {
				text += fmt.Sprintf(" (and %s)", english.Count(left, "more path"))
			}
		}
		head := r.Label
		if head == label {
			head = ""
		}
		label = r.Label
		fmt.Fprintf(b, "  %-19s%s\n", head, text)
	}
}

func (s *HostSummary) rows(brief, alone bool) (rows []SummaryRow) {
	add := func(label, text string, path bool) { rows = append(rows, SummaryRow{label, text, path}) }
	crawl := questionAbout(policy.Crawl)
	for _, not := range []bool{false, true} {
		who, others := s.Crawl.of(not), s.Crawl.of(!not)
		text := ""
		switch {
		case who.isEmpty():
		case others.isEmpty():
			text = who.everyoneText()
		case !brief || len(who.crawlers) < len(others.crawlers) || len(who.crawlers) == len(others.crawlers) && !not:
			text = who.list()
		case alone && not:
			text = "everyone else"
		case alone: // the next row lists the others
			text = `everyone except the crawlers after "` + crawl.label(true) + `"`
		}
		if text != "" {
			add(crawl.label(not), text, false)
		}
		s.addPaths(crawl, not, add)
	}
	for i := range questions[1:] {
		q := &questions[1:][i]
		if who := q.plain(s).of(true); !who.isEmpty() {
			add(q.mayNot, who.String(), false)
		}
		s.addPaths(q, true, add)
		s.addPaths(q, false, add)
	}
	if s.MorePaths > 0 {
		add("not compared:", english.Count(s.MorePaths, "more path")+" in the rules", false)
	}
	for _, g := range s.Google {
		add("Google shows:", g.text(), g.Path != "")
	}
	if len(s.AISearch) > 0 {
		add("AI search:", english.Some(s.AISearch, 3)+" may not crawl, so their answers do not show the pages", false)
	}
	if len(s.Unclassified) > 0 {
		add("no category:", english.Some(s.Unclassified, 3)+" remain allowed, because no source states their purpose; list them with \"caddy robots-policy crawlers none\"", false)
	}
	return rows
}

// addPaths adds a row for each path that some clients may use differently from a page that no rule mentions. If not is
// true, the row lists the clients that may use only such a page. Otherwise it lists the clients that may use only the
// path. Other rows list the clients that may not crawl any page.
func (s *HostSummary) addPaths(q *question, not bool, add func(label, text string, path bool)) {
	for i := range s.Paths {
		if p := &s.Paths[i]; p.about == q && (not && p.Lost || !not && p.Gained) {
			who := p.of(not)
			if !who.unlisted {
				who.crawlers = p.changed[not]
			}
			add(q.label(not), p.Path+", for "+who.String(), true)
		}
	}
}

// excepting adds ", except for some paths" to rows about a page that no rule mentions. It looks at the paths that the
// rules for the given sets of hosts mention. It adds the remark to a row if the row is not true of one of these paths
// for some clients.
func excepting(rows []SummaryRow, sets []HostSummary) []SummaryRow {
	rows = slices.Clone(rows)
	for i := range rows {
		r := &rows[i]
		for j := range sets {
			if !r.path && slices.ContainsFunc(sets[j].Paths, func(p PathSummary) bool { return p.isException(r.Label) }) {
				r.Text += ", except for some paths"
				break
			}
		}
	}
	return rows
}

// isException reports whether the row with this label, such as "may crawl:", is not true of the paths of p for some
// clients. For example, they may crawl a page that no rule mentions, but not these paths.
func (p *PathSummary) isException(label string) bool {
	return label == p.about.may && p.Lost || label == p.about.mayNot && p.Gained
}

func (q *question) label(not bool) string {
	if not {
		return q.mayNot
	}
	return q.may
}

func (g *Shown) text() string {
	where := ""
	if g.Path != "" {
		where = " of " + g.Path
	}
	switch {
	case g.Unread && where == "":
		return "no content of a page, because Googlebot may not crawl it"
	case g.Unread:
		return "no content" + where + ", because Googlebot may not crawl it"
	case g.Rules == "noindex":
		return "no page" + where + " (noindex)"
	case g.Rules != "":
		return "pages" + where + " with " + g.Rules
	case where == "":
		return "all of a page"
	}
	return "all" + where
}

// party holds the clients that may use a page in one way, or those that may not.
type party struct {
	crawlers, others []CategoryCount
	unlisted         bool // unlisted clients belong to it
}

func (a *Answers) of(not bool) party {
	if not {
		return party{a.MayNot, a.May, !a.Unknown}
	}
	return party{a.May, a.MayNot, a.Unknown}
}

func (p party) isEmpty() bool { return len(p.crawlers) == 0 && !p.unlisted }

// String names the party as short as possible.
func (p party) String() string {
	switch {
	case !p.unlisted:
		return p.list()
	case len(p.others) > 0:
		return "everyone except " + p.exceptions()
	}
	return "everyone"
}

// exceptions names the crawlers that do not belong to the party: whole categories of crawlers, and a few of the other
// crawlers.
func (p party) exceptions() string {
	const most = 3
	var whole party
	var names []string
	n := 0
	for _, c := range p.others {
		if c.Names == nil {
			whole.crawlers = append(whole.crawlers, c)
			continue
		}
		names, n = append(names, c.Names...), n+c.Count
	}
	names = names[:min(len(names), most)]
	if whole.crawlers != nil {
		names = slices.Insert(names, 0, whole.list())
		n++
	}
	if n > len(names) {
		return strings.Join(names, ", ") + " and " + english.Count(n-len(names), "more crawler")
	}
	return english.List(names, "and")
}

// everyoneText names a party that has all clients.
func (p party) everyoneText() string {
	n := 0
	for _, c := range p.crawlers {
		n += c.Count
	}
	return fmt.Sprintf("everyone (%d known crawlers, and unlisted clients)", n)
}

// categoryTexts names the groups of crawlers that have no category of the catalog.
var categoryTexts = map[string]string{string(crawlers.CategoryNone): "crawlers without a category", uncataloged: "crawlers outside the catalog"}

// list names the categories of the party's crawlers.
func (p party) list() string {
	var parts []string
	for _, c := range p.crawlers {
		number := fmt.Sprintf("%d of %d", c.Count, c.Total)
		if c.Category == uncataloged {
			number = fmt.Sprint(c.Count)
		} else if c.Count == c.Total {
			number = fmt.Sprintf("all %d", c.Count)
		}
		if c.Count <= len(c.Names) {
			number += ": " + english.Some(c.Names, 3)
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", cmp.Or(categoryTexts[c.Category], c.Category), number))
	}
	if p.unlisted {
		parts = append(parts, "unlisted clients")
	}
	return strings.Join(parts, ", ")
}
