// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// Store is an [activity.Recorder] that writes totals of requests to a database in a directory.
type Store struct {
	dir    string
	config atomic.Pointer[Options]
	db     *sql.DB
	lock   *sql.DB
	queue  *activity.Queue[activity.Request]
	sender *sender

	// While the store is open, only the queue's goroutine uses the fields below, up to the field failing.
	names      names
	waiting    *sums // sums that are not in the database yet
	writing    chan written
	next       time.Time // time of the next write, with a monotonic clock reading
	maintained time.Time // time of the last maintenance, with a monotonic clock reading
	clock      clock
	failing    bool         // the last call of Report had an error
	missed     atomic.Int64 // number of lost requests that are not in the sums yet

	inForceMu sync.Mutex
	inForce   map[string]current // keys are names of sources; protected by inForceMu
}

// written is the result of a write. If the write failed, the field again holds the sums, which must be written once
// more.
type written struct {
	again *sums
	took  time.Duration
	err   error
}

// Open opens or creates the database in a directory. It returns an error if another process has opened the database for
// writing. It returns [ErrDamaged] if a file is damaged.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	o.setDefaults()
	if err := checkWritable(dir); err != nil {
		return nil, err
	}
	lock, err := lockDirectory(ctx, dir)
	if err != nil {
		return nil, err
	}
	db, err := openDatabase(ctx, dir, true)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s := &Store{dir: dir, db: db, lock: lock, waiting: newSums(o.RowsPerHour), maintained: time.Now(), inForce: map[string]current{}}
	s.config.Store(&o)
	if err = s.noteClosed(ctx); err == nil {
		err = s.startSender(ctx)
	}
	if err != nil {
		return nil, errors.Join(explain(dir, err), db.Close(), lock.Close())
	}
	s.queue = activity.NewQueue(o.Queue, o.writeInterval, s.take, s.tick)
	return s, nil
}

func (s *Store) take(v activity.Request) {
	s.names.bound(&v)
	s.waiting.addVisit(&v)
}

// maxClosed is the longest time during which the database can be closed for a normal restart. If the database was
// closed for longer, the server may have run without its database, or someone may have restored an older copy.
const maxClosed = time.Hour

// noteClosed records that the database is open. If the database was not closed properly, or was closed for longer than
// maxClosed, some requests since its last change may be missing. In these cases, noteClosed also records that an
// unknown number of requests may be missing.
func (s *Store) noteClosed(ctx context.Context) error {
	killed, err := meta(ctx, s.db, metaOpen)
	if err != nil {
		return err
	}
	revision, err := meta(ctx, s.db, metaRevision)
	if err != nil {
		return err
	}
	now, last := s.options().Now(), time.UnixMilli(revision)
	if revision != 0 && (killed != 0 || now.Sub(last) > maxClosed) {
		from := max(last.Unix(), now.Add(-s.options().Days).Unix())
		for hour := min(from, now.Unix()) / 3600; hour <= now.Unix()/3600; hour++ {
			s.waiting.lost[hour] += 0
		}
	}
	if err := s.merge(ctx, s.waiting); err != nil {
		return err
	}
	s.waiting = newSums(s.options().RowsPerHour)
	return setMeta(ctx, s.db, metaOpen, 1)
}

// Configure changes the limits of rows, bytes and days.
func (s *Store) Configure(o Options) {
	o.setDefaults()
	c := *s.options()
	c.RowsPerHour, c.Hours, c.Days, c.MaxBytes = o.RowsPerHour, o.Hours, o.Days, o.MaxBytes
	s.config.Store(&c)
}

func (s *Store) options() *Options { return s.config.Load() }

func (s *Store) Record(v activity.Request) {
	if !s.queue.Offer(v) {
		s.missed.Add(1)
	}
}

// Missed records that requests were lost before they reached the store.
func (s *Store) Missed(n int64) { s.missed.Add(n) }

// Dropped returns the number of requests dropped because the queue was full.
func (s *Store) Dropped() uint64 { return s.queue.Dropped() }

// Reader returns a reader of the database. The reader works until Close.
func (s *Store) Reader() *Reader { return &Reader{s.dir, s.sender.db} }

// Close writes the sums in memory to the database, and closes the database.
func (s *Store) Close() error {
	s.queue.Close()
	ctx := context.Background()
	s.sender.stop()
	var err error
	if s.writing != nil {
		err = s.finish(<-s.writing)
	}
	unwritten := s.merge(ctx, s.waiting)
	if unwritten == nil {
		unwritten = setMeta(ctx, s.db, metaOpen, 0)
	}
	err = errors.Join(err, unwritten, s.beat(ctx))
	s.sender.finish()
	return errors.Join(err, s.sender.db.Close(), s.db.Close(), s.lock.Close())
}

// tick runs once a second. It starts a write when the next write is due.
func (s *Store) tick() {
	if n := s.missed.Swap(0); n > 0 {
		s.waiting.lost[s.options().Now().Unix()/3600] += n
	}
	select {
	case w := <-s.writing:
		s.report(s.finish(w))
	default:
	}
	s.clock.tick(s.options().Now())
	maintain := time.Since(s.maintained) >= s.options().maintainInterval
	if s.writing == nil && (maintain || !s.waiting.empty() && !time.Now().Before(s.next)) {
		s.startWrite(maintain)
	}
}

// startWrite starts a goroutine that adds the sums to the database. If maintain is true, the goroutine also maintains
// the database.
func (s *Store) startWrite(maintain bool) {
	add, done, steady := s.waiting, make(chan written, 1), s.clock.steady()
	s.waiting, s.writing = newSums(s.options().RowsPerHour), done
	if maintain {
		s.maintained = time.Now()
	}
	go func() {
		ctx, began := context.Background(), time.Now()
		if err := s.merge(ctx, add); err != nil {
			done <- written{again: add, took: time.Since(began), err: fmt.Errorf("merging into %s: %w", databaseName, explain(s.dir, err))}
			return
		}
		w := written{took: time.Since(began)}
		if maintain {
			w.err = explain(s.dir, errors.Join(s.beat(ctx), s.retain(ctx, s.options().Now(), steady)))
		}
		done <- w
	}()
}

const (
	share   = 100 // writing may take at most 1/share of the time
	maxWait = time.Minute
)

// finish handles the result of a write.
func (s *Store) finish(w written) error {
	s.writing, s.next = nil, time.Now().Add(min(share*w.took, maxWait))
	if w.again != nil {
		s.waiting.addAll(w.again)
	}
	return w.err
}

// report calls Report when writing begins to fail, and when it works again. It also calls Report each time that the
// database is damaged.
func (s *Store) report(err error) {
	if err == nil && !s.failing || err != nil && s.failing && !errors.Is(err, ErrDamaged) {
		return
	}
	s.failing = err != nil
	s.options().Report(err)
}
