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

// Reader reads an activity database, even while another process writes to it. It is safe for concurrent use.
type Reader struct {
	dir string
	db  *sql.DB
}

// OpenReader opens the database in a directory for reading.
func OpenReader(ctx context.Context, dir string) (*Reader, error) {
	if _, err := os.Stat(filepath.Join(dir, databaseName)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is not an activity database: it has no file %s (%w); give the directory that follows \"activity\" in the global option robots_policy", dir, databaseName, fs.ErrNotExist)
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

// A Dimension is a property that can group the rows of an answer, such as the crawler or the day.
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

// String returns the name of the dimension's column.
func (d Dimension) String() string { return columnNames[d] }

// Values holds a row's values in all dimensions except time. The values of dimensions that the query does not ask for
// are empty.
type Values [ByPath + 1]string

// hours returns the length of the dimension's periods in hours, or 0 if it is not a dimension of time.
func (d Dimension) hours() int64 { return [...]int64{ByHour: 1, ByDay: 24}[d] }

// Query asks for totals of a period.
type Query struct {
	// From and To limit the period. From is rounded down to a whole hour, and To is rounded up. The period includes
	// From, but not To.
	From, To time.Time
	// Only filters rows by their values. For each dimension in the map, a row must have one of the listed values. The
	// map must not contain a dimension of time.
	Only       map[Dimension][]string
	PathPrefix string      // selects rows whose path begins with this prefix
	By         []Dimension // the dimensions of the answer's rows
	// If By contains ByDay, Days is the number of days that each row of the answer covers. The first row begins with
	// the day of From. 0 means 1.
	Days int
	// Limit is the maximum number of rows. The answer has the rows with the most requests. 0 means all rows. If By
	// contains a dimension of time, Limit is ignored, and the rows are sorted by time.
	Limit int
	// Violating leaves out rows without violations, and sorts the rows by the number of violations.
	Violating bool
	// Rough allows a [FleetReader] to count a row twice if a server sent the row twice. The answer is less exact, but
	// takes a fraction of the time. Use Rough to find out which values are the most frequent.
	Rough bool
}

// Row holds the totals of the requests with the same values in the query's dimensions.
type Row struct {
	Start  time.Time
	Values Values
	Counts
}

func (q *Query) has(d Dimension) bool { return slices.Contains(q.By, d) }

func (q *Query) paths() bool {
	return q.has(ByPath) || len(q.Only[ByPath]) > 0 || q.PathPrefix != ""
}

// bucket returns the length in hours of the periods in an answer by the dimension d, such as 24 for ByDay. first is the
// hour when the first period begins, counted since 1970. If d is not a dimension of time, hours is 0.
func (q *Query) bucket(d Dimension) (hours, first int64) {
	if d == ByDay && q.Days > 1 {
		return 24 * int64(q.Days), q.From.Unix() / 86400 * 24
	}
	return d.hours(), 0
}

// timed reports whether the rows of the answer are sorted by time.
func (q *Query) timed() bool {
	return slices.ContainsFunc(q.By, func(d Dimension) bool { return d.hours() > 0 })
}

// Key returns a string that is equal for queries with the same answer.
func (q *Query) Key() string {
	only := make([]string, 0, len(q.Only))
	for d, values := range q.Only {
		only = append(only, fmt.Sprintf("%s %q", d, values))
	}
	slices.Sort(only)
	return fmt.Sprintf("%d %d %q %q %q %d %d %v %v", q.From.Unix()/3600, (q.To.Unix()+3599)/3600, only, q.PathPrefix, q.By, q.Days, q.Limit, q.Violating, q.Rough)
}

// Totals returns the rows that answer a query.
func (r *Reader) Totals(ctx context.Context, q Query) ([]Row, error) {
	rolled, err := meta(ctx, r.db, metaRolled)
	if err != nil {
		return nil, err
	}
	return totalsIn(ctx, r, &q, q.spans(rolled))
}
