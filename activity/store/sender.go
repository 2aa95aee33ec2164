// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store/clickhouse"
)

// Fleet describes the fleet's database. A server sends a copy of its totals to this database.
type Fleet struct {
	Client clickhouse.Client // if its URL is empty, nothing is sent
	Node   string            // name of this server
	Every  time.Duration     // interval between sends; default 30 seconds
	// Report is called after each attempt to send, with its error, or with nil if the attempt succeeded.
	Report func(error)
}

// sender sends changed rows to a fleet's database. Rows that cannot be sent stay in the outbox and are sent later. If a
// row is sent twice, the second copy replaces the first, so that no request is counted twice.
type sender struct {
	store  *Store
	db     *sql.DB // opened for reading
	fleet  atomic.Pointer[Fleet]
	cancel context.CancelFunc
	wake   chan struct{}
	done   sync.WaitGroup
}

const (
	maxBackoff   = 5 * time.Minute
	insertBytes  = 4 << 20 // maximum number of bytes of rows in a statement
	insertPause  = 200 * time.Millisecond
	insertLimit  = 2 * time.Minute // maximum time for a statement
	roundInserts = 50              // the sender tells the fleet about its progress after this many statements
)

// SendTo sets the database to which totals are sent. It does not wait until they are sent.
func (s *Store) SendTo(f Fleet) {
	f.Every = cmp.Or(f.Every, 30*time.Second)
	s.sender.fleet.Store(&f)
	select {
	case s.sender.wake <- struct{}{}:
	default:
	}
}

func (s *Store) startSender(ctx context.Context) error {
	db, err := openDatabase(ctx, s.dir, false)
	if err != nil {
		return err
	}
	s.sender = &sender{store: s, db: db, wake: make(chan struct{}, 1)}
	ctx, s.sender.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.sender.done.Go(func() { s.sender.run(ctx) })
	return nil
}

// stop ends the sender's goroutine. After that, call finish to send the remaining rows.
func (d *sender) stop() {
	d.cancel()
	d.done.Wait()
}

// lastSend limits the time for sending when a server stops.
const lastSend = 5 * time.Second

// finish sends the remaining rows, and announces that the server stops, so that the fleet does not report the server as
// silent. Rows that cannot be sent now are sent after the next start.
func (d *sender) finish() {
	f := d.fleet.Load()
	if f == nil || f.Client.URL == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastSend)
	defer cancel()
	for more := true; more; {
		var err error
		if more, err = d.round(ctx, f); err != nil {
			return
		}
	}
	if o, err := originOf(ctx, d.store.db, f.Node); err == nil {
		_ = d.sendNode(ctx, f, o, true) // if this fails, the server will be reported as silent
	}
}

