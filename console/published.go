// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/audit"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/auditor"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// publishedData holds the published versions and the crawlers that read them.
type publishedData struct {
	Versions []versionRow
	Older    int
	Readers  []reader
	Known    int // number of crawlers among the readers, counted separately for each identity
	Behind   int

	MoreReaders string // link to more readers
	Audits      []auditor.Result
	AuditHosts  []string
	Done        *versionRow // the newly published version
	Undo        string      // the label of the version that an undo brings back; empty if an undo is not possible
	UndoLink    string
	ShowsText   bool
	NoStore     bool
}

// versionRow is a version of the policy.
type versionRow struct {
	numbered
	source.Signed
	Robots []store.Document
	Read   int    // number of crawlers that read robots.txt while this version was in force
	Back   string // the link that opens this version for publishing again
}

// Recorded returns the three most recent periods in which the version was in force, the newest first.
func (r *versionRow) Recorded() []store.Period {
	all := slices.Clone(r.Periods)
	slices.Reverse(all)
	return all[:min(len(all), 3)]
}

// reader is a crawler and the version of robots.txt that it read last.
type reader struct {
	store.Read
	Current bool
	// the time from the publication of the version in force until the crawler read it; empty if the crawler has not
	// read it
	After string
}

const (
	maxVersions = 8
	maxReaders  = 60
)

func published(v *view) (*page, error) {
	d := &publishedData{ShowsText: v.showsText(), NoStore: v.store == nil, Audits: v.audits(), AuditHosts: v.Hosts()}
	p := &page{template: "published", Title: "Published", Scope: scope{Host: true}, Data: d}
	h, err := v.history()
	if err != nil {
		return nil, err
	}
	v.versionRows(d, h, v.readers(d, h))
	v.done(d)
	v.undo(d)
	p.Lead = v.publishedLead(d, h)
	return p, nil
}

func (v *view) publishedLead(d *publishedData, h *history) string {
	live := h.live()
	if live == nil {
		return "No policy is loaded."
	}
	text := live.Label() + " has been in force since " + live.Since().Format("2 Jan 2006, 15:04") + " UTC."
	if n := d.Known; n > 0 {
		text += " " + sentences(v.judgeReaders(n, d.Behind, live.Since()))
	}
	return text
}

// versionRows fills in the rows for the versions, newest first.
func (v *view) versionRows(d *publishedData, h *history, readBy map[string]map[clientID]bool) {
	if v.Param("all") == "" && len(h.publications) > maxVersions {
		d.Older = len(h.publications) - maxVersions
	}
	for i := range len(h.publications) - d.Older {
		row := versionRow{numbered: h.publications[i]}
		if p := v.publishedAs(&row.Publication); p != nil {
			row.Signed = p.Signed
			if v.lacks(publisher) == "" && !row.Live && !p.Served.IsZero() {
				row.Back = v.Link("change", "from", p.SHA256, "back", row.Label(), "#", "result")
			}
		}
		for _, t := range h.documents {
			if t.Publication == row.ID {
				row.Robots = append(row.Robots, t)
			}
		}
		row.Read = len(readBy[row.Label()])
		d.Versions = append(d.Versions, row)
	}
}

// done fills in the version in force if the URL says that the user has just published it.
func (v *view) done(d *publishedData) {
	done := v.Param("done")
	i := slices.IndexFunc(d.Versions, func(r versionRow) bool { return r.Live && done != "" && strings.HasPrefix(r.Policy, done) })
	if i < 0 {
		return
	}
	d.Done = &d.Versions[i]
}

// undo fills in what the page needs to offer an undo of the present version.
func (v *view) undo(d *publishedData) {
	if v.Running == nil || v.Running.document == nil || !v.Running.document.Writable() || v.lacks(editor) != "" {
		return
	}
	if back := v.stands().Undo(); back != nil {
		d.Undo = back.Label()
		d.UndoLink = v.Link("change", "from", back.SHA256, "back", d.Undo, "#", "result")
	}
}

// readers fills in d with the version that each crawler read last on each host. A crawler that appears with several
// identities, such as verified and unverified, is listed once for each identity. The result maps the label of each
// version to all crawlers that have read this version.
func (v *view) readers(d *publishedData, h *history) map[string]map[clientID]bool {
	readBy := map[string]map[clientID]bool{}
	seen := map[clientID]map[string]bool{} // the hosts that each client is already listed for
	behind := map[clientID]bool{}
	live := h.live()
	for _, x := range h.reads { // the latest reading is first
		if !v.allowed(x.Host) || v.Host != "" && x.Host != v.Host || v.lookup(x.Crawler) == nil {
			continue
		}
		who := clientID{x.Crawler, activity.Identity(x.Identity)}
		if readBy[x.Label()] == nil {
			readBy[x.Label()] = map[clientID]bool{}
		}
		readBy[x.Label()][who] = true
		if seen[who] == nil {
			seen[who] = map[string]bool{}
		}
		if seen[who][x.Host] {
			continue
		}
		seen[who][x.Host] = true
		row := reader{Read: x, Current: h.isCurrent(&x)}
		if row.Current && live != nil && x.Publication == live.ID && x.Number == live.Number {
			row.After = lag(x.First.Sub(live.First))
		}
		if !row.Current {
			behind[who] = true
		}
		d.Readers = append(d.Readers, row)
	}
	d.Behind, d.Known = len(behind), len(seen)
	rank := map[bool]int{false: 0, true: 1}
	slices.SortStableFunc(d.Readers, func(a, b reader) int {
		return cmp.Or(rank[a.Current]-rank[b.Current], b.Last.Compare(a.Last))
	})
	d.Readers, d.MoreReaders = pageOf(v, d.Readers, "reader", maxReaders)
	return readBy
}

// lag returns a duration in words, such as "19 minutes".
func lag(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "at once"
	case d < 2*time.Hour:
		return plural(int(d.Minutes()), "minute", "minutes")
	case d < 48*time.Hour:
		return plural(int(d.Hours()), "hour", "hours")
	}
	return plural(int(d.Hours()/24), "day", "days")
}

// audits returns the audit results for the hosts that the person may see.
func (v *view) audits() []auditor.Result {
	return slices.DeleteFunc(auditor.Results(), func(r auditor.Result) bool {
		u, err := url.Parse(r.URL)
		return err != nil || !v.allowed(policy.NormalizeHost(u.Host)) || v.Host != "" && v.Host != policy.NormalizeHost(u.Host)
	})
}

// auditNotices returns notices about hosts where an audit found differences from the policy or could not be completed.
func (v *view) auditNotices() (all []notice) {
	for _, a := range v.audits() {
		see := []action{{"See what was found", v.Link("published", "#", "audit")}}
		switch {
		case a.Err != nil:
			all = append(all, notice{Screen: "published", Since: a.Since, Heading: "The audit of " + a.URL + " could not be carried out", Text: sentence(a.Err.Error()), Actions: see})
		case a.Found.Errors() > 0:
			text := "The audit found " + plural(a.Found.Errors(), "error", "errors") + "."
			if i := slices.IndexFunc(a.Found.Findings, func(f audit.Finding) bool { return f.Severity == audit.Error }); i >= 0 {
				text += " " + sentence(a.Found.Findings[i].Message)
			}
			all = append(all, notice{Alert: true, Screen: "published", Since: a.Since, Heading: "Responses to crawlers differ from your policy on " + a.URL, Text: text, Actions: see})
		}
	}
	return all
}
