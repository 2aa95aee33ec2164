// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

type answer struct {
	query    Query
	from, to int64 // in hours since 1970
	sums     map[answerKey]*Row
	order    []*Row
}

// answerKey identifies a row of an answer.
type answerKey struct {
	bucket int64 // number of the hour or other period, if the query asks for a time
	values Values
}

func newAnswer(q Query) *answer {
	from, to := hoursOf(q.From, q.To)
	return &answer{query: q, from: from, to: to, sums: map[answerKey]*Row{}}
}

// span is a part of a table whose rows are added up for an answer.
type span struct {
	table
	from, to int64 // in the unit of the table: hours or days
}

// spans returns the parts of tables to read. For whole days, it uses the daily totals if the answer does not
// distinguish hours. For the rest, it uses the hourly totals.
func (a *answer) spans(rolled int64) []span {
	hours, days := pathHourTable, pathDayTable
	if !a.query.paths() {
		hours, days = hourTable, dayTable
		rolled = a.to // every write also updates the table days
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
	n := numbers{sums: map[rowKey]*Counts{}}
	if a.query.has(ByKind) {
		if n.kinds, err = kindsOfCrawlers(ctx, tx); err != nil {
			return err
		}
	}
	if n.where, err = a.conditions(ctx, tx); err != nil {
		return err
	}
	for _, s := range a.spans(rolled) {
		if s.from < s.to {
			if err := a.addSpan(ctx, tx, s, &n); err != nil {
				return err
			}
		}
	}
	return a.addNumbers(ctx, tx, &n)
}

// rowKey identifies a row while tables are read. It has the numbers of the row's texts, and the number of its period,
// in the order of Query.By. Paths are texts here, because there are many of them, so that SQLite looks them up faster.
type rowKey struct {
	numbers [ByDay + 1]number
	path    string
}

// numbers holds the sums of rows, identified by the numbers of their texts.
type numbers struct {
	sums  map[rowKey]*Counts
	where string
	kinds map[number]number // number of the category, by number of the crawler
}

// columnOf returns the SQL expression for the number of a dimension's value. For a dimension of time, that is the
// number of the period. For ByKind, it is the number of the crawler.
func (q *Query) columnOf(d Dimension, s span) string {
	if n, first := q.bucket(d); n > 0 {
		return fmt.Sprintf("(t.%s - %d) / %d", s.bucket, first/s.hours, n/s.hours)
	}
	if d == ByKind {
		return "t.crawler"
	}
	return "t." + d.String()
}

// conditions returns the query's conditions in SQL. They compare numbers instead of texts, and SQLite does so quickly
// for one or two values at once.
func (a *answer) conditions(ctx context.Context, tx *sql.Tx) (string, error) {
	var where strings.Builder
	for d, values := range a.query.Only {
		texts, err := json.Marshal(values)
		if err != nil {
			return "", err
		}
		ids, chosen := "", "SELECT id FROM strings WHERE text IN (SELECT value FROM json_each(?))"
		if d == ByKind {
			chosen = "SELECT crawler AS id FROM crawlers WHERE category IN (" + chosen + ")"
		}
		if err := tx.QueryRowContext(ctx, "SELECT coalesce(group_concat(id), '') FROM ("+chosen+")", string(texts)).Scan(&ids); err != nil {
			return "", err
		}
		fmt.Fprintf(&where, " AND %s IN (%s)", a.query.columnOf(d, span{}), ids)
	}
	if a.query.PathPrefix != "" {
		where.WriteString(" AND t.path IN (SELECT id FROM strings WHERE text >= ?3 AND text < ?4)")
	}
	if a.query.Violating {
		where.WriteString(" AND violations > 0")
	}
	return where.String(), nil
}

// addSpan adds up the rows of a span. It does this in Go, because SQLite would sort the rows to group them, which is
// slower. If the query asks for paths, SQLite groups them nevertheless, because there may be too many.
func (a *answer) addSpan(ctx context.Context, tx *sql.Tx, s span, n *numbers) error {
	var key rowKey
	var c Counts
	by := len(a.query.By)
	outer, columns, into := make([]string, by, by+1), make([]string, by, by+1), make([]any, by, by+4)
	for i, d := range a.query.By {
		outer[i], columns[i], into[i] = fmt.Sprintf("c%d", i), fmt.Sprintf("%s AS c%d", a.query.columnOf(d, s), i), &key.numbers[i]
		if d == ByPath {
			outer[i], into[i] = fmt.Sprintf("coalesce((SELECT text FROM strings WHERE id = c%d), '')", i), &key.path
		}
	}
	counts, group := "requests AS n, bytes AS b, violations AS v, unread AS u", ""
	if by == 0 || a.query.has(ByPath) {
		counts = "coalesce(sum(requests), 0) AS n, coalesce(sum(bytes), 0) AS b, coalesce(sum(violations), 0) AS v, coalesce(sum(unread), 0) AS u"
	}
	if a.query.has(ByPath) {
		group = " GROUP BY c0"
		for i := 1; i < by; i++ {
			group += fmt.Sprintf(", c%d", i)
		}
		if !a.query.has(ByKind) {
			group += a.query.most()
		}
	}
	into = append(into, (*number)(&c.Requests), (*number)(&c.Bytes), (*number)(&c.Violations), (*number)(&c.Unread))
	kind := slices.Index(a.query.By, ByKind)
	return each(ctx, tx, func(rows *sql.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if kind >= 0 {
			key.numbers[kind] = n.kinds[key.numbers[kind]]
		}
		if n.sums[key] == nil {
			n.sums[key] = new(Counts)
		}
		n.sums[key].add(c)
		return nil
	}, fmt.Sprintf("SELECT %s FROM (SELECT %s FROM %s AS t WHERE t.%s >= ?1 AND t.%[4]s < ?2%s%s)", strings.Join(append(outer, "n, b, v, u"), ", "),
		strings.Join(append(columns, counts), ", "), s.name, s.bucket, n.where, group), s.from, s.to, a.query.PathPrefix, after(a.query.PathPrefix))
}

// most returns the end of a statement that returns only the rows with the largest sum n or v. Because the rows of other
// spans can change the order, the statement returns four times as many rows as needed.
func (q *Query) most() string {
	if q.Limit <= 0 || q.timed() {
		return ""
	}
	return fmt.Sprintf(" ORDER BY %s DESC LIMIT %d", map[bool]string{true: "v", false: "n"}[q.Violating], 4*q.Limit+100)
}

// number is an integer scanned from a row without reflection.
type number int64

// Scan implements sql.Scanner.
func (n *number) Scan(src any) error {
	i, ok := src.(int64)
	if *n = number(i); !ok {
		return fmt.Errorf("a number of the database is %v", src)
	}
	return nil
}

// seconds is a time stored as seconds since 1970.
type seconds time.Time

// Scan implements sql.Scanner.
func (s *seconds) Scan(src any) error {
	var n number
	err := n.Scan(src)
	*s = seconds(time.Unix(int64(n), 0).UTC())
	return err
}

// addNumbers replaces the numbers in n by texts, and adds the sums to the answer.
func (a *answer) addNumbers(ctx context.Context, tx *sql.Tx, n *numbers) error {
	texts := map[number]string{}
	for key := range n.sums {
		for i, d := range a.query.By {
			if d.hours() == 0 && d != ByPath {
				texts[key.numbers[i]] = ""
			}
		}
	}
	if err := lookUp(ctx, tx, texts, slices.Collect(maps.Keys(texts))...); err != nil {
		return err
	}
	for key, c := range n.sums {
		k := answerKey{}
		for i, d := range a.query.By {
			switch {
			case d.hours() > 0:
				k.bucket = int64(key.numbers[i])
			case d == ByPath:
				k.values[d] = key.path
			default:
				k.values[d] = texts[key.numbers[i]]
			}
		}
		a.add(k, *c)
	}
	return nil
}

// lookUp adds the texts of the numbers to texts.
func lookUp(ctx context.Context, q querier, texts map[number]string, numbers ...number) error {
	ids, err := json.Marshal(numbers)
	if err != nil {
		return err
	}
	type text struct {
		id   number
		text string
	}
	found, err := list(ctx, q, func(t *text) []any { return []any{&t.id, &t.text} }, "SELECT id, text FROM strings WHERE id IN (SELECT value FROM json_each(?))", string(ids))
	for _, t := range found {
		texts[t.id] = t.text
	}
	return err
}

// kindsOfCrawlers returns the number of each crawler's category, by the number of the crawler.
func kindsOfCrawlers(ctx context.Context, q querier) (map[number]number, error) {
	all, err := list(ctx, q, func(p *[2]number) []any { return []any{&p[0], &p[1]} }, "SELECT crawler, category FROM crawlers")
	kinds := make(map[number]number, len(all))
	for _, p := range all {
		kinds[p[0]] = p[1]
	}
	return kinds, err
}

// after returns the first text, in byte order, that is greater than all texts with a prefix.
func after(prefix string) string {
	b := []byte(prefix)
	for i, c := range slices.Backward(b) {
		if c < 0xff {
			b[i]++
			return string(b[:i+1])
		}
	}
	return prefix + "\xff\xff\xff\xff" // these bytes do not occur in texts
}

// add adds counts to the row with the key k.
func (a *answer) add(k answerKey, c Counts) {
	if c.Requests == 0 {
		return
	}
	row := a.sums[k]
	if row == nil {
		row = &Row{Values: k.values}
		for _, d := range a.query.By {
			if n, first := a.query.bucket(d); n > 0 {
				row.Start = time.Unix((k.bucket*n+first)*3600, 0).UTC()
			}
		}
		a.sums[k] = row
		a.order = append(a.order, row)
	}
	row.add(c)
}

func pathless(r *Row) int {
	if r.Values[ByPath] == OtherPath {
		return 1
	}
	return 0
}

// rows returns the rows of the answer. They are sorted by time if the query asks for a time, and otherwise by requests.
// Violations with unknown paths come last.
func (a *answer) rows() []Row {
	slices.SortStableFunc(a.order, func(x, y *Row) int {
		c := x.Start.Compare(y.Start)
		if a.query.Violating {
			c = cmp.Or(c, pathless(x)-pathless(y), cmp.Compare(y.Violations, x.Violations))
		}
		if c = cmp.Or(c, cmp.Compare(y.Requests, x.Requests)); c != 0 {
			return c
		}
		return slices.Compare(x.Values[:], y.Values[:])
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
