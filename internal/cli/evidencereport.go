// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	_ "embed"
	"html/template"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

//go:embed evidencereport.html
var reportHTML string

var reportPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("report").Funcs(template.FuncMap{
		"time":   func(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04:05") },
		"times":  times,
		"count":  func(n int64, word string) string { return english.Count(int(n), word) },
		"number": english.Number,
		"list":   publicationText,
		"by":     publishedBy,
		"line":   english.OneLine,
		"host":   hostText,
		"doc":    func(name string) string { return cmp.Or(name, site.RobotsTxt) },
		"short":  func(hash string) string { return hash[:min(12, len(hash))] },
		"key":    evidence.Fingerprint,
	}).Parse(reportHTML))
})

// evidenceReport holds the data of the HTML report, which is for people who are not engineers.
type evidenceReport struct {
	evidence.Question
	*evidence.Answer
	Check                *evidence.Check
	Whole                []claim.Claim // a claim about each log
	ByKey, ByAuthority   bool
	Done                 time.Time
	LeftOut              string
	Texts                []reportText
	Verified, Unverified bool // true if the report has crawlers with this identity
	Quiet                []evidence.Reading
}

// reportText is a text that was published.
type reportText struct {
	ID, Title, Text string
}

func reportOf(q evidence.Question, logs []evidence.Checked, byKey, byAuthority bool) *evidenceReport {
	a, c := evidence.Together(logs)
	r := &evidenceReport{Question: q, Answer: a, Check: c, Whole: wholes(logs), ByKey: byKey, ByAuthority: byAuthority, Done: time.Now(), LeftOut: leftOut(a)}
	seen := map[string]bool{}
	add := func(id, title, text string) {
		if !seen[id] {
			seen[id] = true
			r.Texts = append(r.Texts, reportText{id, title, text})
		}
	}
	document := func(d *site.Document) {
		add(d.Name+"-"+d.Version, d.Name+" of "+hostText(d.Host)+", version "+d.Version, d.Text)
	}
	for i := range a.Published {
		p := &a.Published[i]
		for j := range p.Documents {
			document(&p.Documents[j])
		}
		for j := range p.Served {
			document(&p.Served[j].Document)
		}
		add(p.ID, "The policy file of "+p.Label()+", the source of these texts", p.Text)
	}
	violated := map[string]bool{}
	note := func(i activity.Identity) {
		r.Verified, r.Unverified = r.Verified || i == activity.Verified, r.Unverified || i != activity.Verified
	}
	for _, v := range a.Violations {
		violated[v.Crawler+" "+v.Host] = true
		note(v.Identity)
	}
	for _, x := range a.Reads {
		if note(x.Identity); !violated[x.Crawler+" "+x.Host] && x.Document == "" {
			r.Quiet = append(r.Quiet, x)
		}
	}
	return r
}

// Notes returns the CSS classes for claims in the report.
func (*evidenceReport) Notes() map[string]string {
	return map[string]string{"fine": "", "warning": "open", "alert": "bad"}
}

// Subject returns the subject of the report.
func (r *evidenceReport) Subject() string {
	return cmp.Or(r.Crawler, "all crawlers") + " on " + cmp.Or(r.Host, "all hosts of the server")
}

// From returns the beginning of the period that the report covers.
func (r *evidenceReport) From() time.Time {
	if r.Since.After(r.First) {
		return r.Since
	}
	return r.First
}

// To returns the end of the period that the report covers.
func (r *evidenceReport) To() time.Time {
	if !r.Until.IsZero() && r.Until.Before(r.Last) {
		return r.Until
	}
	return r.Last
}

// sure maps identities to texts that say how certain the identity of a crawler is. It does not contain unverified
// identities, because the method Sure has the text for them.
var sure = map[activity.Identity]string{
	activity.Verified: "verified",
	activity.Impostor: "not the crawler: another client used its name",
	activity.Audit:    "not verified: the User-Agent also contains caddy-robots-policy-audit, the name of the audit command",
}

// Sure returns a text that says how certain the identity of a crawler is.
func (*evidenceReport) Sure(i activity.Identity) string { return cmp.Or(sure[i], "not verified") }

// HasText reports whether the report contains the text of a version.
func (r *evidenceReport) HasText(id string) bool {
	return slices.ContainsFunc(r.Texts, func(t reportText) bool { return t.ID == id })
}

// WriteEvidenceReport writes a report for people who are not engineers. a is what an evidence log says about the
// question q, and c is the result of verifying the log.
func WriteEvidenceReport(w io.Writer, q evidence.Question, a *evidence.Answer, c *evidence.Check) error {
	return reportPage().Execute(w, reportOf(q, []evidence.Checked{{Answer: a, Check: c}}, false, false))
}

// writeReport writes the report to a file.
func writeReport(file string, r *evidenceReport) error {
	var b bytes.Buffer
	if err := reportPage().Execute(&b, r); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o600)
}
