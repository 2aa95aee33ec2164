// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/rfc9309"
)

// Options of a [Log]. A zero field has its default.
type Options struct {
	Key       ed25519.PrivateKey // signs the log; without it nothing is signed
	Authority string             // the address of an authority that time-stamps the log (RFC 3161), if any
	Days      int                // after how many days files are deleted, 396
	Program   string             // written to the start events
	Damaged   string             // the name of a file that was put aside before, if one was
	Now       func() time.Time   // the clock, time.Now
	// Report is called with what begins to go wrong, once a day when events are left out, and, after WriteFailed, with nil when
	// writing works again. It may be nil.
	Report func(reason string, err error)

	quotas *quotas // defaultQuotas
}

// Log writes events to a directory. It is an [activity.Recorder]: it writes the requests
// that are evidence. One process at a time writes to a directory.
type Log struct {
	dir     string
	lock    *os.File
	options Options
	queue   *activity.Queue[item]
	waiting atomic.Int64  // bytes of published texts in the queue
	refused atomic.Uint64 // publications that there was no room for
	omitted Omissions

	closing  context.Context // ends what asks the authority
	cancel   context.CancelFunc
	stampers sync.WaitGroup

	mu          sync.Mutex // guards what follows
	file        *os.File   // nil: that of day is not open
	day         string     // "" before the first event
	good        int64      // length of the file up to its last whole line
	pending     []byte     // lines that follow it and are not written yet
	seq         uint64
	prev        string
	signed      uint64 // the last event that the signature covers
	used        usage
	inForce     map[string]*inForce      // publications, by the names of their sources
	inFile      map[string]bool          // publications whose texts the day's file has
	texts       map[string]*rfc9309.File // robots.txt that were published, by version
	latest      time.Time                // that the clock has shown
	omissionsAt time.Time                // when omissions were written last
	omitting    string                   // the last day when events were left out
	failures    int64                    // of writing, since it worked last
	failure     error                    // the first of them
	stamping    bool                     // the authority is being asked
	stamped     uint64                   // the last event that a time stamp covers
	stampAt     time.Time                // when to ask again
	stampFailed bool                     // the last answer was not as it should be
	troubles    map[string]time.Time     // when something went wrong last, by reason
}

const (
	defaultDays = 396
	queueSize   = 4096     // items that may wait to be written
	maxWaiting  = 16 << 20 // bytes of published texts among them
	maxPending  = 16 << 20 // bytes that wait for a disk that takes nothing
	flushSize   = 64 << 10
	maxInForce  = 100_000 // publications that are remembered as being in force
	maxTexts    = 512     // robots.txt in which lines are looked up
)

// Open opens or creates a log. It continues the chain of an existing log. If a crash has cut the last line, Open
// removes that line. It fails if another process writes to the directory.
func Open(dir string, o Options) (*Log, error) {
	o.Days = cmp.Or(o.Days, defaultDays)
	o.quotas = cmp.Or(o.quotas, &defaultQuotas)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Report == nil {
		o.Report = func(string, error) {}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		return nil, err
	}
	l := &Log{
		dir: dir, lock: lock, options: o, used: usage{}, texts: map[string]*rfc9309.File{}, inForce: map[string]*inForce{}, inFile: map[string]bool{},
		troubles: map[string]time.Time{},
	}
	l.closing, l.cancel = context.WithCancel(context.Background())
	if err := l.start(); err != nil {
		return nil, errors.Join(err, l.closeFile(), unlock(lock))
	}
	l.queue = activity.NewQueue(queueSize, time.Second, l.take, l.tick)
	return l, nil
}

// lockDirectory takes the lock of a directory's writer. It is held until unlock.
func lockDirectory(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("another process writes evidence to %s: give each server a directory of its own (%w)", dir, err), f.Close())
	}
	return f, nil
}

// unlock releases a lock and closes its file. Closing alone is not enough while a program
// that has just been started has the file too.
func unlock(f *os.File) error { return errors.Join(unlockFile(f), f.Close()) }

// start goes on with the chain, and writes the first events.
func (l *Log) start() error {
	found, err := l.resume()
	if err != nil {
		return err
	}
	l.add(&Event{Time: l.now(), Type: TypeStart, Text: l.options.Program})
	for _, e := range found {
		l.trouble(e)
	}
	if l.options.Damaged != "" {
		l.trouble(&Event{Reason: Damaged, Text: l.options.Damaged + " was damaged and put aside: its lines are no longer part of the log"})
	}
	return l.write()
}

func (l *Log) now() time.Time { return l.options.Now().UTC() }

// item waits to be written: a request, or what was published.
type item struct {
	activity.Request
	kind      string // of the event that the request is
	published *Event // nil for a request
	size      int    // of the texts of what was published
}

func (l *Log) Record(v activity.Request) {
	if kind := typeOf(&v); kind != "" && !l.queue.Offer(item{Request: v, kind: kind}) {
		l.omitted.Add(&v, QueueFull)
	}
}

