// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// Options of a [Log]. A zero field has its default.
type Options struct {
	// Key signs the files of days that have ended; without it they are not signed.
	Key ed25519.PrivateKey
	// Days is after how many days files are deleted, 396.
	Days int
	// Program is written to the start events.
	Program string
	// Now is the clock, time.Now.
	Now func() time.Time
	// Report is called with an error when writing begins to fail, and with nil when it
	// works again. It may be nil.
	Report func(error)

	eventsPerDay int   // maxEventsPerDay by default
	bytesPerDay  int64 // maxBytesPerDay by default
}

// Log writes events to a directory. It is an [activity.Recorder]: it writes the visits
// that are evidence. One process at a time writes to a directory.
type Log struct {
	dir     string
	lock    *os.File
	options Options
	queue   *activity.Queue[item]
	failing atomic.Bool
	waiting atomic.Int64  // bytes of published texts in the queue
	refused atomic.Uint64 // publications for which there was no room

	mu      sync.Mutex // guards what follows
	file    *os.File
	out     *bufio.Writer
	day     string
	events  int   // in the day's file
	bytes   int64 // of the day's file
	omitted int64
	seq     uint64
	prev    string
	inForce map[string]string // what was published last, by kind, host and name
}

const (
	defaultDays = 396
	// maxEventsPerDay bounds a day's file; what is beyond is counted.
	maxEventsPerDay = 100_000
	// maxBytesPerDay bounds it too, with the texts that are published. It is exceeded by at
	// most one event.
	maxBytesPerDay = 64 << 20
	queueSize      = 4096     // items that may wait to be written
	maxWaiting     = 16 << 20 // bytes of published texts among them

	filePrefix = "evidence-"
	fileSuffix = ".jsonl"

	// SignatureSuffix ends the name of the file with a file's signature.
	SignatureSuffix = ".sig"
)

func fileName(day string) string { return filePrefix + day + fileSuffix }

// days lists the days that have files in a directory, in order.
func days(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		day, ok := strings.CutPrefix(e.Name(), filePrefix)
		if !ok {
			continue
		}
		if day, ok = strings.CutSuffix(day, fileSuffix); !ok {
			continue
		}
		if _, err := time.Parse(time.DateOnly, day); err == nil {
			all = append(all, day)
		}
	}
	slices.Sort(all)
	return all, nil
}

// Open opens or creates a log. It goes on with the chain where it ended; a last
// line that was cut by a crash is removed. It fails if another process writes to the
// directory.
func Open(dir string, o Options) (*Log, error) {
	o.Days = cmp.Or(o.Days, defaultDays)
	o.eventsPerDay = cmp.Or(o.eventsPerDay, maxEventsPerDay)
	o.bytesPerDay = cmp.Or(o.bytesPerDay, maxBytesPerDay)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		return nil, err
	}
	l := &Log{dir: dir, lock: lock, options: o}
	if err := l.start(); err != nil {
		return nil, errors.Join(err, l.closeFile(), lock.Close())
	}
	l.queue = activity.NewQueue(queueSize, time.Second, l.take, l.tick)
	return l, nil
}

// lockDirectory takes the lock of a directory's writer. It is held until the file that
// it returns is closed.
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

// start goes on with the chain and writes the first event.
func (l *Log) start() error {
	if err := l.resume(); err != nil {
		return err
	}
	if err := l.add(&Event{Time: l.options.Now().UTC(), Type: TypeStart, Text: l.options.Program}); err != nil {
		return err
	}
	return l.out.Flush()
}

// resume finds the end of the chain, and opens the last day's file, from which it removes
// a line that was cut.
func (l *Log) resume() error {
	all, err := days(l.dir)
	if err != nil || len(all) == 0 {
		return err
	}
	l.seq, l.prev = 0, ""
	events, size := 0, int64(0) // of the last day
	for i, day := range slices.Backward(all) {
		line, lines, end, err := lastLine(filepath.Join(l.dir, fileName(day)))
		if i == len(all)-1 {
			events, size = lines, end
		}
		var e Event
		if lines > 0 && (json.Unmarshal(line, &e) != nil || e.Seq == 0) {
			return &DamagedError{filepath.Join(l.dir, fileName(day))}
		}
		if err != nil {
			return err
		}
		if lines > 0 { // otherwise the file is empty, and the chain ends in an earlier one
			l.seq, l.prev = e.Seq, hashOf(line)
			break
		}
	}
	return l.open(all[len(all)-1], 0, events, size)
}

