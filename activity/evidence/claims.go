// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// wholeSubject holds the data for the claim that [Check.Whole] returns.
type wholeSubject struct {
	Check claim.Known[*Check] `gap:"unread" what:"the log was not read"`
}

var whole = claim.Register("evidence-whole", func(s wholeSubject) claim.Finding {
	c, _ := s.Check.Get()
	if c == nil {
		return claim.Finding{Unjudged: "The log was not checked"}
	}
	f := claim.Finding{
		Text:     fmt.Sprintf("The log is intact, and signed up to line %d of %d; its last line was written at %s", c.SignedTo, c.Seq, c.Last.UTC().Format(time.RFC3339)),
		Unjudged: fmt.Sprintf("The log is intact, and signed up to line %d of %d", c.SignedTo, c.Seq),
	}
	if c.SignedTo == 0 {
		f.Unjudged = fmt.Sprintf("The log is intact up to line %d, but not signed", c.Seq)
	}
	if len(c.Problems) > 0 {
		f.Fails, f.Text, f.Details = true, "The log was changed or damaged", c.Problems
	}
	return f
})

// Whole returns the claim that a log is complete and signed. The claim does not cover lines that may be missing at the
// end; see [Check.Reaches].
func (c *Check) Whole() claim.Claim {
	var covered claim.Coverage
	for _, g := range c.Gaps {
		covered.Gaps = append(covered.Gaps, claim.Gap{Name: "log-gap", What: g})
	}
	switch {
	case len(c.Keys) == 0:
		covered.Gaps = append(covered.Gaps, claim.Gap{Name: "unsigned", What: "the log is not signed, so anyone with write access to the files could have written it", Close: "to sign the log, add \"key FILE\" to the block of the option \"evidence\""})
	// c.Tail is the number of unsigned lines at the end of the newest file. They are not a gap, because the server may
	// not have signed them yet. If there are such lines, the claim names the last signed line.
	case c.Signed < c.Files && c.Tail == 0:
		covered.Gaps = append(covered.Gaps, claim.Gap{Name: "unsigned-day", What: "the file of at least one day is not completely signed, so anyone with write access to the file may have changed it", Close: "find out whether the signature of that file was removed"})
	}
	return claim.Judge(whole, wholeSubject{claim.Read(c, covered)})
}

// Unread returns the same claim as Whole, but for a log that could not be read.
func (*Check) Unread() claim.Claim { return claim.Judge(whole, wholeSubject{}) }

// Mark identifies the last line of a log by its number and hash. Signatures and time stamps contain such marks.
type Mark struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"` // SHA-256 of the line
}

// ReadMark reads a mark from the file name, which is a copy of a log's signature file, time-stamp file or last line. If
// the file contains several marks, ReadMark returns the one with the greatest line number.
func ReadMark(name string) (last Mark, err error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return last, err
	}
	return ParseMark(name, b)
}

// End returns the mark of the last line of the checked log.
func (c *Check) End() Mark { return Mark{c.Seq, c.Hash} }

// ParseMark does the same as ReadMark for content that the caller has already read, for example from Caddy's storage.
// name identifies the content in errors.
func ParseMark(name string, content []byte) (last Mark, err error) {
	for d := json.NewDecoder(bytes.NewReader(content)); ; {
		var m Mark
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return last, fmt.Errorf("%s must be a copy of a signature file (%s), of a time-stamp file (%s) or of the log's last line: %w", name, SignatureSuffix, TimestampSuffix, err)
		}
		if m.Seq > last.Seq {
			last = m
		}
	}
	if last.Seq == 0 {
		return last, fmt.Errorf("%s does not contain the number of a line. It must be a copy of a signature file (%s), of a time-stamp file (%s) or of the log's last line", name, SignatureSuffix, TimestampSuffix)
	}
	return last, nil
}

// lastSubject holds the data for the claim that [Check.Reaches] returns.
type lastSubject struct {
	Check *Check
	Mark  claim.Known[Mark] `gap:"last" what:"without a copy of the last line, missing lines at the end cannot be detected" close:"keep a copy in another place, and give it with --last"`
	Has   bool              // the log has the marked line, unchanged
}

var reaches = claim.Register("evidence-last", func(s lastSubject) claim.Finding {
	m, _ := s.Mark.Get()
	f := claim.Finding{
		Text:     fmt.Sprintf("The copy shows that the log was not cut off before line %d. Lines that are newer than the copy may be missing", m.Seq),
		Unjudged: fmt.Sprintf("Lines after line %d may be missing", s.Check.Seq),
	}
	switch {
	case m.Seq > s.Check.Seq:
		f.Fails, f.Text = true, fmt.Sprintf("The log ends with line %d, and the copy names line %d: lines were removed, or an older log was put back", s.Check.Seq, m.Seq)
	case m.Seq > 0 && !s.Has:
		f.Fails, f.Text = true, fmt.Sprintf("Line %d differs from the line in the copy: the log was rewritten", m.Seq)
	}
	return f
})

// Reaches returns the claim that no line is missing at the end of the log in dir. To prove this, someone must have kept
// a copy of a signature or time stamp outside of dir, because a person who removes lines can also replace the files in
// dir. m is the mark from this copy, or nil if there is no copy.
func (c *Check) Reaches(dir string, m *Mark) (claim.Claim, error) {
	s := lastSubject{Check: c}
	if m == nil {
		return claim.Judge(reaches, s), nil
	}
	s.Mark = claim.Read(*m, claim.Coverage{})
	err := Read(dir, func(_ string, e *Event, hash string) error {
		if s.Has = e.Seq == m.Seq && hash == m.Hash; e.Seq == m.Seq {
			return io.EOF
		}
		return nil
	})
	if err != nil && !errors.Is(err, io.EOF) && len(c.Problems) == 0 {
		return claim.Claim{}, err
	}
	return claim.Judge(reaches, s), nil
}