// Omit adds the number of events that were left out while the log was not open.
func (l *Log) Omit(o *Omissions) {
	if o.some.Load() {
		l.omitted.merge(o)
	}
}

// Dropped returns the number of events that were left out.
func (l *Log) Dropped() uint64 { return l.omitted.Total() + l.refused.Load() }

// Troubles returns the time of the last error since the log was opened, by reason.
func (l *Log) Troubles() map[string]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.troubles)
}

func (l *Log) take(i item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i.published != nil {
		l.waiting.Add(-int64(i.size))
		l.publish(i.published)
		return
	}
	e := ofVisit(i.kind, &i.Request)
	l.quote(e)
	l.add(e)
}

// quote looks up which line of the robots.txt that was read is violated. The reader shares
// no code with what wrote the file.
func (l *Log) quote(e *Event) {
	f := l.texts[e.Robots]
	if e.Type != TypeViolation || f == nil {
		return
	}
	who := rfc9309.Crawler{Names: []string{e.Crawler}}
	known, _ := crawlers.Default() // what is built in is valid
	if c, ok := known.Lookup(e.Crawler); ok {
		who.Names, who.IgnoresStar = append(who.Names, c.Follows...), c.IgnoresStar
	}
	if a := f.Ask(who, e.Path); !a.Allowed {
		e.Line, e.Says = a.Line, f.Line(a.Line)
	}
}

// Configure changes the key, the authority, and how many days files are stored.
func (l *Log) Configure(o Options) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.options.Key, l.options.Authority, l.options.Days = o.Key, o.Authority, cmp.Or(o.Days, defaultDays)
}

// tick runs once a second: what was written becomes visible to readers.
func (l *Log) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchClock()
	if now := l.now(); now.Sub(l.omissionsAt) >= time.Minute || now.Before(l.omissionsAt) {
		l.tell(maxOmitted)
	}
	l.flush()
	l.stampWhenDue()
}

func (l *Log) tell(limit int) {
	if len(l.pending) >= maxPending {
		return // until something can be written
	}
	l.omissionsAt = l.now()
	for _, e := range l.omitted.take(l.omissionsAt, limit) {
		l.append(e)
	}
}

// watchClock notes that the clock went back.
func (l *Log) watchClock() {
	now := l.now()
	if back := l.latest.Sub(now); back > time.Second {
		l.latest = now
		l.trouble(&Event{Reason: ClockBack, Text: "the clock went back by " + back.Round(time.Second).String()})
	}
	if now.After(l.latest) {
		l.latest = now
	}
}

// trouble writes that something went wrong, and counts it.
func (l *Log) trouble(e *Event) {
	e.Time, e.Type = l.now(), TypeTrouble
	l.count(e.Reason, errors.New(e.Text))
	l.append(e)
}

func (l *Log) count(reason string, err error) {
	l.troubles[reason] = l.now()
	l.options.Report(reason, err)
}

// add appends an event to the file of the current day, and reports whether there was room for it.
func (l *Log) add(e *Event) bool {
	l.watchClock()
	l.turnDay()
	var reason string
	switch {
	case !l.used.admit(l.options.quotas, e):
		reason = OverQuota
	case len(l.pending) >= maxPending:
		reason = NotWritten
	default:
		l.append(e)
		if len(l.pending) >= flushSize && l.failure == nil {
			l.flush()
		}
		return true
	}
	if e.Type == TypeRead || e.Type == TypeViolation {
		if l.omitting != l.day {
			l.omitting = l.day
			l.options.Report(TypeOmitted, fmt.Errorf("events of %s (%s) are left out: %s. Others may follow today; the log counts them", e.Crawler, e.Identity, reasons[reason]))
		}
		l.omitted.add(omission{share{e.Type, party{e.Crawler, e.Identity}}, reason}, 1)
	}
	return false
}

func (l *Log) append(e *Event) {
	e.Seq, e.Prev = l.seq+1, l.prev
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // an event has nothing that JSON cannot have
	}
	l.pending = append(append(l.pending, line...), '\n')
	l.seq, l.prev = e.Seq, hashOf(line)
	l.used.add(l.options.quotas, e, len(line))
}

// Close writes what is queued. The next process continues the day's file.
func (l *Log) Close() error {
	l.queue.Close()
	l.cancel()
	l.stampers.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell(0)
	l.append(&Event{Time: l.now(), Type: TypeStop})
	err := l.write()
	if err != nil {
		err = fmt.Errorf("%d bytes of evidence could not be written: %w", len(l.pending), err)
	}
	return errors.Join(err, l.closeFile(), unlock(l.lock))
}

func fileName(day string) string { return filePrefix + day + fileSuffix }

const (
	filePrefix = "evidence-"
	fileSuffix = ".jsonl"

	// SignatureSuffix ends the name of the file with a file's signature.
	SignatureSuffix = ".sig"
)

func dayOf(name string) (string, bool) {
	day, ok := strings.CutPrefix(name, filePrefix)
	if ok {
		day, ok = strings.CutSuffix(day, fileSuffix)
	}
	_, err := time.Parse(time.DateOnly, day)
	return day, ok && err == nil
}