// open opens the file of a day, of which the first size bytes hold events. It cuts off the
// rest.
func (l *Log) open(day string, flags, events int, size int64) error {
	f, err := os.OpenFile(filepath.Join(l.dir, fileName(day)), os.O_WRONLY|flags, 0o600)
	if err != nil {
		return err
	}
	if err = f.Truncate(size); err == nil {
		_, err = f.Seek(size, io.SeekStart)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.out, l.day, l.events, l.bytes = f, bufio.NewWriter(f), day, events, size
	return nil
}

// DamagedError says that a file does not end with an event, so that the chain cannot go on.
type DamagedError struct{ File string }

func (e *DamagedError) Error() string {
	return e.File + " is damaged: its last line is not an event, or of another version of this program"
}

// lastLine reads a file to its last whole line. end is where that ends.
func lastLine(name string) (last []byte, lines int, end int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, 0, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return last, lines, end, nil
		}
		if err != nil {
			return nil, 0, 0, err
		}
		last = bytes.TrimSuffix(line, []byte("\n"))
		lines++
		end += int64(len(line))
	}
}

// item waits to be written: a visit, or what was published.
type item struct {
	activity.Visit
	published *Event // nil for a visit
}

// Record implements [activity.Recorder].
func (l *Log) Record(v activity.Visit) {
	if v.Violation || v.RobotsTxt {
		l.queue.Record(item{Visit: v})
	}
}

// Dropped is how many items found the queue full.
func (l *Log) Dropped() uint64 { return l.queue.Dropped() + l.refused.Load() }

func (l *Log) take(i item) {
	if i.published != nil {
		l.waiting.Add(-int64(len(i.published.Text)))
		l.publish(i.published)
	} else if e, ok := ofVisit(&i.Visit); ok {
		l.write(&e)
	}
}

// Configure changes the key, and after how many days files are deleted.
func (l *Log) Configure(key ed25519.PrivateKey, days int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.options.Key, l.options.Days = key, cmp.Or(days, defaultDays)
}

// maxInForce bounds how many publications are remembered as being in force.
const maxInForce = 100_000

// Publish records that a robots.txt or a policy came into force, unless it is in
// force already. kind is robots or policy; version is what visits call it. It comes
// before the visits that are recorded later, and does not wait for the disk.
func (l *Log) Publish(kind, version, host, name, text string) {
	e := l.published(kind, version, host, name, text)
	if l.waiting.Add(int64(len(text))) > maxWaiting {
		l.refused.Add(1)
	} else if l.queue.Offer(item{published: e}) {
		return
	}
	l.waiting.Add(-int64(len(text)))
}

// published is the event of a publication.
func (l *Log) published(kind, version, host, name, text string) *Event {
	e := &Event{Time: l.options.Now().UTC(), Type: TypePublished, Kind: kind, Host: host, Name: name, SHA256: hashOf([]byte(text)), Text: text}
	if kind == "policy" {
		e.Policy = version
	} else {
		e.Robots = version
	}
	return e
}

func (l *Log) publish(e *Event) {
	id, version := inForceKey(e.Kind, e.Host, e.Name), cmp.Or(e.Policy, e.Robots)
	l.mu.Lock()
	known := l.inForce[id] == version
	if !known {
		if l.inForce == nil || len(l.inForce) >= maxInForce {
			l.inForce = map[string]string{}
		}
		l.inForce[id] = version
	}
	l.mu.Unlock()
	if !known {
		l.write(e)
	}
}

func (l *Log) write(e *Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.report(l.add(e))
}

