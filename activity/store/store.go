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

// Store writes totals of requests to a directory. It is an [activity.Recorder].
type Store struct {
	dir    string
	config atomic.Pointer[Options]
	db     *sql.DB
	lock   *sql.DB
	queue  *activity.Queue[activity.Request]
	sender *sender

	// What follows belongs to the queue's goroutine.
	names      names
	waiting    *sums // not in the database yet
	writing    chan written
	next       time.Time // of a write, with its monotonic reading
	maintained time.Time // likewise, of the last maintenance
	clock      clock
	failing    bool         // Report was called with an error last
	missed     atomic.Int64 // requests that were lost, and are not in the totals yet

	inForceMu sync.Mutex
	inForce   map[string]current // by the names of sources; guarded by inForceMu
}

// written is the result of a write. Sums that are not in the database are in again.
type written struct {
	again *sums
	took  time.Duration
	err   error
}

// Open opens or creates the store in a directory. It fails if another process writes to the directory. The error is
// [ErrDamaged] if a file is damaged.
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

// maxClosed is the longest time between two processes that is taken for a restart. After a longer one, the server may have
// served without its database, or an older copy was put back.
const maxClosed = time.Hour

// noteClosed notes that the database is open and, if it was not closed in order or for long, that requests may be missing
// since its last change. Their number is not known.
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

// Dropped returns the number of requests that found the queue full.
func (s *Store) Dropped() uint64 { return s.queue.Dropped() }

// Reader returns a reader of the store, which Close ends.
func (s *Store) Reader() *Reader { return &Reader{s.dir, s.sender.db} }

// Close writes the totals in memory to the files, and closes the files.
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

// tick runs once a second.
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

// startWrite hands the sums to a goroutine, which adds them to the database and also maintains it, if that is due.
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
	share   = 100 // of the time, writing takes one part
	maxWait = time.Minute
)

// finish takes note of how a write ended.
func (s *Store) finish(w written) error {
	s.writing, s.next = nil, time.Now().Add(min(share*w.took, maxWait))
	if w.again != nil {
		s.waiting.addAll(w.again)
	}
	return w.err
}

// report passes on that writing began to fail, or works again.
func (s *Store) report(err error) {
	if err == nil && !s.failing || err != nil && s.failing && !errors.Is(err, ErrDamaged) {
		return
	}
	s.failing = err != nil
	s.options().Report(err)
}
