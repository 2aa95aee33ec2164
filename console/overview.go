// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// overviewData holds the data of the Overview page.
type overviewData struct {
	Notices    []notice
	More       int // number of notices that the page does not show
	InOrder    []claim.Claim
	Total      counts
	Trend      string
	Chart      *chart
	Top        []client
	Others     counts
	OthersN    int
	Violators  []violator
	Violations int64
	Judged     int64 // requests of crawlers that had read the robots.txt of the host
	Changes    []event
	NoStore    bool
}

// violator is a crawler that requested disallowed pages after it had read robots.txt.
type violator struct {
	*client
	Rules []ruleCount
}

type ruleCount struct {
	Rule, Decision string
	Requests       int64
}

// event is a change that the page lists, such as a new version.
type event struct {
	Time time.Time
	Text string
	Link string
	More string // the text of the link
}

// These constants limit the number of notices and crawlers on the Overview page.
const shownNotices, shownTop = 3, 8

func overview(v *view) (*page, error) {
	d := &overviewData{NoStore: v.store == nil}
	if err := v.happenings(d); err != nil {
		return nil, err
	}
	// the notices come last, because they are found in the background while the other data is computed
	d.Notices, d.InOrder = v.notices(), v.inOrder()
	if len(d.Notices) > shownNotices {
		d.More = len(d.Notices) - shownNotices
		d.Notices = d.Notices[:shownNotices]
	}
	return &page{template: "overview", Title: "Overview", Lead: sentence(v.summary().Text()), Scope: scope{Host: true, Period: true}, Data: d}, nil
}

// happenings fills in the data that comes from the store.
func (v *view) happenings(d *overviewData) error {
	if v.store == nil {
		return nil
	}
	v.askEarly(v.before(), v.violating())
	rows, err := v.totals(v.traffic("", ""))
	if err != nil {
		return err
	}
	v.overTime(d, rows)
	clients := v.clients(rows)
	d.top(clients)
	if err := v.violators(d, clients); err != nil {
		return err
	}
	d.Changes, err = v.changes(5)
	return err
}

// steps describes how a period is divided into the bars of a chart.
type steps struct {
	by    store.Dimension
	width time.Duration
	every int // number of bars for each label
	label string
	unit  string // the unit of time of a bar: hour, day or week
}

// byHour reports whether each bar is one hour. For older days, the database may have only daily totals.
func (v *view) byHour() bool {
	kept := 7 * 24 * time.Hour // hourly totals of the last week are kept even if the store is full
	if a := runningActivity(); a != nil && a.Hours > 0 {
		kept = min(kept, time.Duration(a.Hours))
	}
	return v.Days == 1 && (v.since.IsZero() || v.Now.Sub(v.since) < kept)
}

func (v *view) steps() steps {
	const day = 24 * time.Hour
	switch n := v.Days; {
	case v.byHour():
		return steps{store.ByHour, time.Hour, 3, "15:04", "hour"}
	case n <= 7:
		return steps{store.ByDay, day, 1, "Mon 2", "day"}
	case n <= 100:
		return steps{store.ByDay, day, (n + 5) / 6, "2 Jan", "day"}
	}
	return steps{store.ByDay, 7 * day, (v.Days + 41) / 42, "2 Jan", "week"}
}

// bars returns the number of bars in the chart of the period.
func (v *view) bars() int {
	s := v.steps()
	from, to := v.span()
	if s.by == store.ByDay {
		to = to.Add(24*time.Hour - 1).Truncate(24 * time.Hour)
	}
	return int((to.Sub(from) + s.width - 1) / s.width)
}

// series adds up rows for each bar of the period.
func (v *view) series(rows []store.Row) []bucket {
	s, n := v.steps(), v.bars()
	from, _ := v.span()
	all := make([]bucket, n)
	for i := range all {
		all[i].Start = from.Add(time.Duration(i) * s.width)
	}
	for i := range rows {
		if at := int(rows[i].Start.Sub(from) / s.width); at >= 0 && at < n {
			addRow(&all[at].counts, &rows[i])
		}
	}
	return all
}

func (v *view) overTime(d *overviewData, rows []store.Row) {
	buckets := v.series(rows)
	for i := range buckets {
		d.Total.plus(buckets[i].counts)
	}
	d.Chart = v.newChart("Requests", buckets)
	q := v.before()
	bounds, err := v.store.Bounds(v.ctx)
	if err != nil || bounds.FirstDay.IsZero() || bounds.FirstDay.After(q.From) {
		return // the store may have only a part of the previous period
	}
	if before, err := v.totals(q); err == nil && len(before) > 0 && before[0].Requests > 0 {
		d.Trend = trend(d.Total.All, before[0].Requests, v.Days)
	}
}

// before is a method that returns a query for the total of the period before the chosen one.
func (v *view) before() store.Query {
	q := v.query()
	length := q.To.Sub(q.From)
	if v.Days > 1 && v.since.IsZero() {
		length = time.Duration(v.Days) * 24 * time.Hour
	}
	q.From, q.To = q.From.Add(-length), q.To.Add(-length)
	return q
}

// trend returns a text that compares a number with the number for the previous period.
func trend(now, before int64, days int) string {
	than := "in the " + plural(days, "day", "days") + " before"
	change := 100 * (float64(now) - float64(before)) / float64(before)
	switch {
	case change >= 0.5:
		return fmt.Sprintf("%.0f%% more than %s", change, than)
	case change <= -0.5:
		return fmt.Sprintf("%.0f%% less than %s", -change, than)
	}
	return "as many as " + than
}

func (d *overviewData) top(clients []*client) {
	for i, c := range clients { // the busiest first
		if i < shownTop {
			c.Meter = newMeter(&c.counts, clients[0].All)
			d.Top = append(d.Top, *c)
			continue
		}
		d.OthersN++
		d.Others.plus(c.counts)
	}
}

// violating returns a query for the violations of each rule by each crawler.
func (v *view) violating() store.Query {
	q := v.query(store.ByCrawler, store.ByIdentity, store.ByRule, store.ByDecision)
	q.Violating, q.Only[store.ByIdentity] = true, []string{string(activity.Verified), string(activity.Unverified)}
	return q
}

// violators fills in the crawlers with the most violations, and the rules that they violate.
func (v *view) violators(d *overviewData, clients []*client) error {
	by := map[clientID]*client{}
	for _, c := range clients {
		if c.Impostor() || c.IsUnknown() {
			continue
		}
		d.Violations += c.Violations
		d.Judged += c.Judged()
		if c.Violations > 0 {
			by[c.clientID] = c
		}
	}
	if len(by) == 0 {
		return nil
	}
	rows, err := v.totals(v.violating())
	if err != nil {
		return err
	}
	rules := map[clientID][]ruleCount{}
	for i := range rows { // the most violations first
		r := &rows[i]
		if id := idOf(r); r.Violations > 0 && len(rules[id]) < 3 {
			rules[id] = append(rules[id], ruleCount{r.Values[store.ByRule], r.Values[store.ByDecision], r.Violations})
		}
	}
	for id, c := range by {
		d.Violators = append(d.Violators, violator{c, rules[id]})
	}
	slices.SortFunc(d.Violators, func(a, b violator) int {
		return cmp.Or(cmp.Compare(b.Violations, a.Violations), strings.Compare(a.Name, b.Name), strings.Compare(string(a.Identity), string(b.Identity)))
	})
	d.Violators = d.Violators[:min(len(d.Violators), 5)]
	return nil
}
