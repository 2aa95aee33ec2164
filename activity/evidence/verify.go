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

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/aside"
)

// Check is what [Verify] found.
type Check struct {
	Files, Events int
	First, Last   time.Time
	// FromStart: the log is there from its first line. Otherwise earlier files were
	// deleted for their age, or are missing.
	FromStart bool
	Signed    int      // files with a valid signature
	Keys      []string // the public keys of those, base64
	Unsigned  []string // files of days that have ended without a signature
	Omitted   int64    // events that were left out, as their day's file was full
	// Problems say where the log is not what was written; empty if it is whole.
	Problems []string
}

// maxLine bounds a line: a published text may have 1 MiB, and JSON can make it six
// times as long.
const maxLine = 8 << 20

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
		if err := readFile(dir, fileName(day), each); err != nil {
			return err
		}
	}
	return nil
}

// errLine is a line that is not an event.
var errLine = errors.New("is not an event")

func readFile(dir, name string, each func(file string, e *Event, hash string) error) error {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<16)
	for n := 1; ; n++ {
		line, err := readLine(r)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: line %d: %w", name, n, err)
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil || e.Seq == 0 {
			return fmt.Errorf("%s: line %d %w", name, n, errLine)
		}
		if err := each(name, &e, hashOf(line)); err != nil {
			return err
		}
	}
}

// readLine reads a line without its line end. The last one may lack its line end
// while the log is being written; it is not read then.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(line, []byte("\n")), nil
		case err != bufio.ErrBufferFull:
			return nil, err
		case len(line) > maxLine:
			return nil, errors.New("is too long")
		}
	}
}

// Verify checks the chain of a log and the signatures of its files.
func Verify(dir string) (*Check, error) {
	c := &Check{}
	ends := map[string]Signature{} // what a file's signature should say
	ended, inFile := map[string]bool{}, map[string]int64{}
	prev, seq := "", uint64(0)
	problem := func(format string, args ...any) { c.Problems = append(c.Problems, fmt.Sprintf(format, args...)) }
	err := Read(dir, func(file string, e *Event, hash string) error {
		if c.Events == 0 {
			c.First, c.FromStart = e.Time, e.Seq == 1 && e.Prev == ""
			if e.Seq == 1 && e.Prev != "" {
				problem("%s: the first event refers to an earlier one", file)
			}
		} else if e.Seq != seq+1 || e.Prev != prev {
			problem("%s: event %d does not follow event %d: a line was changed, removed or added", file, e.Seq, seq)
		}
		if _, ok := ends[file]; !ok {
			c.Files++
		}
		if e.Type == TypePublished && hashOf([]byte(e.Text)) != e.SHA256 {
			problem("%s: event %d: the published text does not match its hash", file, e.Seq)
		}
		inFile[file]++
		if e.Type == TypeEnd && e.Count != inFile[file]-1 {
			problem("%s: it ended with %d events, and has %d: lines were removed or added", file, e.Count, inFile[file]-1)
		}
		if e.Type == TypeOmitted {
			c.Omitted += e.Count
		}
		c.Events++
		c.Last, seq, prev = e.Time, e.Seq, hash
		ends[file] = Signature{File: file, Seq: e.Seq, Hash: hash}
		ended[file] = e.Type == TypeEnd
		return nil
	})
	if errors.Is(err, errLine) {
		problem("%v", err)
	} else if err != nil {
		return nil, err
	}
	damaged, _ := filepath.Glob(filepath.Join(dir, filePrefix+"*"+fileSuffix+aside.Mark+"*")) // the pattern is valid
	for _, name := range damaged {
		problem("%s was damaged and put aside: what it holds is not checked", filepath.Base(name))
	}
	for _, file := range slices.Sorted(maps.Keys(ends)) {
		if err := c.checkSignature(dir, ends[file], ended[file], problem); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *Check) checkSignature(dir string, want Signature, ended bool, problem func(string, ...any)) error {
	b, err := os.ReadFile(filepath.Join(dir, want.File+SignatureSuffix))
	if os.IsNotExist(err) {
		if ended {
			c.Unsigned = append(c.Unsigned, want.File)
		}
		return nil
	}
	if err != nil {
		return err
	}
	var s Signature
	if json.Unmarshal(b, &s) != nil || !s.valid() {
		problem("%s: its signature is not valid", want.File)
		return nil
	}
	if s.File != want.File || s.Seq != want.Seq || s.Hash != want.Hash {
		problem("%s: its signature is for event %d with the hash %s…, and the file ends with event %d: it was changed after it was signed", want.File, s.Seq, s.Hash[:min(12, len(s.Hash))], want.Seq)
		return nil
	}
	c.Signed++
	if !slices.Contains(c.Keys, s.PublicKey) {
		c.Keys = append(c.Keys, s.PublicKey)
	}
	return nil
}
