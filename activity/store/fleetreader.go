// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store/clickhouse"
	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// Queries is the interface through which pages, commands and the API read totals. A [Reader] reads the totals of one
// server, and a [FleetReader] the totals that all servers of a fleet have sent.
type Queries interface {
	Totals(ctx context.Context, q Query) ([]Row, error)
	EachRow(ctx context.Context, from, to time.Time, visit func(activity.Totals) error) (claim.Coverage, error)
	Coverage(ctx context.Context, from, to time.Time) (claim.Coverage, error)
	Bounds(ctx context.Context) (Bounds, error)
	Crawlers(ctx context.Context) ([]Crawler, error)
	Reads(ctx context.Context) ([]Read, error)
	Publications(ctx context.Context, name string) ([]Publication, error)
	PolicyVersions(ctx context.Context, name string) ([]string, error)
	Documents(ctx context.Context) ([]Document, error)
}

// FleetReader reads the rows that the servers of a fleet have sent to ClickHouse. It uses FINAL to get the last
// revision of each row, so that the result does not depend on when ClickHouse merges its tables.
type FleetReader struct {
	Client clickhouse.Client
	Node   string // read only the rows of this server; empty for all servers
}

// Node is the activity database of a server in a fleet.
type Node struct {
	Name   string
	Heard  time.Duration // time since the server's last message, by the clock of ClickHouse
	Behind time.Duration // how long before its last message the server had sent all of its rows; 0 if nothing was left to send
	Every  time.Duration // interval between the server's messages
	Skew   time.Duration // difference between the server's clock and the clock of ClickHouse
	Ended  bool          // the server announced that it stops
	store  string
	// rolled is the last day in path_days. last is the last hour with totals.
	rolled, last int64
}

// Nodes returns all databases that have sent rows, sorted by the names of their servers. A server has several databases
// if its directory was deleted.
func (r *FleetReader) Nodes(ctx context.Context) (all []Node, err error) {
	err = r.query(ctx, "SELECT server_name, store, toUInt32(now()) - toUInt32(at), behind, rolled, last, every, ended, toInt64(revision) - toInt64(toUInt32(at)) * 1000 FROM servers FINAL"+r.where()+" ORDER BY server_name, store", 9, func(f []string, n []int64) {
		all = append(all, Node{
			Name: f[0], Heard: time.Duration(n[2]) * time.Second, Behind: time.Duration(n[3]) * time.Second, Every: time.Duration(n[6]) * time.Second,
			Skew: time.Duration(n[8]) * time.Millisecond, Ended: n[7] > 0, store: f[1], rolled: n[4], last: n[5],
		})
	})
	return all, err
}

// Totals returns the rows that answer a query.
func (r *FleetReader) Totals(ctx context.Context, q Query) ([]Row, error) {
	if !q.paths() {
		return totalsIn(ctx, r, &q, q.spans(0))
	}
	nodes, err := r.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	rolled := int64(0)
	for _, n := range nodes {
		rolled = max(rolled, n.rolled)
	}
	spans := q.spans(rolled)
	for _, s := range slices.Clone(spans) {
		for _, n := range nodes { // for the days after n.rolled, the paths of this server exist only in the hourly totals
			if from := max(s.from, n.rolled+1); s.hours == 24 && n.rolled < rolled {
				spans = append(spans, span{pathHourTable, from * 24, min(s.to*24, n.last+1), "store = " + n.store})
			}
		}
	}
	return totalsIn(ctx, r, &q, spans)
}

