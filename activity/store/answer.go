// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store/journal"
)

type answer struct {
	query    Query
	from, to int64 // hours
	sums     map[string]*Row
	order    []*Row
}

func newAnswer(q Query) *answer {
	return &answer{query: q, from: q.From.Unix() / 3600, to: (q.To.Unix() + 3599) / 3600, sums: map[string]*Row{}}
}

// span is a part of a table to sum up.
type span struct {
	table
	from, to int64 // in buckets
}

// spans chooses the tables to read: whole days from the totals by day where the
// answer does not tell hours apart, and the rest from those by hour.
func (a *answer) spans(rolled int64) []span {
	hours, days := pathHourTable, pathDayTable
	if !a.query.paths() {
		hours, days = hourTable, dayTable
		rolled = a.to // days is written with every merge
	}
	firstDay, lastDay := (a.from+23)/24, min(a.to/24, rolled+1)
	if a.query.has(ByHour) || firstDay >= lastDay {
		return []span{{hours, a.from, a.to}}
	}
	return []span{{hours, a.from, firstDay * 24}, {days, firstDay, lastDay}, {hours, lastDay * 24, a.to}}
}

func (a *answer) addTables(ctx context.Context, tx *sql.Tx) error {
	rolled, err := meta(ctx, tx, metaRolled)
	if err != nil {
		return err
	}
	for _, s := range a.spans(rolled) {
		if s.from >= s.to {
			continue
		}
		if err := a.addSpan(ctx, tx, s); err != nil {
			return err
		}
	}
	return nil
}

// columnOf is the expression for a dimension's number or, of a time, its bucket. For a kind
// it is the number of the crawler: see kinds.
func columnOf(d Dimension, s span) string {
	if n := d.hours(); n > 0 {
		return fmt.Sprintf("t.%s / %d", s.bucket, n/s.hours)
	}
	if d == ByKind {
		return "t.crawler"
	}
	return "t." + string(d)
}

func (a *answer) addSpan(ctx context.Context, tx *sql.Tx, s span) error {
	columns, groups := make([]string, 0, len(a.query.By)+1), make([]string, 0, len(a.query.By))
	for i, d := range a.query.By {
		columns = append(columns, columnOf(d, s)+fmt.Sprintf(" AS c%d", i))
		groups = append(groups, fmt.Sprintf("c%d", i))
	}
	where := make([]string, 1, 1+len(a.query.Only))
	where[0] = fmt.Sprintf("t.%s >= ? AND t.%[1]s < ?", s.bucket)
	args := []any{s.from, s.to}
	for d, values := range a.query.Only {
		chosen := "(SELECT id FROM strings WHERE text IN (?" + strings.Repeat(", ?", len(values)-1) + "))"
		if d == ByKind {
			chosen = "(SELECT crawler FROM crawlers WHERE kind IN " + chosen + ")"
		}
		where = append(where, columnOf(d, s)+" IN "+chosen)
		for _, v := range values {
			args = append(args, v)
		}
	}
	if prefix := a.query.PathPrefix; prefix != "" {
		where = append(where, "t.path IN (SELECT id FROM strings WHERE text >= ? AND text < ?)")
		args = append(args, prefix, after(prefix))
	}
	if a.query.Violating {
		where = append(where, "violations > 0")
	}
	inner := "SELECT " + strings.Join(append(columns, "sum(requests) AS n, sum(bytes) AS b, sum(violations) AS v, sum(unread) AS u"), ", ") + " FROM " + s.name + " AS t WHERE " + strings.Join(where, " AND ")
	if len(groups) > 0 {
		inner += " GROUP BY " + strings.Join(groups, ", ")
	}
	inner = a.kinds(inner)
	if a.query.Limit > 0 && !a.query.timed() {
		// Rows of another span and of the journals can change the order; four times as many leave room for that.
		order := "n"
		if a.query.Violating {
			order = "v"
		}
		inner += fmt.Sprintf(" ORDER BY %s DESC LIMIT %d", order, 4*a.query.Limit+100)
	}
	var outer []string
	for i, d := range a.query.By {
		if d.hours() > 0 {
			outer = append(outer, fmt.Sprintf("c%d", i))
		} else {
			outer = append(outer, fmt.Sprintf("coalesce((SELECT text FROM strings WHERE id = c%d), '')", i))
		}
	}
	outer = append(outer, "coalesce(n, 0), coalesce(b, 0), coalesce(v, 0), coalesce(u, 0)")
	return each(ctx, tx, a.scan, "SELECT "+strings.Join(outer, ", ")+" FROM ("+inner+")", args...)
}

