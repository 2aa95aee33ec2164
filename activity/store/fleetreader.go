// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
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
	Heard  time.Duration // time since its last message, by the clock of ClickHouse
	Behind time.Duration // time since everything was sent, by its last message; 0 if nothing is left to send
	Every  time.Duration // interval between the server's messages
	Skew   time.Duration // difference between its clock and the clock of ClickHouse
	Ended  bool          // the server announced that it stops
	store  string
	// rolled is the last day in path_days. last is the last hour.
	rolled, last int64
}

// Nodes returns all databases that have sent something, sorted by name of the server. A server has several databases if
// its directory was deleted.
func (r *FleetReader) Nodes(ctx context.Context) (all []Node, err error) {
	err = r.query(ctx, "SELECT server_name, store, toUInt32(now()) - toUInt32(at), behind, rolled, last, every, ended, toInt64(revision) - toInt64(toUInt32(at)) * 1000 FROM servers FINAL"+r.where()+" ORDER BY server_name, store", 9, func(f []string, n []int64) {
		all = append(all, Node{
			Name: f[0], Heard: time.Duration(n[2]) * time.Second, Behind: time.Duration(n[3]) * time.Second, Every: time.Duration(n[6]) * time.Second,
			Skew: time.Duration(n[8]) * time.Millisecond, Ended: n[7] > 0, store: f[1], rolled: n[4], last: n[5],
		})
	})
	return all, err
}

// where returns the beginning of an SQL condition for the selected server, or for all servers. Rows that a server sent
// under an earlier name belong to it, too.
func (r *FleetReader) where(and ...string) string {
	if r.Node != "" {
		and = append([]string{"store IN (SELECT store FROM servers FINAL WHERE server_name = " + clickhouse.Quote(r.Node) + ")"}, and...)
	}
	if len(and) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(and, " AND ")
}

// query calls each with every row, both as texts and as numbers. The number of a field that is not numeric is 0.
func (r *FleetReader) query(ctx context.Context, text string, fields int, each func(f []string, n []int64)) error {
	n := make([]int64, fields)
	return r.Client.Query(ctx, text, func(f []string) error {
		if len(f) != fields {
			return fmt.Errorf("ClickHouse sent a row of %d fields instead of %d: %.200q", len(f), fields, f)
		}
		for i := range f {
			n[i], _ = strconv.ParseInt(f[i], 10, 64)
		}
		each(f, n)
		return nil
	})
}

// kindsOf is an SQL subquery for the category of each crawler.
const kindsOf = "(SELECT crawler, argMax(category, last) AS category FROM crawlers FINAL GROUP BY crawler)"

// Totals returns the rows that answer a query.
func (r *FleetReader) Totals(ctx context.Context, q Query) ([]Row, error) {
	a := newAnswer(q)
	var behind []Node
	rolled := int64(0)
	if q.paths() {
		nodes, err := r.Nodes(ctx)
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			rolled = max(rolled, n.rolled)
		}
		behind = slices.DeleteFunc(nodes, func(n Node) bool { return n.rolled == rolled || n.last/24 <= n.rolled })
	}
	var parts []string
	for _, s := range a.spans(rolled) {
		if s.from < s.to {
			parts = append(parts, r.part(&q, s, ""))
		}
		for _, n := range behind { // for these days, paths exist only in the hourly totals
			if from := max(s.from, n.rolled+1); s.hours == 24 && from < s.to {
				hours := span{pathHourTable, from * 24, min(s.to*24, n.last+1)}
				parts = append(parts, r.part(&q, hours, "store = "+n.store))
			}
		}
	}
	if len(parts) == 0 {
		return a.rows(), nil
	}
	text, groups := strings.Join(parts, " UNION ALL "), make([]string, len(q.By))
	for i, d := range q.By {
		if groups[i] = "d_" + d.String(); d == ByKind {
			text = "SELECT * FROM (SELECT *, d_category AS crawler FROM (" + text + ")) ANY LEFT JOIN " + kindsOf + " USING crawler"
			groups[i] = "category"
		}
	}
	text = "SELECT " + strings.Join(append(slices.Clone(groups), "sum(n_requests) AS n, sum(n_bytes), sum(n_violations) AS v, sum(n_unread)"), ", ") + " FROM (" + text + ")"
	if len(groups) > 0 {
		text += " GROUP BY " + strings.Join(groups, ", ")
	}
	by := len(q.By)
	err := r.query(ctx, text+q.most(), by+4, func(f []string, n []int64) {
		var k answerKey
		for i, d := range q.By {
			if d.hours() > 0 {
				k.bucket = n[i]
			} else {
				k.values[d] = f[i]
			}
		}
		a.add(k, Counts{Requests: n[by], Bytes: n[by+1], Violations: n[by+2], Unread: n[by+3]})
	})
	return a.rows(), err
}

