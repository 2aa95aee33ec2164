// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// EachRow calls visit with every row with a path between two times, except for rows of audits. It uses the hourly rows
// if they still exist, and otherwise the daily rows. The returned coverage describes the data that is missing.
func (r *Reader) EachRow(ctx context.Context, from, to time.Time, visit func(activity.Totals) error) (c claim.Coverage, err error) {
	pathless := int64(0)
	if err := within(ctx, r.db, func(tx *sql.Tx) error {
		pathless, err = answers{sqliteEngine{tx}}.eachRow(ctx, from, to, visit)
		return err
	}); err != nil {
		return c, err
	}
	c, err = r.Coverage(ctx, from, to)
	return claim.Unite(c, coverageOf(from, to, pathless, nil)), err
}

// daySums holds the numbers of requests of a day in one or more databases.
type daySums struct {
	day int64
	// daily has the databases whose daily rows contain more requests than their hourly rows. Commas separate them.
	daily string
}

// eachRow calls visit with every row with a path, added up over all servers. For each day and database, it uses the
// hourly rows if they contain as many requests as the daily rows. If only a part of a day is selected, its daily rows
// are not used. pathless is the number of requests without a row.
func (a answers) eachRow(ctx context.Context, from, to time.Time, visit func(activity.Totals) error) (pathless int64, err error) {
	days, pathless, err := a.days(ctx, from, to)
	if err != nil {
		return 0, err
	}
	known, err := a.Crawlers(ctx)
	if err != nil {
		return 0, err
	}
	kinds := make(map[string]string, len(known))
	for _, c := range known {
		kinds[c.Name] = c.Category
	}
	first, end := hoursOf(from, to)
	for _, d := range days {
		hours := []string{fmt.Sprintf("hour >= %d AND hour < %d", max(first, d.day*24), min(end, d.day*24+24))}
		if d.daily != "" {
			among := a.dialect().store + " IN (" + d.daily + ")"
			hours = append(hours, "NOT "+among)
			err = a.rowsOf(ctx, pathDayTable, kinds, visit, fmt.Sprintf("day = %d", d.day), among)
		}
		if err = cmp.Or(err, a.rowsOf(ctx, pathHourTable, kinds, visit, hours...)); err != nil {
			return 0, err
		}
	}
	return pathless, nil
}

// days returns the days with requests between two times, in order, and the number of requests without a row.
func (a answers) days(ctx context.Context, from, to time.Time) (days []daySums, pathless int64, err error) {
	d := a.dialect()
	first, end := hoursOf(from, to)
	whole := fmt.Sprintf("day * 24 >= %d AND day * 24 + 24 <= %d", first, end)
	hours := fmt.Sprintf("hour >= %d AND hour < %d", first, end)
	ofHour := fmt.Sprintf(d.quotient, "hour", 24)
	sums := func(table, day, where, hourly, daily, total string) string {
		return "SELECT " + d.store + " AS store, " + day + " AS at, " + hourly + " AS h, " + daily + " AS d, " + total + " AS t FROM " + table + d.final + a.where(where) + " GROUP BY store, at"
	}
	const none, all = "sum(requests) * 0", "sum(requests)"
	err = a.query(ctx, "SELECT at, store, sum(h), sum(d), sum(t) FROM ("+strings.Join([]string{
		sums("path_hours", ofHour, hours, all, none, none), sums("path_days", "day", whole, none, all, none), sums("days", "day", whole, none, none, all),
		sums("hours", ofHour, fmt.Sprintf("%s AND (%s * 24 < %d OR %[2]s * 24 + 24 > %[4]d)", hours, ofHour, first, end), none, none, all),
	}, " UNION ALL ")+") GROUP BY at, store ORDER BY at", 5, func(f []string, n []int64) {
		if len(days) == 0 || days[len(days)-1].day != n[0] {
			days = append(days, daySums{day: n[0]})
		}
		if last := &days[len(days)-1]; n[3] > n[2] {
			last.daily += map[bool]string{true: ", "}[last.daily != ""] + f[1]
		}
		pathless += max(0, n[4]-max(n[2], n[3]))
	})
	return days, pathless, err
}

// rowsOf calls visit with the rows of a table, added up over all servers.
func (a answers) rowsOf(ctx context.Context, t table, kinds map[string]string, visit func(activity.Totals) error, where ...string) error {
	d := a.dialect()
	var failed error
	err := a.query(ctx, "SELECT "+t.bucket+", "+d.textsOf(pathTexts)+", sum(requests), sum(bytes), sum(violations), sum(queries) FROM "+t.name+d.final+
		a.where(append(where, "requests > 0")...)+" GROUP BY "+t.bucket+", "+pathTexts, 12, func(f []string, n []int64) {
		identity := activity.Identity(f[3])
		if failed != nil || identity == activity.Audit {
			return
		}
		failed = visit(activity.Totals{
			Start: time.Unix(n[0]*t.hours*3600, 0).UTC(), Host: f[1], Crawler: f[2], Category: kinds[f[2]],
			Identity: identity, Decision: activity.Decision(f[4]), Rule: f[5], Policy: f[6], Path: f[7],
			Requests: n[8], Bytes: n[9], Violations: n[10], Queries: n[11],
		})
	})
	return cmp.Or(failed, err)
}

// Bounds describes the period that an activity database covers.
type Bounds struct {
	FirstHour time.Time // the first hour with paths; zero if there is none
	FirstDay  time.Time // the first day with totals; zero if there is none
	Bytes     int64     // number of bytes in use
	Shrunk    time.Time // time of the last deletion because of the database's size; zero if never
}

// Bounds returns the period that the database covers, and its size.
func (r *Reader) Bounds(ctx context.Context) (Bounds, error) {
	b, err := r.bounds(ctx)
	shrunk, err2 := meta(ctx, r.db, metaShrunk)
	if shrunk > 0 {
		b.Shrunk = time.Unix(shrunk, 0).UTC()
	}
	var err3 error
	b.Bytes, err3 = sizeOf(ctx, r.db)
	return b, cmp.Or(err, err2, err3)
}

// bounds returns the period that a database covers.
func (a answers) bounds(ctx context.Context) (b Bounds, err error) {
	for _, q := range []struct {
		text    string
		seconds int64
		into    *time.Time
	}{
		{"SELECT min(hour) FROM path_hours", 3600, &b.FirstHour},
		{"SELECT min(day) FROM days", 86400, &b.FirstDay},
	} {
		err = cmp.Or(err, a.query(ctx, q.text+a.where(), 1, func(_ []string, n []int64) {
			if n[0] > 0 {
				*q.into = time.Unix(n[0]*q.seconds, 0).UTC()
			}
		}))
	}
	return b, err
}
