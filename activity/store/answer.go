// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// span is a part of a table whose rows are added up for an answer.
type span struct {
	table
	from, to int64  // in the unit of the table: hours or days
	and      string // a further condition, or ""
}

// spans splits the period of the query into parts, and chooses the table to read for each part. For whole days, it uses
// the daily totals, unless the answer distinguishes hours. For the rest of the period, it uses the hourly totals.
// rolled is the last day with daily totals by path.
func (q *Query) spans(rolled int64) []span {
	from, to := hoursOf(q.From, q.To)
	hours, days := pathHourTable, pathDayTable
	if !q.paths() {
		hours, days = hourTable, dayTable
		rolled = to // every write also updates the table "days"
	}
	firstDay, lastDay := (from+23)/24, min(to/24, rolled+1)
	if q.has(ByHour) || firstDay >= lastDay {
		return []span{{hours, from, to, ""}}
	}
	return []span{{hours, from, firstDay * 24, ""}, {days, firstDay, lastDay, ""}, {hours, lastDay * 24, to, ""}}
}

// statement returns the SQL statement that adds up the rows in some spans, or "" if the spans are empty. A row of its
// result has a value for each dimension of the query, and then the counts. The value is a text or, for a dimension of
// time, the number of the period, counted from 0; see bucket.
func (q *Query) statement(e engine, spans []span) string {
	var parts []string
	for _, s := range spans {
		if s.from < s.to {
			parts = append(parts, q.part(e, s))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	d, by := e.dialect(), len(q.By)
	text, groups, texts := strings.Join(parts, " UNION ALL "), make([]string, by), make([]string, by, by+1)
	for i, dim := range q.By {
		if groups[i] = "d_" + dim.String(); dim == ByKind {
			text = "SELECT * FROM (SELECT *, d_category AS crawler FROM (" + text + ")) " + d.join + " " + fmt.Sprintf(d.crawlers, "") + " USING (crawler)"
			groups[i] = "category"
		}
		if texts[i] = groups[i]; dim.hours() == 0 {
			texts[i] = fmt.Sprintf(d.text, groups[i])
		}
	}
	return "SELECT " + strings.Join(append(texts, "n, b, v, u"), ", ") +
		" FROM (SELECT " + strings.Join(append(slices.Clone(groups), "sum(n_requests) AS n, sum(n_bytes) AS b, sum(n_violations) AS v, sum(n_unread) AS u"), ", ") +
		" FROM (" + text + ")" + groupBy(groups) + q.most() + ")"
}

func groupBy(columns []string) string {
	if len(columns) == 0 {
		return ""
	}
	return " GROUP BY " + strings.Join(columns, ", ")
}

// part returns the SQL statement that adds up the rows in a span.
func (q *Query) part(e engine, s span) string {
	d := e.dialect()
	columns, groups := make([]string, 0, len(q.By)+1), make([]string, 0, len(q.By))
	for _, dim := range q.By {
		column := dim.String()
		if n, first := q.bucket(dim); n > 0 {
			column = fmt.Sprintf(d.quotient, fmt.Sprintf("%s - %d", s.bucket, first/s.hours), n/s.hours)
		} else if dim == ByKind {
			column = "crawler"
		}
		columns = append(columns, column+" AS d_"+dim.String())
		groups = append(groups, "d_"+dim.String())
	}
	where := []string{fmt.Sprintf("%[1]s >= %[2]d AND %[1]s < %[3]d", s.bucket, s.from, s.to)}
	for dim, values := range q.Only {
		if dim == ByKind {
			where = append(where, "crawler IN (SELECT crawler FROM "+fmt.Sprintf(d.crawlers, "")+" WHERE "+d.in("category", values)+")")
		} else {
			where = append(where, d.in(dim.String(), values))
		}
	}
	if q.PathPrefix != "" {
		where = append(where, d.prefix(q.PathPrefix))
	}
	if q.Violating {
		where = append(where, "violations > 0")
	}
	if s.and != "" {
		where = append(where, s.and)
	}
	slices.Sort(where) // sort, because the map Only has no order
	final := d.final
	if q.Rough {
		final = ""
	}
	return "SELECT " + strings.Join(append(columns, "sum(requests) AS n_requests, sum(bytes) AS n_bytes, sum(violations) AS n_violations, sum(unread) AS n_unread"), ", ") +
		" FROM " + s.name + final + e.where(where...) + groupBy(groups)
}

// most returns the end of an SQL statement that limits its result to the rows with the most requests (n) or violations
// (v). The limit is greater than q.Limit, because several rows may have equal sums. totalsIn sorts these rows, and then
// applies q.Limit.
func (q *Query) most() string {
	if q.Limit <= 0 || q.timed() {
		return ""
	}
	return fmt.Sprintf(" ORDER BY %s DESC LIMIT %d", map[bool]string{true: "v", false: "n"}[q.Violating], 4*q.Limit+100)
}

// totalsIn returns the sums of the rows in some spans, sorted by time if the query has a dimension of time. Otherwise,
// and at equal times, it sorts them by the number of requests. For a Violating query, it sorts them by the number of
// violations instead, with [OtherPath] last.
func totalsIn(ctx context.Context, e engine, q *Query, spans []span) ([]Row, error) {
	rows := []Row{}
	text, by := q.statement(e, spans), len(q.By)
	if text == "" {
		return rows, nil
	}
	err := e.query(ctx, text, by+4, func(f []string, n []int64) {
		row := Row{Counts: Counts{Requests: n[by], Bytes: n[by+1], Violations: n[by+2], Unread: n[by+3]}}
		for i, d := range q.By {
			if length, first := q.bucket(d); length > 0 {
				row.Start = time.Unix((n[i]*length+first)*3600, 0).UTC()
			} else {
				row.Values[d] = f[i]
			}
		}
		if row.Requests > 0 {
			rows = append(rows, row)
		}
	})
	slices.SortFunc(rows, func(x, y Row) int {
		c := x.Start.Compare(y.Start)
		if q.Violating {
			c = cmp.Or(c, pathless(&x)-pathless(&y), cmp.Compare(y.Violations, x.Violations))
		}
		return cmp.Or(c, cmp.Compare(y.Requests, x.Requests), slices.Compare(x.Values[:], y.Values[:]))
	})
	if q.Limit > 0 && len(rows) > q.Limit && !q.timed() {
		rows = rows[:q.Limit]
	}
	return rows, err
}

func pathless(r *Row) int {
	if r.Values[ByPath] == OtherPath {
		return 1
	}
	return 0
}
