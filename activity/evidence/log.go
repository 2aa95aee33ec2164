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

	"github.com/gofrs/flock"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/rfc9309"
)

// Options configure a [Log]. Zero fields have default values.
type Options struct {
	Key       ed25519.PrivateKey // signs the log; if nil, the log is not signed
	Authority string             // URL of the time-stamping authority (RFC 3161); empty for no time stamps
	Days      int                // files older than this number of days are deleted; default 396
	Program   string             // name and version of the program, for start events
	Damaged   string             // name of a damaged file renamed before Open, or empty
	Now       func() time.Time   // the clock; default time.Now
	// Report is called when an error occurs, but not again while the same failure continues. It is also called once a
	// day if events are left out. When writing works again after the error WriteFailed, Report is called with a nil
	// error. Report may be nil.
	Report func(reason string, err error)

	quotas *quotas // nil means defaultQuotas
}

// Log writes events to a directory. It is an [activity.Recorder], but writes only requests that the evidence needs:
// fetches of robots.txt and of rights documents, and violations. Only one process at a time can write to the directory.
type Log struct {
	dir     string
	lock    *flock.Flock
	options Options
	queue   *activity.Queue[item]
	waiting atomic.Int64  // bytes of published texts in the queue
	refused atomic.Uint64 // number of events about publications that were left out
	omitted Omissions

	closing  context.Context // canceled by Close, to end requests to the authority
	cancel   context.CancelFunc
	stampers sync.WaitGroup

	mu          sync.Mutex // protects the fields below
	file        *os.File   // file of the day; nil if it is not open
	day         string     // empty before the first event
	good        int64      // length of the file up to the end of its last complete line
	pending     []byte     // lines that still have to be appended to the file
	seq         uint64
	prev        string
	signed      uint64 // number of the last signed event
	used        usage
	inForce     map[string]*inForce      // publications in force, by name of their source
	inFile      map[string]bool          // publications whose texts are in the current file
	texts       map[string]*rfc9309.File // published robots.txt files, by version
	latest      time.Time                // latest time that the clock has shown
	omissionsAt time.Time                // time when omitted events were last recorded
	omitting    string                   // last day with omitted events
	failures    int64                    // number of failed attempts to write, since writing last worked
	failure     error                    // the first of these failures
	stamping    bool                     // a request to the authority is in progress
	stamped     uint64                   // number of the last time-stamped event
	stampAt     time.Time                // time of the next request to the authority
	stampFailed bool                     // the last request to the authority failed
	troubles    map[string]time.Time     // time of the last error of each kind
}

const (
	defaultDays = 396
	queueSize   = 4096     // maximum number of items that wait to be written
	maxWaiting  = 16 << 20 // maximum number of bytes of published texts in the queue
	maxPending  = 16 << 20 // maximum number of bytes that wait while writing fails
	flushSize   = 64 << 10
	maxInForce  = 100_000 // maximum number of remembered publications in force
	maxTexts    = 512     // maximum number of remembered robots.txt files
)

// Open opens or creates a log. It continues the chain of an existing log. If a crash has cut off the last line, Open
// removes that line. Open fails if another process writes to the directory.
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
	lock := flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600)) // the system releases the lock if the process is killed
	if locked, err := lock.TryLock(); err != nil {
		return nil, err
	} else if !locked {
		return nil, fmt.Errorf("another process writes evidence to %s: give each server a separate directory", dir)
	}
	l := &Log{
		dir: dir, lock: lock, options: o, used: usage{}, texts: map[string]*rfc9309.File{}, inForce: map[string]*inForce{}, inFile: map[string]bool{},
		troubles: map[string]time.Time{},
	}
	l.closing, l.cancel = context.WithCancel(context.Background())
	if err := l.start(); err != nil {
		return nil, errors.Join(err, l.closeFile(), lock.Unlock())
	}
	l.queue = activity.NewQueue(queueSize, time.Second, l.take, l.tick)
	return l, nil
}

