// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A journal is a file of batches. A batch has the length of its body and the body's CRC-32C,
// four bytes each in little-endian order, and then the body as encoding/gob writes it. Bytes
// after the first incomplete batch are not read.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maxBatch bounds what a damaged length can make a reader allocate.
const maxBatch = 256 << 20

const prefix = "journal-"

// Name returns the file of a journal in a directory.
func Name(dir string, seq int64) string {
	return filepath.Join(dir, prefix+strconv.FormatInt(seq, 10))
}

// List returns the sequence numbers of the journals of a directory, in order.
func List(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var seqs []int64
	for _, e := range entries {
		if n, ok := strings.CutPrefix(e.Name(), prefix); ok {
			if seq, err := strconv.ParseInt(n, 10, 64); err == nil && seq > 0 {
				seqs = append(seqs, seq)
			}
		}
	}
	slices.Sort(seqs)
	return seqs, nil
}

// File is the file of a journal: an [os.File].
type File interface {
	io.WriterAt
	Truncate(size int64) error
	Close() error
}

// Journal is a journal that is being written.
type Journal struct {
	file File
	good int64 // the file's length up to the last whole batch
}

// Create creates a journal in a directory.
func Create(dir string, seq int64) (*Journal, error) {
	f, err := os.OpenFile(Name(dir, seq), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return New(f), nil
}

// New returns a journal that writes to an empty file.
func New(f File) *Journal { return &Journal{file: f} }

// Append writes sums as a batch. After an error, for example because the disk is full, the file still has the earlier
// batches.
func (j *Journal) Append(s *Sums) error {
	body, err := s.encode(make([]byte, 8))
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(body, uint32(len(body)-8))
	binary.LittleEndian.PutUint32(body[4:], crc32.Checksum(body[8:], castagnoli))
	if _, err := j.file.WriteAt(body, j.good); err != nil {
		return errors.Join(err, j.file.Truncate(j.good))
	}
	j.good += int64(len(body))
	return nil
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// ReadInto adds the batches of a journal to s.
func ReadInto(name string, s *Sums) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := s.read(bufio.NewReader(f)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// read adds the whole batches of a journal.
func (s *Sums) read(r io.Reader) error {
	for {
		var head [8]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return notTorn(err)
		}
		n := binary.LittleEndian.Uint32(head[:])
		if n > maxBatch {
			return nil
		}
		body, err := io.ReadAll(io.LimitReader(r, int64(n)))
		if err != nil {
			return notTorn(err)
		}
		if len(body) < int(n) || crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
			return nil
		}
		if err := s.decode(body); err != nil {
			return err
		}
	}
}

// notTorn returns err, unless it says that a file ends in the middle of a batch.
func notTorn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

type batch struct {
	Rows  []row
	Reads []readTimes
	Lost  map[int64]int64
}

type row struct {
	Key
	Counts
}

type readTimes struct {
	Read
	Times
}

func (s *Sums) encode(b []byte) ([]byte, error) {
	all := batch{Lost: s.Lost}
	for k, c := range s.Rows {
		all.Rows = append(all.Rows, row{k, *c})
	}
	for r, t := range s.Reads {
		all.Reads = append(all.Reads, readTimes{r, *t})
	}
	out := bytes.NewBuffer(b)
	err := gob.NewEncoder(out).Encode(all)
	return out.Bytes(), err
}

func (s *Sums) decode(body []byte) error {
	var all batch
	if err := gob.NewDecoder(bytes.NewReader(body)).Decode(&all); err != nil {
		return fmt.Errorf("a batch is invalid although its checksum matches: %w", err)
	}
	for _, r := range all.Rows {
		s.Add(r.Key, r.Counts)
	}
	for _, r := range all.Reads {
		s.addRead(r.Read, r.Times)
	}
	for hour, n := range all.Lost {
		s.Lost[hour] += n
	}
	return nil
}
