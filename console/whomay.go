// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// whoMayData holds the data of the page "Who may", which shows a grid of crawlers and sections.
type whoMayData struct {
	Sections []section
	Rows     []gridRow
	Kinds    []crawlers.Category
	Usages   []policy.Usage
	Usage    string
	Cell     *cell
	Shown    int
	Known    int // number of crawlers that could have a row, without the filters
	All      bool
	More     string // link to the next page
	Controls []site.ControlState
}

type gridRow struct {
	asker
	First bool // true for the first row of its category
	Link  string
	Cells []gridCell
}

type gridCell struct {
	Verdict verdict
	Link    string
	Open    bool
}

// cell holds the explanation of the chosen cell, which is shown next to the grid.
type cell struct {
	Name     string
	Section  section
	Verdict  verdict
	Parts    []cellPart
	Answer   *answered
	Identity string  // the identity whose requests are in Traffic
	Traffic  *counts // nil if requests are not recorded
	Period   string  // the period of Traffic in words
	AskLink  string
	ListLink string
	Decide   []decideLinks
}

// cellPart describes the pages of a section that have the same verdict because of the same line of the policy.
type cellPart struct {
	Verdict verdict
	Shows   []string
	Rule    string
	Line    int
}

// maxGridRows limits the number of rows on one page of the grid.
const maxGridRows = 30

func whoMay(v *view) (*page, error) {
	d := &whoMayData{Kinds: append(crawlers.Categories(), crawlers.CategoryAI), Usage: cmp.Or(v.Param("usage"), "crawl"), All: v.Param("all") != ""}
	p := &page{template: "whomay", Title: "Who may", Lead: "No policy is loaded.", Scope: scope{Host: true}, Data: d}
	if v.Running == nil {
		return p, nil
	}
	u, ok := policy.ParseUsage(d.Usage)
	if !ok || u == policy.Other {
		u = policy.Crawl
	}
	d.Usage = u.String()
	for _, x := range policy.Usages() {
		if x != policy.Other {
			d.Usages = append(d.Usages, x)
		}
	}
	d.Sections = v.sections(u)
	rows, known := v.rows(d.All)
	d.Known = known
	rows, d.More = pageOf(v, rows, "from", maxGridRows)
	d.Shown = len(rows)
	for _, a := range rows {
		v.addRow(d, a, u)
	}
	d.Controls = v.controls("")
	p.Lead = d.lead()
	return p, nil
}

// lead returns a text with the numbers of crawlers that may use every section, no section, and some sections.
func (d *whoMayData) lead() string {
	all, none, unknown := 0, 0, 0
	for _, r := range d.Rows {
		open, notKnown := 0, 0
		for _, c := range r.Cells {
			open += map[string]int{"Allowed": 1, "Not stated": 1}[c.Verdict.Word]
			notKnown += map[bool]int{true: 1}[c.Verdict == verdicts["unknown"]]
		}
		switch {
		case notKnown > 0:
			unknown++
		case open == len(r.Cells):
			all++
		case open == 0:
			none++
		}
	}
	do, purpose := "crawl", ""
	if d.Usage != do {
		do, purpose = "use", " for “"+d.Usage+"”"
	}
	text := fmt.Sprintf("The grid has %s. %d of them may %s every section%s, %d no section, and %d some sections. ", plural(d.Shown, "crawler", "crawlers"), all, do, purpose, none, d.Shown-all-none-unknown)
	if unknown > 0 {
		text += "For " + plural(unknown, "crawler", "crawlers") + " this is not known yet. Where the policy has no rule, the site's own robots.txt applies, and Caddy has not read it yet. To make Caddy read it, open /robots.txt of the host once. "
	}
	return text + "Choose a cell to see the rule behind it."
}

// addRow adds the row for the crawler a to the grid. The row has one cell for each section, with the decision about the
// usage u. If the user chose a cell of this row, addRow also adds the explanation of this cell.
func (v *view) addRow(d *whoMayData, a asker, u policy.Usage) {
	row := gridRow{asker: a}
	if a.id != 0 && !a.impostor() {
		row.Link = v.Link("crawler", "name", a.Name)
	}
	for i := range d.Sections {
		s := &d.Sections[i]
		word, parts := v.evaluate(&a, s, u)
		c := gridCell{Verdict: verdicts[word], Link: v.cellLink(&a, s)}
		if v.Param("crawler") == a.Name && v.Param("section") == s.Key() {
			c.Open = true
			d.Cell = v.openCell(a, *s, word, parts, u)
		}
		row.Cells = append(row.Cells, c)
	}
	row.First = len(d.Rows) == 0 || d.Rows[len(d.Rows)-1].Kind != a.Kind
	d.Rows = append(d.Rows, row)
}

func (v *view) cellLink(a *asker, s *section) string {
	q := maps.Clone(v.q)
	q.Set("crawler", a.Name)
	q.Set("section", s.Key())
	return "?" + q.Encode() + "#cell"
}

// These constants are the names of rows that are not about a crawler of the catalog.
const (
	anyOther  = "Any other crawler"
	impostors = "Impostors"
)

