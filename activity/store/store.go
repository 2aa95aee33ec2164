// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store/journal"
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
	names          names
	second, minute *journal.Sums
	journal        *journal.Journal
	seq            int64
	lastMerge      time.Time // with its monotonic reading
	merging        chan mergeResult
	clock          clock
	journalErr     error        // of the last attempt to write a journal
	mergeErr       error        // of the last merge
	failing        bool         // Report was called with an error last
	missed         atomic.Int64 // requests that were lost, and are not in the totals yet

	inForceMu sync.Mutex
	inForce   map[string]current // by the names of sources; guarded by inForceMu
}

// mergeResult is the result of a merge. Sums that are not in the totals are in unmerged.
type mergeResult struct {
	unmerged *journal.Sums
	err      error
}

// Open opens or creates the store in a directory, and merges the journals that a killed process has left. It fails if
// another process writes to the directory. The error is [ErrDamaged] if a file is damaged.
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
	s := &Store{dir: dir, db: db, lock: lock, second: journal.NewSums(o.RowsPerHour), minute: journal.NewSums(o.RowsPerHour), lastMerge: time.Now(), inForce: map[string]current{}}
	s.config.Store(&o)
	if err = s.recover(ctx); err == nil {
		err = s.startSender(ctx)
	}
	if err != nil {
		return nil, errors.Join(explain(dir, err), db.Close(), lock.Close())
	}
	s.queue = activity.NewQueue(o.Queue, o.flushInterval, s.take, s.tick)
	return s, nil
}

func (s *Store) take(v activity.Request) {
	s.names.bound(&v)
	s.second.AddVisit(&v)
}

// recover merges the journals that are not in the totals. Only a process that did not end in order leaves one, because
// Close merges the last.
func (s *Store) recover(ctx context.Context) error {
	merged, err := meta(ctx, s.db, metaMerged)
	if err != nil {
		return err
	}
	seqs, err := journal.List(s.dir)
	if err != nil {
		return err
	}
	killed := false
	s.seq = merged
	for _, seq := range seqs {
		s.seq = max(s.seq, seq)
		if seq > merged {
			killed = true
			if err := journal.ReadInto(journal.Name(s.dir, seq), s.minute); err != nil {
				return err
			}
		}
	}
	if err := s.noteClosed(ctx, killed); err != nil {
		return err
	}
	if err := s.merge(ctx, s.minute, s.seq); err != nil {
		return err
	}
	s.minute = journal.NewSums(s.options().RowsPerHour)
	for _, seq := range seqs {
		if err := os.Remove(journal.Name(s.dir, seq)); err != nil {
			return err
		}
	}
	return s.rotate()
}

// maxClosed is the longest time between two processes that is taken for a restart. After a longer one, the server may have
// served without its database, or an older copy was put back.
const maxClosed = time.Hour

// noteClosed adds to the sums that requests may be missing since the last change of the database, without their number.
func (s *Store) noteClosed(ctx context.Context, killed bool) error {
	revision, err := meta(ctx, s.db, metaRevision)
	now := s.options().Now()
	last := time.UnixMilli(revision)
	if err != nil || revision == 0 || !killed && now.Sub(last) <= maxClosed {
		return err
	}
	from := max(last.Unix(), now.Add(-s.options().Days).Unix())
	for hour := min(from, now.Unix()) / 3600; hour <= now.Unix()/3600; hour++ {
		s.minute.Lost[hour] += 0
	}
	return nil
}

// rotate begins a journal. If it fails, the last one goes on.
func (s *Store) rotate() error {
	j, err := journal.Create(s.dir, s.seq+1)
	if err != nil {
		return err
	}
	if s.journal != nil {
		_ = s.journal.Close() // every batch was written; nothing is lost here
	}
	s.seq++
	s.journal = j
	return nil
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

// Close writes the totals in memory to the files, and closes the files.
func (s *Store) Close() error {
	s.queue.Close()
	ctx := context.Background()
	s.sender.stop()
	var err error
	if s.merging != nil {
		err = errors.Join(err, s.merged(<-s.merging))
	}
	err = errors.Join(err, s.merge(ctx, s.minute, s.seq), s.journal.Close(), s.beat(ctx))
	s.sender.finish()
	return errors.Join(err, s.sender.db.Close(), s.db.Close(), s.lock.Close())
}

// tick runs once a second.
func (s *Store) tick() {
	if n := s.missed.Swap(0); n > 0 {
		s.second.Lost[s.options().Now().Unix()/3600] += n
	}
	if !s.second.Empty() {
		s.journalErr = s.flush()
	}
	select {
	case r := <-s.merging:
		s.mergeErr = s.merged(r)
	default:
	}
	s.clock.tick(s.options().Now())
	if s.merging == nil && time.Since(s.lastMerge) >= s.mergeInterval() {
		s.journalErr = s.startMerge()
	}
	s.report(errors.Join(s.journalErr, s.mergeErr))
}

// mergeInterval is shorter for a store that sends its totals, as it sends what is merged.
func (s *Store) mergeInterval() time.Duration {
	interval := s.options().mergeInterval
	if f := s.sender.fleet.Load(); f != nil && f.Client.URL != "" {
		interval = min(interval, f.Every/2)
	}
	return interval
}

// flush appends the sums of the last second to the journal.
func (s *Store) flush() error {
	err := s.journal.Append(s.second)
	s.minute.AddAll(s.second) // they are merged even if the journal has no room
	s.second = journal.NewSums(s.options().RowsPerHour)
	return err
}

// startMerge hands the sums since the last merge to a goroutine, while new ones go to a new journal.
func (s *Store) startMerge() error {
	s.lastMerge = time.Now()
	add, seq := s.minute, s.seq
	if err := s.rotate(); err != nil {
		return err
	}
	s.minute = journal.NewSums(s.options().RowsPerHour)
	done := make(chan mergeResult, 1)
	s.merging = done
	steady := s.clock.steady()
	go func() {
		ctx := context.Background()
		if err := s.merge(ctx, add, seq); err != nil {
			done <- mergeResult{add, fmt.Errorf("merging into %s: %w", databaseName, explain(s.dir, err))}
			return
		}
		done <- mergeResult{nil, explain(s.dir, errors.Join(s.beat(ctx), s.removeJournals(seq), s.retain(ctx, s.options().Now(), steady)))}
	}()
	return nil
}

// merged takes note of how a merge ended.
func (s *Store) merged(r mergeResult) error {
	s.merging = nil
	if r.unmerged != nil {
		s.minute.AddAll(r.unmerged)
	}
	return r.err
}

// removeJournals removes journals that are in the totals, except the last: a reader
// may have looked at the totals just before.
func (s *Store) removeJournals(merged int64) error {
	seqs, err := journal.List(s.dir)
	for _, seq := range seqs {
		if seq < merged {
			err = errors.Join(err, os.Remove(journal.Name(s.dir, seq)))
		}
	}
	return err
}

// report passes on that writing began to fail, or works again.
func (s *Store) report(err error) {
	if err == nil && !s.failing || err != nil && s.failing && !errors.Is(err, ErrDamaged) {
		return
	}
	s.failing = err != nil
	s.options().Report(err)
}
