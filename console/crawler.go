// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
)

type crawlerData struct {
	*client
	Row       *crawlers.Crawler // nil: not in the catalogue
	Card      string            // what it says of itself, if it signs
	Impostors int64
	Chart     *chart
	Sections  []sectionCounts
	Reads     []readEvent
	Violating []violationDay
	Served    bool // some of these were not refused
	Evidence  bool
}

// sectionCounts are the requests for one section of the site.
type sectionCounts struct {
	Path string
	counts
	Meter meter
}

// readEvent is that a crawler read a robots.txt.
type readEvent struct {
	store.Read
	Current bool
}

// violationDay is the violations of a rule on a day.
type violationDay struct {
	Day        time.Time
	Rule       string
	Decision   string
	Requests   int64
	Violations int64
	Line       int
}

func crawlerPage(v *view) (*page, error) {
	name := v.Param("name")
	if name == "" || v.store == nil {
		return nil, failed(http.StatusNotFound, "name a crawler that has come, as the page Who came does")
	}
	clients, err := v.clients("")
	if err != nil {
		return nil, err
	}
	d := &crawlerData{Row: v.lookup(name), Evidence: recorders.RunningEvidence() != nil}
	if d.Row != nil {
		d.Card = identity.CardOf(d.Row.Verification).String()
	}
	for _, c := range clients {
		switch {
		case c.Name != name:
		case c.Impostor == (v.Param("impostor") != ""):
			d.client = c
		default:
			if c.Impostor {
				d.Impostors = c.All
			}
		}
	}
	if d.client == nil {
		d.client = &client{Name: name, Impostor: v.Param("impostor") != ""}
		v.describe(d.client)
	}
	if err := v.addDays([]*client{d.client}); err != nil {
		return nil, err
	}
	for _, add := range []func(*crawlerData) error{v.crawlerTraffic, v.crawlerReads, v.crawlerPaths} {
		if err := add(d); err != nil {
			return nil, err
		}
	}
	return &page{template: "crawler", Title: d.Label(), Lead: crawlerLead(d, v.Days), Scope: scope{Host: true, Period: true}, Data: d}, nil
}

func crawlerLead(d *crawlerData, days int) string {
	in := " in " + plural(days, "day", "days")
	switch {
	case d.All == 0:
		return "No request" + in + "."
	case d.Impostor:
		return plural(d.All, "request", "requests") + in + " under a name that is not theirs."
	case d.Violations > 0 && d.Refused >= d.Violations:
		return fmt.Sprintf("Asks for closed pages: %s%s, all refused.", plural(d.Violations, "violation", "violations"), in)
	case d.Violations > 0:
		return fmt.Sprintf("Fetches closed pages: %s%s.", plural(d.Violations, "violation", "violations"), in)
	}
	text := plural(d.All, "request", "requests") + in + ". "
	switch {
	case d.IsUnknown():
		return text
	case d.Unread >= d.All:
		return text + "Whether it obeyed cannot be judged: it had read no robots.txt here, as far as this is known."
	}
	text += "It obeyed every robots.txt that it had read."
	if d.Unread > 0 {
		text += " " + plural(d.Unread, "request", "requests") + " cannot be judged."
	}
	return text
}

// onlyCrawler limits a question to the crawler of a page.
func (v *view) onlyCrawler(d *crawlerData, by ...store.Dimension) store.Query {
	q := v.query(by...)
	q.Only[store.ByCrawler] = []string{d.Name}
	q.Only[store.ByIdentity] = identities(d.Impostor)
	return q
}

func (v *view) crawlerTraffic(d *crawlerData) error {
	s := v.steps()
	rows, err := v.totals(v.onlyCrawler(d, s.by, store.ByKind, store.ByDecision))
	if err != nil {
		return err
	}
	buckets := v.series(rows)
	d.Chart = newChart("hatch", fmt.Sprintf("%s, requests %s by verdict, %s", d.Label(), s.words, v.Period()), buckets, s.every, s.label)
	d.Chart.Note = "Requests " + s.words + ", UTC."
	return nil
}

// sectionOf is the first folder of a path.
func sectionOf(path string) string {
	if path == store.OtherPath {
		return path
	}
	path, _, _ = strings.Cut(path, "?")
	if i := strings.IndexByte(strings.TrimPrefix(path, "/"), '/'); i >= 0 {
		return path[:i+2]
	}
	if path == "/robots.txt" {
		return path
	}
	return "/"
}

func (v *view) crawlerPaths(d *crawlerData) error {
	q := v.onlyCrawler(d, store.ByPath, store.ByKind, store.ByDecision)
	q.From, q.Limit = maxTime(q.From, q.To.AddDate(0, 0, -30)), 5000
	rows, err := v.totals(q)
	if err != nil {
		return err
	}
	by := map[string]*sectionCounts{}
	for i := range rows {
		section := sectionOf(rows[i].Values[store.ByPath])
		if by[section] == nil {
			by[section] = &sectionCounts{Path: section}
		}
		addRow(&by[section].counts, &rows[i])
	}
	for _, s := range by {
		d.Sections = append(d.Sections, *s)
	}
	slices.SortFunc(d.Sections, func(a, b sectionCounts) int {
		return cmp.Or(cmp.Compare(b.All, a.All), strings.Compare(a.Path, b.Path))
	})
	d.Sections = d.Sections[:min(len(d.Sections), 12)]
	for i := range d.Sections {
		d.Sections[i].Meter = newMeter(&d.Sections[i].counts, d.Sections[0].All)
	}
	if d.Violations == 0 {
		return nil
	}
	q = v.onlyCrawler(d, store.ByDay, store.ByRule, store.ByDecision)
	q.Violating = true
	if rows, err = v.totals(q); err != nil {
		return err
	}
	for _, r := range slices.Backward(rows) {
		if r.Violations > 0 && r.Values[store.ByDecision] != string(activity.Refused) {
			d.Served = true
		}
		if r.Violations > 0 && len(d.Violating) < 60 {
			d.Violating = append(d.Violating, violationDay{
				Day: r.Start, Rule: r.Values[store.ByRule], Decision: r.Values[store.ByDecision], Requests: r.Requests, Violations: r.Violations,
				Line: v.lineOf(r.Values[store.ByRule]),
			})
		}
	}
	return nil
}

// lineOf is the line of a rule of the policy in force, 0 if it has no such rule.
func (v *view) lineOf(rule string) int {
	if v.Running == nil {
		return 0
	}
	for _, r := range v.Running.Spec().Rules {
		if v.Running.Site.RuleName(&r) == rule {
			return r.Pos.Line
		}
	}
	return 0
}

func (v *view) crawlerReads(d *crawlerData) error {
	if d.Impostor {
		return nil
	}
	reads, err := v.store.Reads(v.ctx, d.Name, "")
	if err != nil {
		return err
	}
	h, err := v.history()
	if err != nil {
		return err
	}
	for _, x := range reads {
		if v.allowed(x.Host) && (v.Host == "" || x.Host == v.Host) && len(d.Reads) < 12 {
			d.Reads = append(d.Reads, readEvent{x, v.isCurrent(h, x.Host, x.Version)})
		}
	}
	return nil
}
