// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/activity/store/clickhouse"
)

// outgoingTable is a table whose rows are sent to a fleet's database.
type outgoingTable struct {
	name, bucket string // bucket is the column of the time; a table without such a column is sent as a whole
	keys, others string // columns with texts; keys and bucket form the key
	numbers      string
	interned     bool   // in place of each text, the table has the number of the text
	order        string // sort order of the fleet's table, without row_key, which distinguishes the rows
}

var outgoing = []outgoingTable{
	{"hours", "hour", rowTexts, "", countColumns, true, "hour, crawler"},
	{"days", "day", rowTexts, "", countColumns, true, "day, crawler"},
	{"path_hours", "hour", pathTexts, "", countColumns, true, "crawler, hour"},
	{"path_days", "day", pathTexts, "", countColumns, true, "crawler, day"},
	{"not_recorded", "hour", "", "", "requests", false, "hour"},
	{"crawlers", "", "crawler", "category", "first, last", true, "crawler"},
	{"reads", "", readTexts, "", "first, last, requests", true, "crawler, host"},
	{"versions", "", "hash, version, name", "policy, text", "first", false, "name"},
	{"in_force", "", "hash, version, name, since", "", "first, last", false, "name"},
	{"documents", "", "version_hash, host, etag", "text", "first", false, "host"},
}

func columnList(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ", ")
}

func (t *outgoingTable) texts() []string { return append(columnList(t.keys), columnList(t.others)...) }

// columns returns the columns of the sent rows. If the key or the meaning of a column changes, use a new table.
func (t *outgoingTable) columns() []string {
	all := append([]string{"server_name", "store", "row_key", "revision"}, t.texts()...)
	if t.bucket != "" {
		all = append(all, t.bucket)
	}
	return append(all, columnList(t.numbers)...)
}

type pendingBucket struct{ bucket, changed, sent int64 }

// pending returns the buckets of a table that must be sent, the newest first.
func (t *outgoingTable) pending(ctx context.Context, db querier) ([]pendingBucket, error) {
	return list(ctx, db, func(p *pendingBucket) []any { return []any{&p.bucket, &p.changed, &p.sent} },
		"SELECT bucket, changed, sent FROM outbox WHERE name = ? AND changed > sent ORDER BY bucket DESC", t.name)
}

func (t *outgoingTable) begin(ctx context.Context, db querier, p pendingBucket) error {
	_, err := db.ExecContext(ctx, "UPDATE outbox SET begun = 1 WHERE name = ? AND bucket = ? AND begun = 0", t.name, p.bucket)
	return err
}

// end records that a bucket was sent. It deletes the bucket's empty rows, which were stored only for sending.
func (t *outgoingTable) end(ctx context.Context, db querier, p pendingBucket) error {
	if _, err := db.ExecContext(ctx, "UPDATE outbox SET sent = ? WHERE name = ? AND bucket = ?", p.changed, t.name, p.bucket); err != nil {
		return err
	}
	if t.numbers != countColumns {
		return nil
	}
	_, err := db.ExecContext(ctx, "DELETE FROM "+t.name+" WHERE "+t.bucket+" = ? AND requests = 0 AND changed <= ?", p.bucket, p.changed)
	return err
}

// origin identifies the database that sends rows. If a server has a new database, the rows of the new database do not
// replace the rows of the earlier one. Both are counted.
type origin struct {
	node  string
	store int64
}

// originOf returns the origin of a database. The first call chooses a random number for the database.
func originOf(ctx context.Context, db querier, node string) (origin, error) {
	n, err := meta(ctx, db, metaStore)
	if err == nil && n == 0 {
		var b [8]byte
		_, _ = rand.Read(b[:]) // rand.Read never fails
		n = int64(binary.BigEndian.Uint64(b[:])>>1 | 1)
		err = setMeta(ctx, db, metaStore, n)
	}
	return origin{node, n}, err
}

// Sends reports whether the database has ever sent totals to a fleet.
func (r *Reader) Sends(ctx context.Context) (bool, error) {
	n, err := meta(ctx, r.db, metaStore)
	return n != 0, err
}

// rowKey returns a hash that distinguishes the rows of a table. The hash does not depend on the server's name, because
// a container can have a different name at each start. So a renamed server still replaces its own rows. Clients cannot
// cause collisions, because they do not know the number of the database.
func (o origin) rowKey(key []string) uint64 {
	h := sha256.New()
	for _, s := range append([]string{strconv.FormatInt(o.store, 10)}, key...) {
		_ = binary.Write(h, binary.BigEndian, int64(len(s)))
		h.Write([]byte(s))
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// write calls the function add for each changed row in the bucket p, which is an hour or day of the table. These are
// the rows that have changed since p was last sent. line is the row in ClickHouse's format TabSeparated.
func (t *outgoingTable) write(ctx context.Context, db querier, o origin, p pendingBucket, add func(line []byte) error) error {
	var columns, joins []string
	for i, c := range t.texts() {
		if !t.interned {
			columns = append(columns, "t."+c)
			continue
		}
		columns = append(columns, fmt.Sprintf("s%d.text", i))
		joins = append(joins, fmt.Sprintf(" JOIN strings AS s%d ON s%[1]d.id = t.%s", i, c))
	}
	texts, keys := make([]string, len(columns)), len(columnList(t.keys))
	where := "WHERE changed > ? AND changed <= ?"
	args := []any{p.sent, p.changed}
	if t.bucket != "" {
		columns, where, args = append(columns, "t."+t.bucket), where+" AND t."+t.bucket+" = ?", append(args, p.bucket)
	}
	columns = append(append(columns, columnList(t.numbers)...), "changed")
	numbers := make([]int64, len(columns)-len(texts))
	into := make([]any, 0, len(columns))
	for i := range texts {
		into = append(into, &texts[i])
	}
	for i := range numbers {
		into = append(into, &numbers[i])
	}
	var line bytes.Buffer
	return each(ctx, db, func(rows *sql.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		line.Reset()
		key := append([]string{strconv.FormatInt(p.bucket, 10)}, texts[:keys]...)
		fmt.Fprintf(&line, "%s\t%d\t%d\t%d", clickhouse.Escape(o.node), o.store, o.rowKey(key), numbers[len(numbers)-1])
		for _, s := range texts {
			line.WriteString("\t" + clickhouse.Escape(s))
		}
		for _, n := range numbers[:len(numbers)-1] {
			line.WriteString("\t" + strconv.FormatInt(n, 10))
		}
		line.WriteByte('\n')
		return add(line.Bytes())
	}, "SELECT "+strings.Join(columns, ", ")+" FROM "+t.name+" AS t"+strings.Join(joins, "")+" "+where, args...)
}