// rows returns the crawlers for the rows of the grid. If all is true, or if the URL has a search term, these are all
// crawlers of the policy. Otherwise they are the well-known crawlers, the crawlers that sent requests in the last 30
// days, and the crawlers that a rule names. The search term and the category in the URL then leave out the crawlers
// that do not match. Without a search term and category, the last rows are about any other crawler and about impostors.
// known is the number of crawlers in the policy that could have a row.
func (v *view) rows(all bool) (rows []asker, known int) {
	q, kind := strings.ToLower(v.Param("q")), v.Param("category")
	chosen := policy.ParseAudience("category:" + kind)
	came := v.came()
	ruled := map[policy.CrawlerID]bool{}
	for _, r := range v.Running.Spec().Rules {
		for _, a := range r.For {
			if a.Kind == policy.ForToken {
				ruled[v.Running.Site.Policy.Crawler(a.Name)] = true
			}
		}
	}
	rank := map[string]int{}
	for i, k := range crawlers.Categories() {
		rank[string(k)] = i + 1
	}
	for id, c := range v.Running.Site.Policy.Crawlers {
		if c.RobotsOnly && !ruled[id] {
			continue
		}
		known++
		switch {
		case kind != "" && !chosen.Includes(c):
		case q != "" && !strings.Contains(strings.ToLower(c.Token), q) && !strings.Contains(strings.ToLower(c.Operator), q):
		case q == "" && !all && !came[c.Token] && !ruled[id] && !slices.Contains(wellKnown, c.Token):
		default:
			rows = append(rows, asker{Name: c.Token, Kind: c.Category, id: id, identity: v.likely(id)})
		}
	}
	slices.SortStableFunc(rows, func(a, b asker) int {
		return cmp.Or(cmp.Compare(cmp.Or(rank[a.Kind], len(rank)+1), cmp.Or(rank[b.Kind], len(rank)+1)), strings.Compare(a.Kind, b.Kind), strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)))
	})
	if q == "" && kind == "" {
		rows = append(rows, asker{Name: anyOther, Kind: "Not known by name"})
		if v.Running.Spec().Enforcement.Impostors > policy.ModeOff {
			rows = append(rows, asker{Name: impostors, Kind: "Not known by name", id: v.Running.Site.Policy.Crawler("Googlebot"), identity: policy.Impostor})
		}
	}
	return rows, known
}

// came returns the crawlers that sent requests in the last 30 days.
func (v *view) came() map[string]bool {
	all := map[string]bool{}
	for _, c := range v.seen() {
		if c.Category != activity.CategoryUnlisted && v.Now.Sub(c.Last).Hours() < 30*24 {
			all[c.Name] = true
		}
	}
	return all
}

// openCell returns the explanation of the cell for the crawler a and the section s. The explanation has the rules that
// allow or disallow the pages of the section, and the output of every channel for one of these pages.
func (v *view) openCell(a asker, s section, word string, parts []cellVerdict, u policy.Usage) *cell {
	c := &cell{Name: a.Name, Section: s, Verdict: verdicts[word], Identity: string(a.recorded()), Traffic: v.sectionTraffic(&a, &s), Period: v.sectionPeriod()}
	shown := parts[0]
	for _, p := range parts {
		rule, line := "", 0
		if p.decision.Rule != nil {
			rule = v.Running.Site.RuleName(p.decision.Rule)
			line = p.decision.Rule.Pos.Line
			if p.decision.Statement != nil {
				line = p.decision.Statement.Pos.Line
			}
		}
		i := slices.IndexFunc(c.Parts, func(x cellPart) bool {
			return x.Verdict == verdicts[p.Verdict] && x.Rule == rule && x.Line == line
		})
		if i < 0 {
			i = len(c.Parts)
			c.Parts = append(c.Parts, cellPart{Verdict: verdicts[p.Verdict], Rule: rule, Line: line})
		}
		c.Parts[i].Shows = append(c.Parts[i].Shows, p.shows)
		if shown.Verdict == "allowed" && p.Verdict != "allowed" {
			shown = p
		}
	}
	path := shown.path
	page := &url.URL{Scheme: "https", Host: s.Host, Path: path}
	if plain, query, ok := strings.Cut(path, "?"); ok {
		page.Path, page.RawQuery = plain, query
	}
	agent := a.Name
	if a.id == 0 {
		agent = "AnyOtherCrawler/1.0"
	}
	if a.impostor() {
		agent = "Googlebot"
	}
	c.Answer = v.explain(site.Question{Agent: agent, URL: page, Now: v.Now, Below: v.Running.below, Verify: func(crawlers.Verification) (policy.Identity, string) {
		return a.identity, ""
	}})
	c.AskLink = v.Link("ask", "agent", agent, "url", page.String())
	if a.id != 0 && !a.impostor() {
		c.ListLink = v.Link("crawler", "name", a.Name)
	}
	if u == policy.Crawl && !a.impostor() {
		c.Decide = v.decideLinks(&a, &s)
	}
	return c
}
