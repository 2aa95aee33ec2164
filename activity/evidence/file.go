// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// days returns the days whose files are in a directory, in ascending order.
func days(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		if day, ok := dayOf(e.Name()); ok {
			all = append(all, day)
		}
	}
	slices.Sort(all)
	return all, nil
}

// DamagedError is returned if a file does not end with an event. In this case, the chain cannot be continued.
type DamagedError struct{ File string }

func (e *DamagedError) Error() string {
	return e.File + " is damaged: its last line is not an event, or was written by another version of this program"
}

// resume finds the last line of an existing log, so that new lines continue its chain. It returns events that describe
// any damage there. If the last line of the newest file is incomplete, resume removes that line.
func (l *Log) resume() (found []*Event, err error) {
	all, err := days(l.dir)
	if err != nil {
		return nil, err
	}
	for i, day := range slices.Backward(all) {
		name := filepath.Join(l.dir, fileName(day))
		signature, signatureErr := readSignature(name + SignatureSuffix)
		var last Event
		lines, signedAs := 0, ""
		end, err := eachLine(name, func(_ int, line []byte) error {
			lines, last = lines+1, Event{}
			_ = json.Unmarshal(line, &last) // for a line that is not JSON, last.Seq stays 0
			if i == len(all)-1 {
				l.used.add(l.options.quotas, &last, len(line))
				l.relearn(&last)
			}
			if l.prev = hashOf(line); last.Seq == signature.Seq {
				signedAs = l.prev
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if i == len(all)-1 {
			l.day, l.good = day, end
			if err := os.Truncate(name, end); err != nil {
				return nil, err
			}
		}
		if lines == 0 {
			continue // the chain ends in an earlier file
		}
		if last.Seq == 0 {
			return nil, &DamagedError{name}
		}
		l.seq, l.signed, l.latest = last.Seq, last.Seq, last.Time
		if last.Type != TypeStop {
			found = append(found, &Event{Reason: Killed, Text: "the server was killed in its previous run: events of the last second of that run may be missing"})
		}
		if l.options.Key == nil {
			return found, nil
		}
		var why string
		switch {
		case signatureErr != nil || !signature.by(l.options.Key.Public()):
			why = "has no signature by the key in use"
		case signature.File != fileName(day) || signature.Hash != signedAs:
			why = "does not match its signature"
		case signature.Seq != last.Seq:
			why = fmt.Sprintf("is signed up to event %d, but ends with event %d", signature.Seq, last.Seq)
		default:
			return found, nil
		}
		return append(found, &Event{Reason: NotSigned, Text: fileName(day) + " " + why + ": lines written before Caddy started may have been changed"}), nil
	}
	return nil, nil
}

// relearn is called with the events of the current day's file when the log is opened. It remembers the texts in these
// events, so that the texts are not written to the file again.
func (l *Log) relearn(e *Event) {
	switch {
	case e.Published != nil:
		l.inFile[textID(e.Published)] = true
		l.learnAll(e.Published)
	case e.Type == TypeServed:
		l.learn(e.Document, e.Robots, e.Text)
	}
}

// turnDay starts a new file when a new day begins. It never goes back to an earlier day's file, even if the clock was
// set back. If the pending lines cannot be written, it does not start a new file.
func (l *Log) turnDay() {
	today := l.now().Format(time.DateOnly)
	if today <= l.day {
		return
	}
	if l.flush(); len(l.pending) > 0 {
		return
	}
	if err := l.closeFile(); err != nil {
		l.count(WriteFailed, err)
	}
	first := l.day == ""
	l.day, l.good, l.used, l.inFile = today, 0, usage{}, map[string]bool{}
	if !first {
		l.expire()
	}
}

// flush writes the pending lines. If writing fails, it reports the failure once. When writing works again, it records
// the number of failed attempts in the log.
func (l *Log) flush() {
	err := l.write()
	switch {
	case err != nil && l.failure == nil:
		l.failure, l.failures = err, 1
		l.count(WriteFailed, err)
	case err != nil:
		l.failures++
	case l.failure != nil:
		e := &Event{Time: l.now(), Type: TypeTrouble, Reason: WriteFailed, Count: l.failures, Text: l.failure.Error()}
		l.failure = nil
		l.options.Report(WriteFailed, nil)
		l.append(e)
		l.tell(maxOmitted)
		l.flush()
	}
}

// write appends the pending lines to the day's file, and signs the file. If appending fails, write restores the file's
// previous length, so that no incomplete line remains.
func (l *Log) write() error {
	if len(l.pending) == 0 && (l.options.Key == nil || l.signed == l.seq) {
		return nil
	}
	if err := l.openFile(); err != nil {
		return err
	}
	if _, err := l.file.WriteAt(l.pending, l.good); err != nil {
		return errors.Join(err, l.file.Truncate(l.good))
	}
	l.good += int64(len(l.pending))
	l.pending = l.pending[:0]
	return l.sign()
}

// openFile opens the day's file. It opens the file again if another program has replaced or changed it.
func (l *Log) openFile() error {
	name := filepath.Join(l.dir, fileName(l.day))
	if l.file != nil {
		open, err := l.file.Stat()
		if err != nil {
			return err
		}
		there, err := os.Stat(name)
		if err == nil && os.SameFile(open, there) && there.Size() == l.good {
			return nil
		}
		if err := l.closeFile(); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if l.file = f; size == l.good {
		return nil
	}
	// Lines that another program has appended stay in the file, but an event records that the file was changed.
	last := []byte{'\n'}
	if size > 0 {
		_, err = f.ReadAt(last, size-1)
	}
	if last[0] != '\n' {
		l.pending = append([]byte{'\n'}, l.pending...)
	}
	was := l.good
	l.good = size
	l.trouble(&Event{Reason: FileChanged, Text: fmt.Sprintf("another program changed %s: it had %d bytes and has %d", fileName(l.day), was, size)})
	return err
}

func (l *Log) closeFile() error {
	if l.file == nil {
		return nil
	}
	err := errors.Join(l.file.Sync(), l.file.Close())
	l.file = nil
	return err
}

// expire deletes files that are older than the configured number of days. It computes the age from the newest day that
// has a file. So no file is deleted only because the clock jumps ahead. An event in the log records the number of the
// first remaining event.
func (l *Log) expire() {
	all, err := days(l.dir)
	if err != nil || len(all) == 0 {
		return
	}
	whole, err := time.Parse(time.DateOnly, all[len(all)-1])
	if err != nil {
		return
	}
	oldest := whole.AddDate(0, 0, 1-l.options.Days).Format(time.DateOnly)
	n := slices.IndexFunc(all, func(d string) bool { return d >= oldest })
	if n <= 0 {
		return
	}
	var first Event
	_, err = eachLine(filepath.Join(l.dir, fileName(all[n])), func(_ int, line []byte) error {
		return errors.Join(json.Unmarshal(line, &first), io.EOF)
	})
	if first.Seq == 0 {
		l.count(WriteFailed, fmt.Errorf("old files of the evidence log are not deleted, because %s cannot be read: %w", fileName(all[n]), err))
		return
	}
	l.append(&Event{Time: l.now(), Type: TypeExpired, Count: int64(first.Seq)})
	// A text in force is written to the current file before the file that contains it is deleted. Other texts are
	// written again when a crawler reads them the next time.
	clear(l.texts)
	for _, name := range slices.Sorted(maps.Keys(l.inForce)) {
		p := l.inForce[name]
		l.learnAll(p.Publication)
		if p.day < oldest && !l.inFile[textID(p.Publication)] {
			l.append(ofPublication(p.Publication, l.now()))
			l.inFile[textID(p.Publication)] = true
			p.day = l.day
		}
	}
	if l.flush(); l.failure != nil {
		return // the files are deleted later, when the log can record the deletion
	}
	for _, d := range all[:n] {
		for _, suffix := range []string{"", SignatureSuffix, TimestampSuffix} {
			if err := os.Remove(filepath.Join(l.dir, fileName(d)+suffix)); err != nil && !os.IsNotExist(err) {
				l.count(WriteFailed, err)
			}
		}
	}
}

// maxLine limits the length of a line in bytes. A published text may have 1 MiB, and its JSON form can be six times as
// long.
const maxLine = 8 << 20

// eachLine calls the function each for every complete line of a file, with the line's number and text. end is the
// offset after the last complete line.
func eachLine(name string, each func(n int, line []byte) error) (end int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	lines.Split(wholeLines)
	n := 1
	for ; lines.Scan(); n++ {
		end += int64(len(lines.Bytes())) + 1
		if err := each(n, lines.Bytes()); err != nil {
			return end, err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return end, fmt.Errorf("%s: line %d: is too long", filepath.Base(name), n)
	case err != nil:
		return end, fmt.Errorf("%s: line %d: %w", filepath.Base(name), n, err)
	}
	return end, nil
}

// wholeLines is a split function like [bufio.ScanLines], but it ignores a last line without a line end. A server may
// not have finished writing such a line.
func wholeLines(data []byte, _ bool) (advance int, line []byte, err error) {
	if n := bytes.IndexByte(data, '\n'); n >= 0 {
		return n + 1, data[:n], nil
	}
	return 0, nil, nil
}
