// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

var start = time.Date(2026, 11, 20, 22, 30, 0, 0, time.UTC)

// fullFile is a file on a disk that has room for the given number of bytes.
type fullFile struct {
	b    []byte
	room int
}

func (f *fullFile) WriteAt(b []byte, at int64) (int, error) {
	n := min(len(b), max(0, f.room-int(at)))
	f.b = append(f.b[:at], b[:n]...)
	if n < len(b) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func (f *fullFile) Truncate(n int64) error { f.b = f.b[:n]; return nil }
func (f *fullFile) Close() error           { return nil }

func equal(a, b *Sums) bool {
	return maps.EqualFunc(a.Rows, b.Rows, func(x, y *Counts) bool { return *x == *y }) &&
		maps.EqualFunc(a.Reads, b.Reads, func(x, y *Times) bool { return *x == *y })
}

func randomSums(rnd *rand.Rand) *Sums {
	s := NewSums(1000)
	for range rnd.IntN(20) {
		s.AddVisit(&activity.Request{
			Time: start.Add(time.Duration(rnd.IntN(5)) * time.Hour), Host: "h" + strconv.Itoa(rnd.IntN(3)), Crawler: "c", Path: "/" + strconv.Itoa(rnd.IntN(9)),
			Bytes: rnd.Int64N(1000), Violation: rnd.IntN(2) == 0, QueryOmitted: rnd.IntN(2) == 0, RobotsTxt: rnd.IntN(4) == 0, Robots: "v",
		})
	}
	return s
}

// A disk that fills up at any byte, and a file that is cut at any byte, lose the
// batches that were not written and no others.
func TestFullDiskAndTornFile(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	whole, good := &fullFile{room: 1 << 20}, []int{0}
	var batches []*Sums
	j := New(whole)
	for range 4 {
		b := randomSums(rnd)
		if err := j.Append(b); err != nil {
			t.Fatal(err)
		}
		batches, good = append(batches, b), append(good, len(whole.b))
	}
	upTo := func(n int) *Sums {
		want := NewSums(1000)
		for i, b := range batches {
			if good[i+1] <= n {
				want.AddAll(b)
			}
		}
		return want
	}
	for n := range len(whole.b) + 1 {
		got := NewSums(1000)
		if err := got.read(bytes.NewReader(whole.b[:n])); err != nil || !equal(got, upTo(n)) {
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
		full := &fullFile{room: n}
		j, written := New(full), NewSums(1000)
		for _, b := range batches {
			switch err := j.Append(b); {
			case err == nil:
				written.AddAll(b)
			case !errors.Is(err, syscall.ENOSPC):
				t.Fatal(err)
			}
		}
		got = NewSums(1000)
		if err := got.read(bytes.NewReader(full.b)); err != nil || !equal(got, written) {
			t.Fatalf("full after %d bytes: %v", n, err)
		}
	}
}

func TestFilesOfADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, seq := range []int64{10, 9, 1} {
		j, err := Create(dir, seq)
		if err != nil {
			t.Fatal(err)
		}
		s := NewSums(10)
		s.AddVisit(&activity.Request{Time: start, Path: "/" + strconv.Itoa(int(seq))})
		if err := errors.Join(j.Append(s), j.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/journal-x", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	seqs, err := List(dir)
	if err != nil || len(seqs) != 3 || seqs[2] != 10 {
		t.Errorf("%v, %v", seqs, err)
	}
	if _, err := Create(dir, 9); !errors.Is(err, os.ErrExist) {
		t.Errorf("a journal was created twice: %v", err)
	}
	s := NewSums(10)
	if err := ReadInto(Name(dir, 9), s); err != nil || len(s.Rows) != 1 {
		t.Errorf("%v, %v", s.Rows, err)
	}
}

func FuzzJournal(f *testing.F) {
	s := NewSums(10)
	s.AddVisit(&activity.Request{Time: start, Host: "h", Crawler: "c", Path: "/", Robots: "v", RobotsTxt: true})
	file := &fullFile{room: 1 << 20}
	if err := New(file).Append(s); err != nil {
		f.Fatal(err)
	}
	body, err := s.encode(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body, false)
	f.Add(file.b, true)
	f.Add([]byte{1, 0, 0xff, 0xff, 0xff, 0xff, 0x7f}, false)
	f.Fuzz(func(t *testing.T, b []byte, whole bool) {
		got := NewSums(1 << 20)
		if whole { // a file: never an error but of a batch whose checksum is right
			if err := got.read(bytes.NewReader(b)); err != nil && !strings.Contains(err.Error(), "although its checksum matches") {
				t.Fatal(err)
			}
		} else if got.decode(b) != nil {
			return
		}
		body, err := got.encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		again := NewSums(1 << 20)
		if err := again.decode(body); err != nil {
			t.Fatal(err)
		}
		if !equal(got, again) {
			t.Errorf("%v became %v", got, again)
		}
	})
}

// BenchmarkAddVisit measures the cost of a request for the database. 10,000 a second may cost a
// hundredth of a core, so 1,000 ns each. Every second of requests has 2,000 different rows
// here.
func BenchmarkAddVisit(b *testing.B) {
	paths := make([]string, 2000)
	for i := range paths {
		paths[i] = "/articles/2026/a-story-about-" + strconv.Itoa(i) + ".html"
	}
	j := New(&fullFile{room: 1 << 40})
	s, n := NewSums(50_000), 0
	b.ReportAllocs()
	for b.Loop() {
		s.AddVisit(&activity.Request{
			Time: start, Host: "www.example.com", Crawler: "GPTBot", Category: "ai-training", Identity: activity.Unverified, Decision: activity.Allowed,
			Rule: "open", Policy: "0123456789ab", Path: paths[n%len(paths)], Bytes: 1000,
		})
		if n++; n%10_000 == 0 { // a second
			if err := j.Append(s); err != nil {
				b.Fatal(err)
			}
			j, s = New(&fullFile{room: 1 << 40}), NewSums(50_000)
		}
	}
}
