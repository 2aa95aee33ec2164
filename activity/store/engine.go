// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/activity/store/clickhouse"
)

// engine executes SQL statements on the tables of this package. A [Reader] has these tables in SQLite, and a
// [FleetReader] has them in ClickHouse. Both execute the same statements, except for the differences between the two
// dialects.
type engine interface {
	dialect() *dialect
	// query executes the SQL statement text, whose result has the given number of fields. For every row of the result,
	// it calls the function each with the fields f as texts, and with the same fields n as numbers. The number of a
	// field that is not numeric is 0.
	query(ctx context.Context, text string, fields int, each func(f []string, n []int64)) error
	// where returns a WHERE clause with the given conditions, or "" if there are none.
	where(and ...string) string
}

// dialect holds the differences between SQL statements for SQLite and for ClickHouse.
type dialect struct {
	final    string // follows the name of a table, to read only the last revision of each row
	quotient string // format for a quotient of two whole numbers
	text     string // format for the text of a column; the SQLite tables have numbers in place of texts
	value    string // format for a quoted text, to compare it with a column of texts
	join     string
	crawlers string // format for a subquery with the columns crawler, category, since and until
	quote    func(text string) string
	prefix   func(text string) string // returns the condition for paths with a prefix
}

var (
	sqliteDialect = dialect{
		quotient: "(%s) / %d", text: "(SELECT text FROM strings WHERE id = %s)", value: "(SELECT id FROM strings WHERE text = %s)", join: "LEFT JOIN",
		crawlers: "(SELECT crawler, category, first AS since, last AS until FROM crawlers%s)",
		quote:    quoteForSQLite,
		prefix: func(text string) string {
			return "path IN (SELECT id FROM strings WHERE text >= " + quoteForSQLite(text) + " AND text < " + quoteForSQLite(after(text)) + ")"
		},
	}
	clickhouseDialect = dialect{
		final: " FINAL", quotient: "intDiv(%s, %d)", text: "%s", value: "%s", join: "ANY LEFT JOIN",
		crawlers: "(SELECT crawler, argMax(category, last) AS category, min(first) AS since, max(last) AS until FROM crawlers FINAL%s GROUP BY crawler)",
		quote:    clickhouse.Quote,
		prefix:   func(text string) string { return "startsWith(path, " + clickhouse.Quote(text) + ")" },
	}
)

// quoteForSQLite returns an SQL expression for a text. In contrast to a string literal, it can represent any byte.
func quoteForSQLite(text string) string { return fmt.Sprintf("CAST(x'%x' AS TEXT)", text) }

// after returns the first text, in byte order, that is greater than all texts with a prefix.
func after(prefix string) string {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xff {
			b[i]++
			return string(b[:i+1])
		}
	}
	return prefix + "\xff\xff\xff\xff" // these bytes do not occur in texts
}

// textsOf returns SQL expressions for the texts in some columns. In columns and in the result, commas separate the
// items.
func (d *dialect) textsOf(columns string) string {
	all := columnList(columns)
	for i := range all {
		all[i] = fmt.Sprintf(d.text, all[i])
	}
	return strings.Join(all, ", ")
}

// in returns the condition that a column has one of the given texts.
func (d *dialect) in(column string, texts []string) string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = fmt.Sprintf(d.value, d.quote(text))
	}
	return column + " IN (" + strings.Join(all, ", ") + ")"
}

func conditions(all ...string) string {
	if len(all) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(all, " AND ")
}

// numbersIn parses each field f[i] into n[i]. The number is 0 if the field is not numeric.
func numbersIn(f []string, n []int64) {
	for i := range f {
		n[i], _ = strconv.ParseInt(f[i], 10, 64)
	}
}

func (*Reader) dialect() *dialect { return &sqliteDialect }

func (*Reader) where(and ...string) string { return conditions(and...) }

func (r *Reader) query(ctx context.Context, text string, fields int, row func(f []string, n []int64)) error {
	f, n, found, into := make([]string, fields), make([]int64, fields), make([]sql.NullString, fields), make([]any, fields)
	for i := range found {
		into[i] = &found[i]
	}
	return each(ctx, r.db, func(rows *sql.Rows) error {
		err := rows.Scan(into...)
		for i := range found {
			f[i] = found[i].String
		}
		numbersIn(f, n)
		row(f, n)
		return err
	}, text)
}

func (*FleetReader) dialect() *dialect { return &clickhouseDialect }

// where adds the condition that a row belongs to the server r.Node, unless r.Node is "". The condition includes rows
// that the server sent under an earlier name.
func (r *FleetReader) where(and ...string) string {
	if r.Node != "" {
		and = append([]string{"store IN (SELECT store FROM servers FINAL WHERE server_name = " + clickhouse.Quote(r.Node) + ")"}, and...)
	}
	return conditions(and...)
}

func (r *FleetReader) query(ctx context.Context, text string, fields int, row func(f []string, n []int64)) error {
	n := make([]int64, fields)
	return r.Client.Query(ctx, text, func(f []string) error {
		if len(f) != fields {
			return fmt.Errorf("ClickHouse sent a row of %d fields instead of %d: %.200q", len(f), fields, f)
		}
		numbersIn(f, n)
		row(f, n)
		return nil
	})
}
