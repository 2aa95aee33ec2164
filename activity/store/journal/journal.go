// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bufio"
	"encoding/binary"
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

// A journal is a file of batches: the length of the batch's body and its CRC-32C,
// four bytes each in little-endian order, then the body, which is rows and reads
// with varints and strings with their lengths before them. What follows the first
// batch that is not whole is not read.

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

// File is what a journal is written to: an [os.File].
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

// Append writes sums as a batch. After an error, such as of a full disk, the file has
// the batches from before.
func (j *Journal) Append(s *Sums) error {
	body := s.encode(make([]byte, 8, 8+64*len(s.Rows)))
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
		batch := NewSums(s.limit)
		if err := batch.decode(body); err != nil {
			return err
		}
		s.AddAll(batch)
	}
}

// notTorn returns err, unless it says that a file ends in the middle of a batch.
func notTorn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

func (s *Sums) encode(b []byte) []byte {
	str := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(len(s.Rows)))
	for k, c := range s.Rows {
		b = binary.AppendVarint(b, k.Hour)
		for _, t := range [...]string{k.Host, k.Crawler, k.Kind, k.Identity, k.Decision, k.Rule, k.Policy, k.Path} {
			str(t)
		}
		for _, n := range [...]int64{c.Requests, c.Bytes, c.Violations, c.Queries} {
			b = binary.AppendVarint(b, n)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(s.Reads)))
	for r, t := range s.Reads {
		str(r.Host)
		str(r.Crawler)
		str(r.Version)
		for _, n := range [...]int64{t.First, t.Last, t.Count} {
			b = binary.AppendVarint(b, n)
		}
	}
	return b
}

var errBatch = errors.New("a batch is invalid although its checksum matches")

// decode adds a batch's body to s.
func (s *Sums) decode(body []byte) error {
	d := decoder{body: body}
	for n := d.count(); n > 0 && d.err == nil; n-- {
		var k Key
		k.Hour = d.int()
		for _, t := range [...]*string{&k.Host, &k.Crawler, &k.Kind, &k.Identity, &k.Decision, &k.Rule, &k.Policy, &k.Path} {
			*t = d.str()
		}
		c := Counts{d.int(), d.int(), d.int(), d.int()}
		if d.err == nil {
			s.Add(k, c)
		}
	}
	for n := d.count(); n > 0 && d.err == nil; n-- {
		r := Read{d.str(), d.str(), d.str()}
		t := Times{d.int(), d.int(), d.int()}
		if d.err == nil {
			s.addRead(r, t)
		}
	}
	return d.err
}

type decoder struct {
	body []byte
	err  error
}

func (d *decoder) advance(n int) {
	if n <= 0 || n > len(d.body) {
		d.err = errBatch
		d.body = nil
		return
	}
	d.body = d.body[n:]
}

func (d *decoder) count() uint64 {
	v, n := binary.Uvarint(d.body)
	d.advance(n)
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.body)
	d.advance(n)
	return v
}

func (d *decoder) str() string {
	n := d.count()
	if n > uint64(len(d.body)) {
		d.err = errBatch
		return ""
	}
	s := string(d.body[:n])
	d.body = d.body[n:]
	return s
}