// part returns the statement that adds up a span of a table.
func (r *FleetReader) part(q *Query, s span, and string) string {
	columns, groups := make([]string, 0, len(q.By)+1), make([]string, 0, len(q.By))
	for _, d := range q.By {
		column := d.String()
		if n, first := q.bucket(d); n > 0 {
			column = fmt.Sprintf("intDiv(%s - %d, %d)", s.bucket, first/s.hours, n/s.hours)
		} else if d == ByKind {
			column = "crawler"
		}
		columns = append(columns, column+" AS d_"+d.String())
		groups = append(groups, "d_"+d.String())
	}
	where := []string{fmt.Sprintf("%[1]s >= %[2]d AND %[1]s < %[3]d", s.bucket, s.from, s.to)}
	for d, values := range q.Only {
		if d == ByKind {
			where = append(where, "crawler IN (SELECT crawler FROM "+kindsOf+" WHERE category IN "+clickhouse.List(values)+")")
		} else {
			where = append(where, d.String()+" IN "+clickhouse.List(values))
		}
	}
	if q.PathPrefix != "" {
		where = append(where, "startsWith(path, "+clickhouse.Quote(q.PathPrefix)+")")
	}
	if q.Violating {
		where = append(where, "violations > 0")
	}
	if and != "" {
		where = append(where, and)
	}
	slices.Sort(where) // sort, because the map Only has no order
	final := " FINAL"
	if q.Rough {
		final = ""
	}
	text := "SELECT " + strings.Join(append(columns, "sum(requests) AS n_requests, sum(bytes) AS n_bytes, sum(violations) AS n_violations, sum(unread) AS n_unread"), ", ") +
		" FROM " + s.name + final + r.where(where...)
	if len(groups) > 0 {
		text += " GROUP BY " + strings.Join(groups, ", ")
	}
	return text
}

// EachRow is like [Reader.EachRow], for all servers of the fleet. For each day and database, it uses the hourly rows if
// they contain as many requests as the daily rows.
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
	if err := r.query(ctx, "SELECT crawler, category FROM "+kindsOf, 2, func(f []string, _ []int64) { kinds[f[0]] = f[1] }); err != nil {
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

// rowsOf calls visit with the rows of a table, added up over all servers.
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
func (r *FleetReader) Bounds(ctx context.Context) (b Bounds, err error) {
	for _, q := range []struct {
		text string
		set  func(n int64)
	}{
		{"SELECT min(hour) FROM path_hours" + r.where(), func(n int64) { b.FirstHour = time.Unix(n*3600, 0).UTC() }},
		{"SELECT min(day) FROM days" + r.where(), func(n int64) { b.FirstDay = time.Unix(n*86400, 0).UTC() }},
		{"SELECT sum(bytes) FROM system.parts WHERE active AND database = " + clickhouse.Quote(r.Client.Database()), func(n int64) { b.Bytes = n }},
	} {
		if err := r.query(ctx, q.text, 1, func(_ []string, n []int64) {
			if n[0] > 0 {
				q.set(n[0])
			}
		}); err != nil {
			return b, err
		}
	}
	return b, nil
}

// Crawlers returns the recorded crawlers, sorted by name.
func (r *FleetReader) Crawlers(ctx context.Context) (all []Crawler, err error) {
	err = r.query(ctx, "SELECT crawler, argMax(category, last), min(first), max(last) FROM crawlers FINAL"+r.where()+" GROUP BY crawler ORDER BY crawler", 4, func(f []string, n []int64) {
		all = append(all, Crawler{f[0], f[1], time.Unix(n[2], 0).UTC(), time.Unix(n[3], 0).UTC()})
	})
	return all, err
}

// Reads returns which crawlers have read which robots.txt, the latest first.
func (r *FleetReader) Reads(ctx context.Context) (all []Read, err error) {
	err = r.query(ctx, "SELECT "+readTexts+", min(first), max(last), sum(requests) FROM reads FINAL"+r.where()+" GROUP BY "+readTexts, 10, func(f []string, n []int64) {
		all = append(all, Read{readKey{Host: f[0], Crawler: f[1], Identity: f[2], Version: f[3], Form: f[4], Publication: f[5], Number: f[6]}, time.Unix(n[7], 0).UTC(), time.Unix(n[8], 0).UTC(), n[9]})
	})
	sortReads(all)
	return all, err
}

// Publications returns the publications of a source, the newest first. If name is empty, it returns the publications of
// all sources. The time of a publication is the time when the first server loaded it.
func (r *FleetReader) Publications(ctx context.Context, name string) (all []Publication, err error) {
	var where []string
	if name != "" {
		where = append(where, "name = "+clickhouse.Quote(name))
	}
	err = r.query(ctx, "SELECT hash, version, name, any(policy), min(first) AS since, any(text) FROM versions FINAL"+r.where(where...)+
		" GROUP BY hash, version, name ORDER BY since DESC, length(version) DESC, version DESC", 6, func(f []string, n []int64) {
		all = append(all, Publication{ID: f[0], Number: f[1], Name: f[2], Policy: f[3], First: time.Unix(n[4], 0).UTC(), Text: f[5]})
	})
	if err != nil {
		return nil, err
	}
	var periods []period
	err = r.query(ctx, selectPeriods+" FINAL"+r.where(where...), 5, func(f []string, n []int64) {
		periods = append(periods, period{f[0], f[1], f[2], Period{time.Unix(n[3], 0).UTC(), time.Unix(n[4], 0).UTC()}})
	})
	addPeriods(all, periods)
	return all, err
}

// PolicyVersions returns the versions of the policies from a source.
func (r *FleetReader) PolicyVersions(ctx context.Context, name string) ([]string, error) {
	all, err := r.Publications(ctx, name)
	return versionsOf(all), err
}

// Documents returns the documents that crawlers received, the newest first.
func (r *FleetReader) Documents(ctx context.Context) (all []Document, err error) {
	err = r.query(ctx, "SELECT version_hash, host, etag, min(first) AS since, any(text) FROM documents FINAL"+r.where()+
		" GROUP BY version_hash, host, etag ORDER BY since DESC, host, etag", 5, func(f []string, n []int64) {
		all = append(all, Document{Publication: f[0], Host: f[1], Version: f[2], First: time.Unix(n[3], 0).UTC(), Text: f[4]})
	})
	return all, err
}