// kinds sums up rows by crawler to rows by kind. Looking the kind up for each row of a
// table would take longer than all else.
func (a *answer) kinds(inner string) string {
	if !a.query.has(ByKind) {
		return inner
	}
	columns, groups := make([]string, len(a.query.By)), make([]string, len(a.query.By))
	for i, d := range a.query.By {
		columns[i], groups[i] = fmt.Sprintf("c%d", i), strconv.Itoa(i+1)
		if d == ByKind {
			columns[i] = fmt.Sprintf("(SELECT kind FROM crawlers WHERE crawler = c%d) AS c%[1]d", i)
		}
	}
	return "SELECT " + strings.Join(columns, ", ") + ", sum(n) AS n, sum(b) AS b, sum(v) AS v, sum(u) AS u FROM (" + inner + ") GROUP BY " + strings.Join(groups, ", ")
}

// after is the first text, in the order of bytes, that follows all with a prefix.
func after(prefix string) string {
	b := []byte(prefix)
	for i, c := range slices.Backward(b) {
		if c < 0xff {
			b[i]++
			return string(b[:i+1])
		}
	}
	return prefix + "\xff\xff\xff\xff" // of bytes that are in no text
}

func (a *answer) scan(rows *sql.Rows) error {
	values := make([]string, len(a.query.By))
	into := make([]any, 0, len(values)+4)
	var bucket int64
	for i, d := range a.query.By {
		if d.hours() > 0 {
			into = append(into, &bucket)
		} else {
			into = append(into, &values[i])
		}
	}
	var c journal.Counts
	if err := rows.Scan(append(into, &c.Requests, &c.Bytes, &c.Violations, &c.Unread)...); err != nil {
		return err
	}
	a.add(bucket, values, c)
	return nil
}

// add adds counts to the row with these values, in the order of Query.By; bucket
// is the hour or day, if the query asks for one.
func (a *answer) add(bucket int64, values []string, c journal.Counts) {
	if c.Requests == 0 {
		return
	}
	id := fmt.Sprint(bucket) + "\x00" + strings.Join(values, "\x00")
	row := a.sums[id]
	if row == nil {
		row = &Row{Values: map[Dimension]string{}}
		for i, d := range a.query.By {
			if n := d.hours(); n > 0 {
				row.Start = time.Unix(bucket*n*3600, 0).UTC()
			} else {
				row.Values[d] = values[i]
			}
		}
		a.sums[id] = row
		a.order = append(a.order, row)
	}
	row.Requests += c.Requests
	row.Bytes += c.Bytes
	row.Violations += c.Violations
	row.Unread += c.Unread
}

func keyValue(k *journal.Key, d Dimension) string {
	switch d {
	case ByHost:
		return k.Host
	case ByCrawler:
		return k.Crawler
	case ByKind:
		return k.Kind
	case ByIdentity:
		return k.Identity
	case ByDecision:
		return k.Decision
	case ByRule:
		return k.Rule
	case ByPolicy:
		return k.Policy
	case ByPath:
		return k.Path
	case ByHour, ByDay: // the time is not in the key
	}
	return ""
}

func (a *answer) addPending(k journal.Key, c *journal.Counts) {
	if k.Hour < a.from || k.Hour >= a.to || a.query.Violating && c.Violations == 0 || !strings.HasPrefix(k.Path, a.query.PathPrefix) {
		return
	}
	for d, values := range a.query.Only {
		if !slices.Contains(values, keyValue(&k, d)) {
			return
		}
	}
	bucket := int64(0)
	values := make([]string, len(a.query.By))
	for i, d := range a.query.By {
		if n := d.hours(); n > 0 {
			bucket = k.Hour / n
		} else {
			values[i] = keyValue(&k, d)
		}
	}
	a.add(bucket, values, *c)
}

// pathless is 1 for rows under OtherPath, else 0.
func pathless(r *Row) int {
	if r.Values[ByPath] == OtherPath {
		return 1
	}
	return 0
}

// rows is the answer in order: by time if the query asks for it, else by requests. Of
// violations, those whose paths are not known come last.
func (a *answer) rows() []Row {
	slices.SortStableFunc(a.order, func(x, y *Row) int {
		if c := x.Start.Compare(y.Start); c != 0 {
			return c
		}
		if a.query.Violating {
			if c := cmp.Or(pathless(x)-pathless(y), cmp.Compare(y.Violations, x.Violations)); c != 0 {
				return c
			}
		}
		return cmp.Or(cmp.Compare(y.Requests, x.Requests), compareValues(a.query.By, x, y))
	})
	order := a.order
	if a.query.Limit > 0 && len(order) > a.query.Limit && !a.query.timed() {
		order = order[:a.query.Limit]
	}
	rows := make([]Row, len(order))
	for i, r := range order {
		rows[i] = *r
	}
	return rows
}

func compareValues(by []Dimension, x, y *Row) int {
	for _, d := range by {
		if c := strings.Compare(x.Values[d], y.Values[d]); c != 0 {
			return c
		}
	}
	return 0
}
