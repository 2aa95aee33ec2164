// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// reportedCrawlers are the crawlers in the report if the options do not name crawlers.
var reportedCrawlers = []string{"Googlebot", "GPTBot"}

func (a *auditor) fillPages() {
	readers := []reader{{name: otherCrawler, names: []string{OwnToken}}}
	asked := a.o.As
	if len(asked) == 0 {
		asked = reportedCrawlers
	}
	for _, name := range asked {
		if c, ok := a.known.Lookup(name); ok {
			readers = append(readers, readerOf(c))
		}
	}
	for _, p := range a.pages {
		info := PageInfo{URL: p.url.String()}
		for _, r := range readers {
			info.Readings = append(info.Readings, a.reading(p, r))
		}
		a.report.Pages = append(a.report.Pages, info)
	}
}

// reading returns the rules that a crawler reads on a page. It uses the response to a request with the crawler's
// User-Agent. Without such a request, it uses the response to the audit's own request.
func (a *auditor) reading(p *page, r reader) Reading {
	t := Reading{Crawler: r.name, RobotsTxt: "may crawl"}
	v := a.rules.decide(r, target(p.url))
	if !v.Allowed {
		t.RobotsTxt = "may not crawl"
	}
	if v.Line > 0 {
		t.RobotsTxt += fmt.Sprintf(" (line %d)", v.Line)
	}
	got, own := p.got[r.name], p.got[OwnToken]
	if r.name == otherCrawler {
		got = own
	}
	if got != nil {
		t.Status = got.outcome()
	}
	if !got.ok() {
		got = own
	}
	if !got.ok() {
		return t
	}
	s := a.read(got)
	t.fetched = true
	t.Headers = s.x.forCrawler(r.names).union(s.tag.forCrawler(r.names)).String()
	t.Page = s.meta.forCrawler(r.names).String()
	t.Usage = s.preferences().String()
	return t
}