// tick runs once a second: what was written becomes visible to readers, and a day
// that has ended is closed.
func (l *Log) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.turnDay(l.options.Now().UTC().Format(time.DateOnly))
	if l.out != nil {
		err = errors.Join(err, l.out.Flush())
	}
	l.report(err)
}

func (l *Log) report(err error) {
	if failing := err != nil; failing != l.failing.Swap(failing) {
		l.options.Report(err)
	}
}

// add appends an event to the file of the current day. A clock that goes back does
// not open an earlier file again.
func (l *Log) add(e *Event) error {
	if err := l.turnDay(l.options.Now().UTC().Format(time.DateOnly)); err != nil {
		return err
	}
	if e.Type != TypeStart && l.full(e) {
		l.omitted++
		if e.Type == TypePublished {
			delete(l.inForce, inForceKey(e.Kind, e.Host, e.Name)) // it is written when there is room again
		}
		return nil
	}
	return l.append(e)
}

// full reports whether the day's file has no room for an event. Visits leave room for
// what is published.
func (l *Log) full(e *Event) bool {
	return l.bytes >= l.options.bytesPerDay || e.Type != TypePublished && l.events >= l.options.eventsPerDay
}

func inForceKey(kind, host, name string) string { return kind + "\x00" + host + "\x00" + name }

func (l *Log) append(e *Event) error {
	e.Seq, e.Prev = l.seq+1, l.prev
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := l.out.Write(append(line, '\n')); err != nil {
		// What of the line is in the file cannot be known: the next write begins by
		// finding the end of the chain again.
		return errors.Join(err, l.closeFile(), l.resume())
	}
	l.seq, l.prev = e.Seq, hashOf(line)
	l.events++
	l.bytes += int64(len(line)) + 1
	return nil
}

// turnDay closes the file of a day that has ended and opens the one of today.
func (l *Log) turnDay(today string) error {
	if l.file == nil { // none yet, or it could not be written: where does the chain end?
		if err := l.resume(); err != nil {
			return err
		}
	}
	if l.file != nil && today <= l.day {
		return nil
	}
	if l.file != nil {
		if err := l.endDay(); err != nil {
			return err
		}
	}
	if err := l.open(today, os.O_CREATE|os.O_EXCL, 0, 0); err != nil {
		return err
	}
	return l.expire()
}

func (l *Log) endDay() error {
	now := l.options.Now().UTC()
	if l.omitted > 0 {
		if err := l.append(&Event{Time: now, Type: TypeOmitted, Count: l.omitted}); err != nil {
			return err
		}
		l.omitted = 0
	}
	if err := l.append(&Event{Time: now, Type: TypeEnd, Count: int64(l.events)}); err != nil {
		return err
	}
	if err := l.closeFile(); err != nil {
		// Nobody knows how much of it was written.
		return errors.Join(err, l.resume())
	}
	return l.sign()
}

func (l *Log) closeFile() error {
	if l.file == nil {
		return nil
	}
	err := errors.Join(l.out.Flush(), l.file.Sync(), l.file.Close())
	l.file, l.out = nil, nil
	return err
}

// expire deletes the files of days that are too old, seen from the last day that was
// whole: a clock that jumps ahead deletes nothing.
func (l *Log) expire() error {
	all, err := days(l.dir)
	if err != nil || len(all) < 2 {
		return err
	}
	whole, err := time.Parse(time.DateOnly, all[len(all)-2])
	if err != nil {
		return err
	}
	oldest := whole.AddDate(0, 0, 1-l.options.Days).Format(time.DateOnly)
	for _, d := range all {
		if d >= oldest {
			break
		}
		err = errors.Join(err, os.Remove(filepath.Join(l.dir, fileName(d))))
		if e := os.Remove(filepath.Join(l.dir, fileName(d)+SignatureSuffix)); !os.IsNotExist(e) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// Close writes what is queued. The next process continues the day's file.
func (l *Log) Close() error {
	l.queue.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.closeFile(), l.lock.Close())
}