// EachRow is like [Reader.EachRow], for all servers of the fleet. For each day and database, it uses the hourly rows if
// they contain at least as many requests as the daily rows, and otherwise the daily rows.
func (r *FleetReader) EachRow(ctx context.Context, from, to time.Time, visit func(activity.Totals) error) (claim.Coverage, error) {
	pathless := int64(0)
	first, end := hoursOf(from, to)
	whole := fmt.Sprintf("day * 24 >= %d AND day * 24 + 24 <= %d", first, end)
	hours := fmt.Sprintf("hour >= %d AND hour < %d", first, end)
	sums := func(table, day, where, h, d, t string) string {
		return "SELECT store, " + day + " AS at, " + h + " AS h, " + d + " AS d, " + t + " AS t FROM " + table + " FINAL" + r.where(where) + " GROUP BY store, at"
	}
	byDay := map[int64][]string{} // databases whose daily rows contain more requests than their hourly rows, by day
	var days []int64
	const none, all = "toUInt64(0)", "sum(requests)"
	if err := r.query(ctx, "SELECT at, store, sum(h), sum(d), sum(t) FROM ("+strings.Join([]string{
		sums("path_hours", "intDiv(hour, 24)", hours, all, none, none), sums("path_days", "day", whole, none, all, none), sums("days", "day", whole, none, none, all),
		sums("hours", "intDiv(hour, 24)", fmt.Sprintf("%s AND (intDiv(hour, 24) * 24 < %d OR intDiv(hour, 24) * 24 + 24 > %d)", hours, first, end), none, none, all),
	}, " UNION ALL ")+") GROUP BY at, store ORDER BY at", 5, func(f []string, n []int64) {
		if len(days) == 0 || days[len(days)-1] != n[0] {
			days = append(days, n[0])
		}
		if n[3] > n[2] {
			byDay[n[0]] = append(byDay[n[0]], "toUInt64("+f[1]+")")
		}
		pathless += max(0, n[4]-max(n[2], n[3]))
	}); err != nil {
		return claim.Coverage{}, err
	}
	kinds := map[string]string{}
	if err := r.query(ctx, "SELECT crawler, category FROM "+fmt.Sprintf(clickhouseDialect.crawlers, ""), 2, func(f []string, _ []int64) { kinds[f[0]] = f[1] }); err != nil {
		return claim.Coverage{}, err
	}
	for _, day := range days {
		among := "(" + strings.Join(byDay[day], ", ") + ")"
		hourly := []string{fmt.Sprintf("hour >= %d AND hour < %d", max(first, day*24), min(end, day*24+24))}
		if len(byDay[day]) > 0 {
			hourly = append(hourly, "store NOT IN "+among)
			if err := r.rowsOf(ctx, pathDayTable, kinds, visit, fmt.Sprintf("day = %d", day), "store IN "+among); err != nil {
				return claim.Coverage{}, err
			}
		}
		if err := r.rowsOf(ctx, pathHourTable, kinds, visit, hourly...); err != nil {
			return claim.Coverage{}, err
		}
	}
	c, err := r.Coverage(ctx, from, to)
	return claim.Unite(c, coverageOf(from, to, pathless, nil)), err
}

// rowsOf adds up the rows of a table over all servers, and passes the sums to the function visit.
func (r *FleetReader) rowsOf(ctx context.Context, t table, kinds map[string]string, visit func(activity.Totals) error, where ...string) error {
	where = append(where, "requests > 0", "identity <> "+clickhouse.Quote(string(activity.Audit)))
	var failed error
	err := r.query(ctx, "SELECT "+t.bucket+", "+pathTexts+", sum(requests), sum(bytes), sum(violations), sum(queries) FROM "+t.name+" FINAL"+
		r.where(where...)+" GROUP BY "+t.bucket+", "+pathTexts, 12, func(f []string, n []int64) {
		if failed == nil {
			failed = visit(activity.Totals{
				Start: time.Unix(n[0]*t.hours*3600, 0).UTC(), Host: f[1], Crawler: f[2], Category: kinds[f[2]],
				Identity: activity.Identity(f[3]), Decision: activity.Decision(f[4]), Rule: f[5], Policy: f[6], Path: f[7],
				Requests: n[8], Bytes: n[9], Violations: n[10], Queries: n[11],
			})
		}
	})
	return cmp.Or(failed, err)
}

// Bounds returns the period that the fleet's database covers, and its size.
func (r *FleetReader) Bounds(ctx context.Context) (Bounds, error) {
	b, err := boundsIn(ctx, r)
	if err == nil {
		err = r.query(ctx, "SELECT sum(bytes) FROM system.parts WHERE active AND database = "+clickhouse.Quote(r.Client.Database()), 1, func(_ []string, n []int64) { b.Bytes = n[0] })
	}
	return b, err
}

// Crawlers returns the recorded crawlers, sorted by name.
func (r *FleetReader) Crawlers(ctx context.Context) ([]Crawler, error) { return crawlersIn(ctx, r) }

// Reads returns the reads of robots.txt by crawlers, the latest first.
func (r *FleetReader) Reads(ctx context.Context) ([]Read, error) { return readsIn(ctx, r) }

// Publications is like [Reader.Publications]. The time of a publication is the time when the first server loaded it.
func (r *FleetReader) Publications(ctx context.Context, name string) ([]Publication, error) {
	return publicationsIn(ctx, r, name)
}

// PolicyVersions returns the versions of the policies from a source.
func (r *FleetReader) PolicyVersions(ctx context.Context, name string) ([]string, error) {
	return versionsIn(ctx, r, name)
}

// Documents returns the documents that crawlers received, the newest first.
func (r *FleetReader) Documents(ctx context.Context) ([]Document, error) { return documentsIn(ctx, r) }
