// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/aside"
)

// Check holds the results of [Verify].
type Check struct {
	Files, Events int
	First, Last   time.Time
	// FromStart reports whether the log still has its first line. A log without its first line is in order if an event
	// in the log records that earlier files were deleted because of their age. If there is no such event, Problems says
	// that files were removed.
	FromStart bool
	Signed    int       // number of completely signed files
	Keys      []string  // public keys of all signatures, in base64
	Tail      int       // number of events after the last signature
	Seq       uint64    // number of the last event
	Hash      string    // hash of the last event's line
	SignedTo  uint64    // number of the last signed event
	Stamps    []Stamped // the valid time stamps
	Gaps      []string  // omissions, pauses and errors that the log itself reports
	Omitted   int64     // number of omitted events, according to the log
	Problems  []string  // signs that the log was damaged or changed; empty if there are none
}

// Stamped describes a valid time stamp. According to Authority, the event Seq and all earlier events existed at the
// time Time.
type Stamped struct {
	Seq       uint64
	Time      time.Time
	Authority string
}

// errLine is the error for a line that is not an event.
var errLine = errors.New("is not an event")

// Read passes every event of a log to the function each, in order. file is the name of the event's file, and hash is
// the hash of its line.
func Read(dir string, each func(file string, e *Event, hash string) error) error {
	return readLines(dir, func(file string, _ []byte, e *Event, hash string) error { return each(file, e, hash) })
}

// readLines is like Read, but also passes the text of each line.
func readLines(dir string, each func(file string, line []byte, e *Event, hash string) error) error {
	all, err := days(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no directory %s (%w); give the directory of an evidence log, which is the directory that follows \"evidence\" in the global option robots_policy", dir, fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("%s has no evidence log: there is no file %s…%s", dir, filePrefix, fileSuffix)
	}
	for _, day := range all {
		name := fileName(day)
		if _, err := eachLine(filepath.Join(dir, name), func(n int, line []byte) error {
			var e Event
			if err := json.Unmarshal(line, &e); err != nil || e.Seq == 0 {
				return fmt.Errorf("%s: line %d %w", name, n, errLine)
			}
			return each(name, line, &e, hashOf(line))
		}); err != nil {
			return err
		}
	}
	return nil
}

type checking struct {
	*Check
	dir       string
	key       ed25519.PublicKey
	seq       uint64
	prev      string
	first     uint64 // number of the first event
	expected  uint64 // number of the first event according to the log; 0 if the log does not say
	file      string // the file that is being read
	signature Signature
	unsigned  []string // files of earlier days with unsigned lines at the end
	roots     *x509.CertPool
	stamps    map[uint64]Timestamp // time stamps of the file, by event number
	unstamped []string             // files of earlier days without a time stamp
	newest    time.Time            // latest time of all events so far
}

func (c *checking) problem(format string, args ...any) {
	c.Problems = append(c.Problems, fmt.Sprintf(format, args...))
}

const maxGaps = 100

func (c *checking) gap(e *Event, format string, args ...any) {
	if len(c.Gaps) < maxGaps {
		c.Gaps = append(c.Gaps, e.Time.UTC().Format(time.RFC3339)+": "+fmt.Sprintf(format, args...))
	}
}

// Verify checks the chain, the signatures and the time stamps of a log. If key is not nil, all signatures must be made
// with that key. If roots is not nil, one of its certificates must have issued the certificate of each time-stamping
// authority.
func Verify(dir string, key ed25519.PublicKey, roots *x509.CertPool) (*Check, error) {
	c := &checking{Check: &Check{}, dir: dir, key: key, first: 1, roots: roots}
	err := Read(dir, func(file string, e *Event, hash string) error {
		c.event(file, e, hash)
		return nil
	})
	if errors.Is(err, errLine) {
		c.problem("%v", err)
	} else if err != nil {
		return nil, err
	}
	c.endFile(true)
	c.Check.Seq, c.Hash = c.seq, c.prev
	damaged, _ := filepath.Glob(filepath.Join(dir, filePrefix+"*"+fileSuffix+aside.Mark+"*")) // the pattern is valid
	for _, name := range damaged {
		c.problem("%s was damaged, so Caddy renamed it: its lines are not checked", filepath.Base(name))
	}
	if c.FromStart = c.first == 1; c.first > max(c.expected, 1) {
		c.problem("the log begins with event %d, but should begin with event %d: files were removed", c.first, max(c.expected, 1))
	}
	if len(key) > 0 && len(c.Keys) == 0 && len(c.Problems) == 0 {
		c.problem("no line is signed with the given key")
	}
	if len(c.Keys)+len(key) > 0 {
		for _, file := range c.unsigned {
			c.Gaps = append(c.Gaps, file+" is the file of a past day, but its last lines are not signed: anyone with write access to the file may have changed them")
		}
	}
	if len(c.Stamps) > 0 || roots != nil {
		for _, file := range c.unstamped {
			c.Gaps = append(c.Gaps, file+" is the file of a past day, but it has no time stamp: it may have been written later")
		}
	}
	return c.Check, nil
}

