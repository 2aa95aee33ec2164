// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"database/sql"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// EachRow passes every row with a path between two times to the function visit, except for rows of audits. For each
// day, it uses the hourly rows if they contain at least as many requests as the daily rows, and otherwise the daily
// rows. The returned coverage describes the data that is missing.
func (r *Reader) EachRow(ctx context.Context, from, to time.Time, visit func(activity.Totals) error) (claim.Coverage, error) {
	pathless := int64(0)
	first, end := hoursOf(from, to)
	err := within(ctx, r.db, func(tx *sql.Tx) error {
		days, err := coverage(ctx, tx, first, end)
		if err != nil {
			return err
		}
		kinds, err := kindsOfCrawlers(ctx, tx)
		if err != nil {
			return err
		}
		texts := map[int64]string{}
		for _, d := range days {
			pathless += max(0, d.total-max(d.hours, d.days))
			if err := d.rows(ctx, tx, kinds, texts, first, end, visit); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return claim.Coverage{}, err
	}
	c, err := r.Coverage(ctx, from, to)
	return claim.Unite(c, coverageOf(from, to, pathless, nil)), err
}

// kindsOfCrawlers returns a map from crawlers to their categories. Both are numbers of texts in the table "strings".
func kindsOfCrawlers(ctx context.Context, q querier) (map[int64]int64, error) {
	all, err := list(ctx, q, func(p *[2]int64) []any { return []any{&p[0], &p[1]} }, "SELECT crawler, category FROM crawlers")
	kinds := make(map[int64]int64, len(all))
	for _, p := range all {
		kinds[p[0]] = p[1]
	}
	return kinds, err
}

// dayCoverage holds numbers of a day's requests. total is the number of all requests. hours is the number of requests
// in the table path_hours, which has rows by hour and path, and days is the number of requests in the table path_days.
type dayCoverage struct {
	day                int64
	hours, days, total int64
}

// coverage returns a dayCoverage for each day with requests between the hours first and end. If the period contains
// only a part of a day, the daily rows of this day are not used, because they also count requests outside of the
// period.
func coverage(ctx context.Context, tx *sql.Tx, first, end int64) ([]dayCoverage, error) {
	return list(ctx, tx, func(d *dayCoverage) []any { return []any{&d.day, &d.hours, &d.days, &d.total} }, `SELECT day, coalesce(sum(h), 0), coalesce(sum(d), 0), coalesce(sum(t), 0) FROM (
	SELECT hour / 24 AS day, sum(requests) AS h, 0 AS d, 0 AS t FROM path_hours WHERE hour >= ?1 AND hour < ?2 GROUP BY 1
	UNION ALL SELECT day, 0, sum(requests), 0 FROM path_days WHERE day * 24 >= ?1 AND day * 24 + 24 <= ?2 GROUP BY 1
	UNION ALL SELECT day, 0, 0, sum(requests) FROM days WHERE day * 24 >= ?1 AND day * 24 + 24 <= ?2 GROUP BY 1
	UNION ALL SELECT hour / 24, 0, 0, sum(requests) FROM hours WHERE hour >= ?1 AND hour < ?2
		AND (hour / 24 * 24 < ?1 OR hour / 24 * 24 + 24 > ?2) GROUP BY 1
) GROUP BY day ORDER BY day`, first, end)
}

func (d *dayCoverage) rows(ctx context.Context, tx *sql.Tx, kinds map[int64]int64, texts map[int64]string, first, end int64, visit func(activity.Totals) error) error {
	t, from, to := pathHourTable, max(first, d.day*24), min(end, d.day*24+24)
	if d.days > d.hours {
		t, from, to = pathDayTable, d.day, d.day+1
	}
	var at, host, crawler, identity, decision, rule, version int64
	var v activity.Totals
	into := []any{&at, &host, &crawler, &identity, &decision, &rule, &version, &v.Path, &v.Requests, &v.Bytes, &v.Violations, &v.Queries}
	return each(ctx, tx, func(rows *sql.Rows) error {
		err := rows.Scan(into...)
		kind := kinds[crawler]
		for _, id := range []int64{host, crawler, kind, identity, decision, rule, version} {
			if _, ok := texts[id]; !ok && err == nil {
				var text string
				err = tx.QueryRowContext(ctx, "SELECT coalesce((SELECT text FROM strings WHERE id = ?), '')", id).Scan(&text)
				texts[id] = text
			}
		}
		v.Start, v.Host, v.Crawler, v.Category = time.Unix(at*t.hours*3600, 0).UTC(), texts[host], texts[crawler], texts[kind]
		v.Identity, v.Decision, v.Rule, v.Policy = activity.Identity(texts[identity]), activity.Decision(texts[decision]), texts[rule], texts[version]
		if err != nil || v.Identity == activity.Audit {
			return err
		}
		return visit(v)
	}, "SELECT "+t.bucket+", "+rowTexts+", text, requests, bytes, violations, queries FROM "+t.name+" JOIN strings ON id = path"+
		" WHERE "+t.bucket+" >= ? AND "+t.bucket+" < ? AND requests > 0", from, to)
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
	b, err := boundsIn(ctx, r)
	shrunk, err2 := meta(ctx, r.db, metaShrunk)
	if shrunk > 0 {
		b.Shrunk = time.Unix(shrunk, 0).UTC()
	}
	var err3 error
	b.Bytes, err3 = sizeOf(ctx, r.db)
	return b, cmp.Or(err, err2, err3)
}

// boundsIn returns the period that a database covers.
func boundsIn(ctx context.Context, e engine) (b Bounds, err error) {
	for _, q := range []struct {
		text    string
		seconds int64
		into    *time.Time
	}{
		{"SELECT min(hour) FROM path_hours", 3600, &b.FirstHour},
		{"SELECT min(day) FROM days", 86400, &b.FirstDay},
	} {
		err = cmp.Or(err, e.query(ctx, q.text+e.where(), 1, func(_ []string, n []int64) {
			if n[0] > 0 {
				*q.into = time.Unix(n[0]*q.seconds, 0).UTC()
			}
		}))
	}
	return b, err
}
