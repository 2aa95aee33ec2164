// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store/clickhouse"
)

// FleetSchema returns the statements that create the missing tables of a fleet's database in ClickHouse. If several
// rows of a table have the same key, ClickHouse keeps the row with the highest revision.
func FleetSchema() []string {
	statements := append(make([]string, 0, 1+len(outgoing)), `CREATE TABLE IF NOT EXISTS servers (server_name String, store UInt64, revision UInt64, at DateTime DEFAULT now(), rolled UInt32, last UInt32, behind UInt64, every UInt32, ended UInt8)
ENGINE = ReplacingMergeTree(revision) ORDER BY store`)
	for i := range outgoing {
		t := &outgoing[i]
		columns := t.columns()
		for j, c := range columns {
			kind := "UInt64"
			if c == "server_name" || slices.Contains(t.texts(), c) {
				kind = "String"
			} else if c == t.bucket {
				kind = "UInt32"
			}
			columns[j] = c + " " + kind
		}
		partition := ""
		if day := t.dayOf(); day != "" {
			partition = " PARTITION BY toYYYYMM(toDate(" + day + "))"
		}
		statements = append(statements, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (%s)\nENGINE = ReplacingMergeTree(revision)%s ORDER BY (%s, row_key)",
			t.name, strings.Join(columns, ", "), partition, t.order))
	}
	return statements
}

// dayOf returns the SQL expression for the day of a row, or "" for a table without days.
func (t *outgoingTable) dayOf() string {
	if t.bucket == "hour" {
		return "intDiv(hour, 24)"
	}
	return t.bucket
}

// FleetPrune returns the statements that delete old rows from the tables of a fleet's database. They delete whole
// months. hours is the time before which hourly totals are deleted. days is the time before which all other rows are
// deleted.
func FleetPrune(ctx context.Context, c *clickhouse.Client, hours, days time.Time) ([]string, error) {
	var statements []string
	for i := range outgoing {
		t := &outgoing[i]
		before := days
		if t.bucket == "hour" && t.name != "not_recorded" {
			before = hours
		}
		switch {
		case t.bucket != "":
			if err := c.Query(ctx, "SELECT DISTINCT partition FROM system.parts WHERE active AND database = "+clickhouse.Quote(c.Database())+
				" AND table = "+clickhouse.Quote(t.name)+" AND partition < "+clickhouse.Quote(before.UTC().Format("200601"))+" ORDER BY partition", func(f []string) error {
				statements = append(statements, fmt.Sprintf("ALTER TABLE %s DROP PARTITION %s", t.name, f[0]))
				return nil
			}); err != nil {
				return nil, err
			}
		case t.name == "reads", t.name == "in_force":
			statements = append(statements, fmt.Sprintf("ALTER TABLE %s DELETE WHERE last < %d", t.name, days.Unix()))
		case t.name == "documents":
			statements = append(statements, fmt.Sprintf("ALTER TABLE documents DELETE WHERE first < %d AND version_hash NOT IN (SELECT version_hash FROM reads WHERE last >= %[1]d)", days.Unix()))
		}
	}
	return statements, nil
}

// FleetForget returns the statements that delete in ClickHouse the same rows that [Store.Delete] deletes.
func FleetForget(crawler, host string) (statements []string) {
	for i := range outgoing {
		t := &outgoing[i]
		var where []string
		for _, c := range []struct{ column, value string }{{"crawler", crawler}, {"host", host}} {
			if c.value == "" {
				continue
			}
			if !slices.Contains(t.texts(), c.column) {
				where = nil
				break
			}
			where = append(where, c.column+" = "+clickhouse.Quote(c.value))
		}
		if len(where) > 0 {
			statements = append(statements, "ALTER TABLE "+t.name+" DELETE WHERE "+strings.Join(where, " AND "))
		}
	}
	return statements
}
