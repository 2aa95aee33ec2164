// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/aside"
)

// Result is what a check of a log comes to.
type Result string

// The results.
const (
	Signed   Result = "signed"   // whole, and signed to its last line
	Unsigned Result = "unsigned" // whole; not signed, or not to its last line
	Gaps     Result = "gaps"     // unchanged, and it says itself that something is missing
	Broken   Result = "broken"   // changed or damaged since it was written
)

// Check is what [Verify] found.
type Check struct {
	Files, Events int
	First, Last   time.Time
	// FromStart: the log is there from its first line. Otherwise earlier files were
	// deleted for their age, as the log says.
	FromStart bool
	Signed    int      // files that are signed to their last line
	Keys      []string // the public keys of all signatures, base64
	Tail      int      // events of the last file after its signature
	Gaps      []string // what the log says that is missing, or was not watched
	Omitted   int64    // events that were left out, as the log says
	// Problems say where the log is not what was written; empty if it is whole.
	Problems []string
}

// Result is what the check comes to.
func (c *Check) Result() Result {
	switch {
	case len(c.Problems) > 0:
		return Broken
	case len(c.Gaps) > 0:
		return Gaps
	case c.Signed < c.Files:
		return Unsigned
	}
	return Signed
}

// errLine is a line that is not an event.
var errLine = errors.New("is not an event")

// Read calls each with every event of a log, in order, with the hash of its line and
// the file it is in.
func Read(dir string, each func(file string, e *Event, hash string) error) error {
	all, err := days(dir)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("%s holds no evidence: there is no file %s…%s", dir, filePrefix, fileSuffix)
	}
	for _, day := range all {
		name := fileName(day)
		if _, err := eachLine(filepath.Join(dir, name), func(n int, line []byte) error {
			var e Event
			if err := json.Unmarshal(line, &e); err != nil || e.Seq == 0 {
				return fmt.Errorf("%s: line %d %w", name, n, errLine)
			}
			return each(name, &e, hashOf(line))
		}); err != nil {
			return err
		}
	}
	return nil
}

// checking is a check that is under way.
type checking struct {
	*Check
	dir       string
	key       ed25519.PublicKey
	seq       uint64
	prev      string
	first     uint64 // the first event
	expected  uint64 // what the log says which that is; 0: nothing
	file      string // that is being read, and its signature
	signature Signature
	unsigned  []string // files of past days that are not signed to their end
}

func (c *checking) problem(format string, args ...any) {
	c.Problems = append(c.Problems, fmt.Sprintf(format, args...))
}

// maxGaps bounds how many gaps are listed.
const maxGaps = 100

func (c *checking) gap(e *Event, format string, args ...any) {
	if len(c.Gaps) < maxGaps {
		c.Gaps = append(c.Gaps, e.Time.UTC().Format(time.RFC3339)+": "+fmt.Sprintf(format, args...))
	}
}

// Verify checks the chain of a log and its signatures. With a key they must be by that key.
func Verify(dir string, key ed25519.PublicKey) (*Check, error) {
	c := &checking{Check: &Check{}, dir: dir, key: key, first: 1}
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
	damaged, _ := filepath.Glob(filepath.Join(dir, filePrefix+"*"+fileSuffix+aside.Mark+"*")) // the pattern is valid
	for _, name := range damaged {
		c.problem("%s was damaged and put aside: what it holds is not checked", filepath.Base(name))
	}
	if c.FromStart = c.first == 1; c.first > max(c.expected, 1) {
		c.problem("the log begins with event %d, and should begin with event %d: files were removed", c.first, max(c.expected, 1))
	}
	if len(c.Keys)+len(key) > 0 {
		for _, file := range c.unsigned {
			c.Gaps = append(c.Gaps, file+" is of a past day and is not signed to its end: whoever could write to it can have changed it")
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
			c.problem("%s: the first event refers to an earlier one", file)
		}
	} else if e.Seq != c.seq+1 || e.Prev != c.prev {
		c.problem("%s: event %d does not follow event %d: a line was changed, removed or added", file, e.Seq, c.seq)
	}
	if p := e.Published; p != nil {
		again := *p
		if again.Identify(); again.ID != p.ID || hashOf([]byte(p.Text)) != p.SHA256 {
			c.problem("%s: event %d: what was published does not match its hash", file, e.Seq)
		}
	}
	if e.Seq == c.signature.Seq && hash != c.signature.Hash {
		c.problem("%s: event %d is not the one that was signed: the file was changed after it was signed", file, e.Seq)
	}
	switch e.Type {
	case TypeOmitted:
		c.Omitted += e.Count
		c.gap(e, "%d events (%s) of %s, %s, were left out: %s", e.Count, e.What, e.Crawler, e.Identity, reasons[e.Reason])
	case TypeTrouble:
		c.gap(e, "%s", e.Text)
	case TypeExpired:
		c.expected = uint64(e.Count)
	}
	c.Events++
	c.Last, c.seq, c.prev = e.Time, e.Seq, hash
}

// reasons say why events were left out.
var reasons = map[string]string{
	OverQuota:  "this crawler had used its share of the day",
	QueueFull:  "they came faster than they could be written",
	NotOpen:    "the log could not be opened",
	NotWritten: "the disk took nothing for too long",
}

func (c *checking) beginFile(file string) {
	c.file = file
	c.Files++
	s, err := readSignature(filepath.Join(c.dir, file+SignatureSuffix))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		c.problem("%s: %v", file, err)
	case s.File != file:
		c.problem("%s: its signature is that of %s", file, s.File)
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

// endFile looks at how far a file is signed that has been read.
func (c *checking) endFile(last bool) {
	switch signed := c.signature.Seq; {
	case c.file == "":
	case signed > c.seq:
		c.problem("%s ends with event %d, and was signed up to event %d: lines were removed", c.file, c.seq, signed)
	case signed == c.seq:
		c.Signed++
	case !last:
		c.unsigned = append(c.unsigned, c.file)
	case signed > 0:
		c.Tail = int(c.seq - signed)
	}
}