// WriteText writes the report as text for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, examined with %s", r.URL, english.Count(r.Requests, "request"))
	if r.Policy != "" {
		fmt.Fprintf(&b, " and compared with %s", r.Policy)
	}
	fmt.Fprintf(&b, "\nrobots.txt: %s\n", r.RobotsTxt)
	for _, p := range r.Pages {
		fmt.Fprintf(&b, "\n%s\n", p.URL)
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "  crawler\trobots.txt\theaders\tpage\tAI and search\tresponse")
		for _, c := range p.Readings {
			none := "-"
			if !c.fetched {
				none = "?"
			}
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\n", c.Crawler, c.RobotsTxt, cmp.Or(c.Headers, none), cmp.Or(c.Page, none), cmp.Or(c.Usage, none), cmp.Or(c.Status, "not asked"))
		}
		_ = t.Flush() // writing to a strings.Builder does not fail
	}
	for _, same := range alike(r.Findings) {
		f := same[0]
		fmt.Fprintf(&b, "\n%s: %s [%s]\n", f.Severity, f.Message, f.Code)
		for i, other := range same {
			if i == maxAlike {
				fmt.Fprintf(&b, "  and %d more\n", len(same)-i)
				break
			}
			fmt.Fprintf(&b, "  %s\n", other.URL)
		}
		if f.Fix != "" {
			fmt.Fprintf(&b, "  what to do: %s\n", f.Fix)
		}
	}
	c := r.Clean()
	fmt.Fprintf(&b, "\n%s\n", strings.Join(append([]string{c.Text()}, c.Details()...), "\n"))
	for _, g := range c.Gaps() {
		b.WriteString(g.Sentence() + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cleanSubject holds the data that [clean] judges.
type cleanSubject struct {
	Report claim.Known[*Report]
}

// clean is the claim that the audit found no error.
var clean = claim.Register("audit-clean", func(s cleanSubject) claim.Finding {
	r, _ := s.Report.Get()
	f := claim.Finding{Fails: r.count(Error) > 0}
	f.Text = fmt.Sprintf("%s, %s, %s", english.Count(r.count(Error), "error"), english.Count(r.count(Warning), "warning"), english.Count(r.count(Hint), "hint"))
	f.Unjudged = f.Text
	if r.asNoCrawler() {
		f.Details = []string{"The audit did not test whether crawlers are blocked: add --as " + strings.Join(reportedCrawlers, ",") + " to request the pages with the names of these crawlers."}
	}
	return f
})

// asNoCrawler reports whether the report has pages, and none of them was requested with the User-Agent of a crawler.
func (r *Report) asNoCrawler() bool {
	return len(r.Pages) > 0 && !slices.ContainsFunc(r.Pages, func(p PageInfo) bool {
		return slices.ContainsFunc(p.Readings, func(x Reading) bool { return x.Crawler != otherCrawler && x.Status != "" })
	})
}

// Clean returns the claim that the audit found no error. If the audit could not read some pages, the claim also says
// how many.
func (r *Report) Clean() claim.Claim {
	var c claim.Coverage
	unanswered := 0
	for _, p := range r.Pages {
		for _, x := range p.Readings {
			unanswered += map[bool]int{true: 1}[x.Crawler == otherCrawler && !x.fetched]
		}
	}
	if unanswered > 0 {
		c.Gaps = append(c.Gaps, claim.Gap{Name: "pages-not-read", What: english.Count(unanswered, "page") + " could not be read", Close: "see the findings about these pages in the report"})
	}
	return claim.Judge(clean, cleanSubject{claim.Read(r, c)})
}

// maxAlike limits the number of URLs that the text shows for one message.
const maxAlike = 5

// alike groups findings that differ only in their URL. The groups are ordered by their first findings.
func alike(all []Finding) (groups [][]Finding) {
	at := map[Finding]int{}
	for _, f := range all {
		key := f
		key.URL = ""
		i, ok := at[key]
		if !ok {
			i = len(groups)
			at[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], f)
	}
	return groups
}

// MarshalJSON adds the numbers of findings, and the claim that WriteText writes last.
func (r *Report) MarshalJSON() ([]byte, error) {
	type fields Report
	return json.Marshal(struct {
		*fields
		Faults  int `json:"errors"`
		Warning int `json:"warnings"`
		Notices int `json:"hints"`
		// RefusalsLookedAt is true if pages were requested with the User-Agents of crawlers.
		RefusalsLookedAt bool        `json:"blocks_looked_at"`
		Clean            claim.Claim `json:"clean"`
	}{(*fields)(r), r.count(Error), r.count(Warning), r.count(Hint), !r.asNoCrawler(), r.Clean()})
}

// String describes how robots.txt was served.
func (i RobotsInfo) String() string {
	if i.Error != "" {
		return "no response: " + i.Error
	}
	s := fmt.Sprintf("%d, %s, %d bytes", i.Status, cmp.Or(i.ContentType, "no content type"), i.Bytes)
	if len(i.Redirects) > 0 {
		s += ", redirected to " + i.Redirects[len(i.Redirects)-1]
	}
	if i.Cached != "" {
		s += ", from a cache (" + i.Cached + ")"
	}
	return s
}

// Severity is the severity of a finding: error, warning or hint.
type Severity string

// The severities are in descending order.
const (
	Error   Severity = "error"   // the channels contradict each other, the policy or a standard
	Warning Severity = "warning" // may be intended; the message says what to check
	Hint    Severity = "hint"    // for information; a change is not necessary
)

// Finding is a problem or hint that an audit reports.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"` // stable identifier, which docs/reference/audit.md explains
	URL      string   `json:"url"`
	Crawler  string   `json:"crawler,omitempty"` // product token, if the finding concerns one crawler
	Message  string   `json:"message"`
	Fix      string   `json:"fix,omitempty"`
}

// severityOf maps each code to its default severity.
var severityOf = map[string]Severity{
	"robots-unreachable": Error, "robots-forbidden": Error, "robots-redirect": Error, "robots-html": Error,
	"robots-content-type": Error, "robots-encoding": Error, "robots-too-large": Error, "robots-syntax": Error,
	"robots-stale": Error, "robots-rewritten": Error, "robots-not-compared": Error, "robots-varies": Error,
	"sitemap-disallowed": Error, "sitemap-noindex": Error, "sitemap-error": Error, "sitemap-unreadable": Error,
	"home-noindex": Error, "noindex-hidden": Error, "channels-disagree": Error, "usage-disagrees": Error,
	"headers-lost": Error, "meta-lost": Error, "not-lifted": Error, "usage-lost": Error, "page-stale": Error,
	"cached-for-another": Error, "vary-missing": Error, "not-blocked": Error, "blocked": Error,
	"meta-misnamed": Error, "meta-in-body": Error,
	"audit-blocked": Warning, "page-error": Warning,
	"robots-missing": Hint, "robots-lighthouse": Hint, "robots-changed": Hint, "sitemap-redirect": Hint,
	"unknown-rule": Hint, "not-audited": Hint, "noindex-not-sampled": Hint, "other-host": Hint, "other-document": Hint,
}

func finding(code, url, crawler, message, fix string) Finding {
	severity, ok := severityOf[code]
	if !ok {
		panic("audit: unknown code " + code)
	}
	return Finding{Severity: severity, Code: code, URL: url, Crawler: crawler, Message: message, Fix: fix}
}

func (f Finding) as(s Severity) Finding {
	f.Severity = s
	return f
}

// sortFindings sorts findings by severity, errors first.
func sortFindings(fs []Finding) {
	order := []Severity{Error, Warning, Hint}
	slices.SortStableFunc(fs, func(a, b Finding) int { return slices.Index(order, a.Severity) - slices.Index(order, b.Severity) })
}