func (c *checking) event(file string, e *Event, hash string) {
	if file != c.file {
		c.endFile(false)
		c.beginFile(file)
	}
	if c.Events == 0 {
		c.First, c.first = e.Time, e.Seq
		if e.Seq == 1 && e.Prev != "" {
			c.problem("%s: event 1 refers to an earlier event, which cannot exist: a line was changed or removed", file)
		}
	} else if e.Seq != c.seq+1 || e.Prev != c.prev {
		c.problem("%s: event %d does not follow event %d: a line was changed, removed or added", file, e.Seq, c.seq)
	}
	if p := e.Published; p != nil {
		again := *p
		if again.Identify(); again.ID != p.ID || hashOf([]byte(p.Text)) != p.SHA256 {
			c.problem("%s: event %d: the published text does not match its hash", file, e.Seq)
		}
	}
	if e.Seq == c.signature.Seq && hash != c.signature.Hash {
		c.problem("%s: event %d is not the one that was signed: the file was changed after it was signed", file, e.Seq)
	}
	c.stamped(e, hash)
	switch e.Type {
	case TypeOmitted:
		c.Omitted += e.Count
		c.gap(e, "%d events (%s) of %s (%s) were left out: %s", e.Count, e.What, e.Crawler, e.Identity, reasons[e.Reason])
	case TypeTrouble:
		c.gap(e, "%s", e.Text)
	case TypeExpired:
		c.expected = uint64(e.Count)
	}
	c.Events++
	c.Last, c.seq, c.prev = e.Time, e.Seq, hash
}

// stamped checks the time stamp of the event e, if it has one. It also reports events whose time is before the time
// stamp of an earlier event, because then a clock was wrong.
func (c *checking) stamped(e *Event, hash string) {
	if n := len(c.Stamps); n > 0 && e.Time.Before(c.Stamps[n-1].Time.Add(-time.Minute)) && e.Type != TypeTrouble {
		c.gap(e, "event %d comes after event %d in the log, but its time is before the time stamp of that event", e.Seq, c.Stamps[n-1].Seq)
	}
	if e.Time.After(c.newest) {
		c.newest = e.Time
	}
	s, ok := c.stamps[e.Seq]
	if !ok {
		return
	}
	delete(c.stamps, e.Seq)
	at, authority, err := s.Check(c.roots)
	switch {
	case s.Hash != hash:
		c.problem("%s: event %d is not the one that was time-stamped: the file was changed later", c.file, e.Seq)
	case err != nil:
		c.problem("%s: the time stamp of event %d is not valid: %v", c.file, e.Seq, err)
	default:
		if c.newest.After(at.Add(time.Minute)) {
			c.gap(e, "an event has the time %s, but already existed at %s, when event %d was time-stamped: the server's clock was wrong", c.newest.UTC().Format(time.RFC3339), at.Format(time.RFC3339), e.Seq)
		}
		c.Stamps = append(c.Stamps, Stamped{e.Seq, at, authority})
	}
}

func (c *checking) readStamps(file string) {
	c.stamps = map[uint64]Timestamp{}
	_, err := eachLine(filepath.Join(c.dir, file+TimestampSuffix), func(_ int, line []byte) error {
		var s Timestamp
		if err := json.Unmarshal(line, &s); err != nil {
			return err
		}
		c.stamps[s.Seq] = s
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.problem("the time stamps of %s cannot be read: %v", file, err)
	}
	if len(c.stamps) == 0 {
		c.unstamped = append(c.unstamped, file)
	}
}

// reasons maps the reasons for omitted events to texts.
var reasons = map[string]string{
	OverQuota:  "this crawler had used its daily share of the log",
	QueueFull:  "the events came faster than the server could write them",
	NotOpen:    "the log could not be opened",
	NotWritten: "the disk was not writable for too long",
}

func (c *checking) beginFile(file string) {
	c.file = file
	c.Files++
	c.readStamps(file)
	s, err := readSignature(filepath.Join(c.dir, file+SignatureSuffix))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		c.problem("%s: %v", file, err)
	case s.File != file:
		c.problem("%s: it has the signature of %s", file, s.File)
	case len(c.key) > 0 && !s.by(c.key):
		c.problem("%s is signed by another key, %s", file, Fingerprint(s.PublicKey))
	default:
		if c.signature = s; !slices.Contains(c.Keys, s.PublicKey) {
			c.Keys = append(c.Keys, s.PublicKey)
		}
		return
	}
	c.signature = Signature{}
}

// endFile checks how much of a file is signed, after all its lines have been read. last is true for the newest file,
// which a server may still write, so its last lines need not be signed or time-stamped.
func (c *checking) endFile(last bool) {
	switch signed := c.signature.Seq; {
	case c.file == "":
	case signed > c.seq:
		c.problem("%s ends with event %d, but was signed up to event %d: lines were removed", c.file, c.seq, signed)
	case signed == c.seq:
		c.Signed++
		c.SignedTo = signed
	case !last:
		c.unsigned = append(c.unsigned, c.file)
	case signed > 0:
		c.Tail, c.SignedTo = int(c.seq-signed), signed
	}
	for seq := range c.stamps { // the time stamps of existing events were already removed
		c.problem("%s has no event %d, which was time-stamped: lines were removed", c.file, seq)
	}
	if n := len(c.unstamped); last && n > 0 && c.unstamped[n-1] == c.file {
		c.unstamped = c.unstamped[:n-1]
	}
}
