// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Reader answers questions about a store, even while another process writes to it. It is safe for concurrent use.
type Reader struct {
	dir string
	db  *sql.DB
}

// OpenReader opens the store of a directory for reading.
func OpenReader(ctx context.Context, dir string) (*Reader, error) {
	if _, err := os.Stat(filepath.Join(dir, databaseName)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is not an activity database: it has no file %s (%w); name the directory of the option activity", dir, databaseName, fs.ErrNotExist)
		}
		return nil, fmt.Errorf("%s is not an activity database: %w", dir, err)
	}
	db, err := openDatabase(ctx, dir, false)
	if err != nil {
		return nil, err
	}
	return &Reader{dir, db}, nil
}

// Close closes the database.
func (r *Reader) Close() error { return r.db.Close() }

// A Dimension is a column in which the rows of an answer can differ.
type Dimension int

// The dimensions.
const (
	ByHost Dimension = iota
	ByCrawler
	ByKind
	ByIdentity
	ByDecision
	ByRule
	ByPolicy
	ByPath
	ByHour // Row.Start is the start of an hour
	ByDay  // Row.Start is the start of a day, UTC
)

var columnNames = [...]string{"host", "crawler", "category", "identity", "decision", "rule", "policy", "path", "hour", "day"}

// String is the name of its column.
func (d Dimension) String() string { return columnNames[d] }

// Values are a row's values in the dimensions other than the times, empty for those that were not asked for.
type Values [ByPath + 1]string

// hours returns the number of hours in a bucket of a dimension, or 0 if it is not a dimension of time.
func (d Dimension) hours() int64 { return [...]int64{ByHour: 1, ByDay: 24}[d] }

// Query asks for totals of a span of time.
type Query struct {
	// From and To bound the span, in whole hours: From is included, To is not.
	From, To time.Time
	// Only selects the rows that have one of the values in a dimension, which may not be one of time.
	Only       map[Dimension][]string
	PathPrefix string      // selects the rows whose path begins with it
	By         []Dimension // the dimensions of the answer's rows
	// Days is the number of days, from the day of From, in a row of ByDay; 0 is one.
	Days int
	// Limit is the number of rows to return, those with the most requests; 0 is all. If By has a dimension of time,
	// rows come in the order of time, and Limit is ignored.
	Limit int
	// Violating leaves out rows without violations. Rows come by the number of violations then.
	Violating bool
	// Rough allows a row that a server sent to ClickHouse more than once to count each
	// time: for an order of what is most, which takes a fraction of the time then.
	Rough bool
}

// Row is totals of the requests that share the values of the dimensions asked for.
type Row struct {
	Start  time.Time
	Values Values
	Counts
}

func (q *Query) has(d Dimension) bool { return slices.Contains(q.By, d) }

func (q *Query) paths() bool {
	return q.has(ByPath) || len(q.Only[ByPath]) > 0 || q.PathPrefix != ""
}

// bucket returns the number of hours in a row of a dimension of time, and the hour that begins the first.
func (q *Query) bucket(d Dimension) (hours, first int64) {
	if d == ByDay && q.Days > 1 {
		return 24 * int64(q.Days), q.From.Unix() / 86400 * 24
	}
	return d.hours(), 0
}

// timed reports whether the rows of the answer come in the order of time.
func (q *Query) timed() bool {
	return slices.ContainsFunc(q.By, func(d Dimension) bool { return d.hours() > 0 })
}

// Key returns a key that is equal for queries with the same answer.
func (q *Query) Key() string {
	only := make([]string, 0, len(q.Only))
	for d, values := range q.Only {
		only = append(only, fmt.Sprintf("%s %q", d, values))
	}
	slices.Sort(only)
	return fmt.Sprintf("%d %d %q %q %q %d %d %v %v", q.From.Unix()/3600, (q.To.Unix()+3599)/3600, only, q.PathPrefix, q.By, q.Days, q.Limit, q.Violating, q.Rough)
}

// Totals answers a query.
func (r *Reader) Totals(ctx context.Context, q Query) ([]Row, error) {
	answer := newAnswer(q)
	err := within(ctx, r.db, func(tx *sql.Tx) error { return answer.addTables(ctx, tx) })
	return answer.rows(), err
}