func (d *sender) run(ctx context.Context) {
	var backoff time.Duration
	for {
		f, wait := d.fleet.Load(), maxBackoff
		if f != nil && f.Client.URL != "" {
			more, err := d.round(ctx, f)
			if ctx.Err() != nil {
				return
			}
			if f == d.fleet.Load() {
				f.Report(err)
			}
			switch {
			case err != nil:
				backoff = min(max(2*backoff, f.Every/4), maxBackoff)
				wait = backoff
			case more:
				backoff, wait = 0, insertPause
			default:
				backoff, wait = 0, f.Every
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-time.After(wait):
		}
	}
}

// round sends changed rows, and tells the fleet about the progress. more is true if rows are left.
func (d *sender) round(ctx context.Context, f *Fleet) (more bool, err error) {
	began := d.store.options().Now()
	o, err := originOf(ctx, d.store.db, f.Node)
	if err != nil {
		return false, err
	}
	inserts := 0
	for i := range outgoing {
		n, err := d.sendTable(ctx, f, o, &outgoing[i], roundInserts-inserts)
		if err != nil {
			return false, err
		}
		if inserts += n; inserts >= roundInserts {
			more = true
			break
		}
	}
	if !more {
		if err := setMeta(ctx, d.store.db, metaComplete, began.Unix()); err != nil {
			return false, err
		}
	}
	return more, d.sendNode(ctx, f, o, false)
}

// sendTable sends the changed rows of a table. It uses at most the given number of statements.
func (d *sender) sendTable(ctx context.Context, f *Fleet, o origin, t *outgoingTable, most int) (inserts int, err error) {
	var rows bytes.Buffer
	var read []pendingBucket // buckets whose rows have all been read
	send := func() error {
		if rows.Len() > 0 {
			if inserts > 0 {
				time.Sleep(insertPause) // many statements in a row must not overload the fleet's database
			}
			if err := insert(ctx, f, t.name, t.columns(), rows.Bytes()); err != nil {
				return err
			}
			inserts++
			rows.Reset()
		}
		for _, p := range read {
			if err := t.end(ctx, d.store.db, p); err != nil {
				return err
			}
		}
		read = nil
		return nil
	}
	all, err := t.pending(ctx, d.db)
	for _, p := range all {
		if err != nil || inserts >= most {
			return inserts, err
		}
		if err = t.begin(ctx, d.store.db, p); err != nil {
			return inserts, err
		}
		err = t.write(ctx, d.db, o, p, func(line []byte) error {
			rows.Write(line)
			if rows.Len() < insertBytes {
				return nil
			}
			return send()
		})
		read = append(read, p)
	}
	if err != nil {
		return inserts, err
	}
	return inserts, send()
}

// insert sends rows. It gives up after insertLimit, so that a ClickHouse server that stops reading does not block the
// sender.
func insert(ctx context.Context, f *Fleet, table string, columns []string, rows []byte) error {
	ctx, cancel := context.WithTimeout(ctx, insertLimit)
	defer cancel()
	return f.Client.Insert(ctx, table, columns, rows)
}

// sendNode tells the fleet that this server is running or, if ends is true, that it stops. It also sends the last day
// in path_days, the last hour with totals, and how long ago the fleet last had all rows of this server. These values
// show which rows the fleet lacks.
func (d *sender) sendNode(ctx context.Context, f *Fleet, o origin, ends bool) error {
	var rolled, last int64
	if err := d.db.QueryRowContext(ctx, "SELECT min(coalesce((SELECT value FROM meta WHERE name = '"+metaRolled+"'), 0),"+
		" coalesce((SELECT min(bucket) - 1 FROM outbox WHERE name = 'path_days' AND changed > sent), 1 << 32)),"+
		" coalesce((SELECT max(hour) FROM hours), 0)").Scan(&rolled, &last); err != nil {
		return err
	}
	behind, err := d.behind(ctx)
	if err != nil {
		return err
	}
	ended := 0
	if ends {
		ended = 1
	}
	line := fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", clickhouse.Escape(o.node), o.store, time.Now().UnixMilli(), rolled, last, int64(behind.Seconds()), int64(f.Every.Seconds()), ended)
	return insert(ctx, f, "servers", []string{"server_name", "store", "revision", "rolled", "last", "behind", "every", "ended"}, []byte(line))
}

// behind returns how long ago the fleet last had all rows of this server, or 0 if nothing is left to send.
func (d *sender) behind(ctx context.Context) (time.Duration, error) {
	var first int64
	err := d.db.QueryRowContext(ctx, "SELECT CASE WHEN EXISTS (SELECT 1 FROM outbox WHERE changed > sent)"+
		" THEN coalesce((SELECT value FROM meta WHERE name = '"+metaComplete+"'), (SELECT min(changed) / 1000 FROM outbox WHERE changed > sent)) ELSE 0 END").Scan(&first)
	if err != nil || first == 0 {
		return 0, err
	}
	return max(0, d.store.options().Now().Sub(time.Unix(first, 0))), nil
}

// Behind returns how long ago the fleet last had all totals of this server, or 0 if nothing is left to send. ok is
// false if the totals are not sent to a fleet.
func (s *Store) Behind(ctx context.Context) (behind time.Duration, ok bool, err error) {
	if f := s.sender.fleet.Load(); f == nil || f.Client.URL == "" {
		return 0, false, nil
	}
	behind, err = s.sender.behind(ctx)
	return behind, true, err
}