// start continues the chain, and writes the first events.
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
		l.trouble(&Event{Reason: Damaged, Text: l.options.Damaged + " was damaged, so Caddy renamed it: its lines are no longer part of the log"})
	}
	return l.write()
}

func (l *Log) now() time.Time { return l.options.Now().UTC() }

// item is a request, or an event about published texts, that waits in the queue.
type item struct {
	activity.Request
	kind      string // type of the event for the request
	published *Event // nil for a request
	size      int    // number of bytes of text in published
}

func (l *Log) Record(v activity.Request) {
	if kind := typeOf(&v); kind != "" && !l.queue.Offer(item{Request: v, kind: kind}) {
		l.omitted.Add(&v, QueueFull)
	}
}

// Omit adds the counts of o to the log's own omissions, so that the log records them. o counts the events that were
// left out before the log was opened.
func (l *Log) Omit(o *Omissions) {
	if o.some.Load() {
		l.omitted.merge(o)
	}
}

// Dropped returns the number of events that were left out.
func (l *Log) Dropped() uint64 { return l.omitted.Total() + l.refused.Load() }

// Troubles returns the time of the last error of each kind since the log was opened.
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

// quote adds to a violation the line of robots.txt that disallows the request. It uses a parser that shares no code
// with the package that writes robots.txt, so that the result is independent of errors in that package.
func (l *Log) quote(e *Event) {
	f := l.texts[e.Robots]
	if e.Type != TypeViolation || f == nil {
		return
	}
	who := rfc9309.Crawler{Names: []string{e.Crawler}}
	known, _ := crawlers.Default() // the built-in catalog is valid
	if c, ok := known.Lookup(e.Crawler); ok {
		who.Names, who.IgnoresStar = append(who.Names, c.Follows...), c.IgnoresStar
	}
	if a := f.Ask(who, e.Path); !a.Allowed {
		e.Line, e.Says = a.Line, f.Line(a.Line)
	}
}

// Configure changes the key, the time-stamping authority, and the maximum age of files in days.
func (l *Log) Configure(o Options) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.options.Key, l.options.Authority, l.options.Days = o.Key, o.Authority, cmp.Or(o.Days, defaultDays)
}

// tick runs once a second. It writes the pending lines, so that readers can see them.
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
		return // wait until writing works again
	}
	l.omissionsAt = l.now()
	for _, e := range l.omitted.take(l.omissionsAt, limit) {
		l.append(e)
	}
}

// watchClock records an error if the clock was set back.
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

// trouble records an error in the log, and calls Report.
func (l *Log) trouble(e *Event) {
	e.Time, e.Type = l.now(), TypeTrouble
	l.count(e.Reason, errors.New(e.Text))
	l.append(e)
}

func (l *Log) count(reason string, err error) {
	l.troubles[reason] = l.now()
	l.options.Report(reason, err)
}

// add appends an event to the pending lines. It returns false if the event is left out, because the crawler has used up
// its quota for the day or because too many lines are pending.
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
			l.options.Report(TypeOmitted, fmt.Errorf("events of %s (%s) are left out of the evidence log: %s. More events may be left out today; the log records their number", e.Crawler, e.Identity, reasons[reason]))
		}
		l.omitted.add(omission{share{e.Type, party{e.Crawler, e.Identity}}, reason}, 1)
	}
	return false
}

func (l *Log) append(e *Event) {
	e.Seq, e.Prev = l.seq+1, l.prev
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // cannot happen: JSON can represent all fields
	}
	l.pending = append(append(l.pending, line...), '\n')
	l.seq, l.prev = e.Seq, hashOf(line)
	l.used.add(l.options.quotas, e, len(line))
}

// Close writes the queued items and closes the files. The next process continues the current day's file.
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
	return errors.Join(err, l.closeFile(), l.lock.Unlock())
}

func fileName(day string) string { return filePrefix + day + fileSuffix }

const (
	filePrefix = "evidence-"
	fileSuffix = ".jsonl"

	// SignatureSuffix is appended to the name of a day's file to get the name of its signature file.
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
