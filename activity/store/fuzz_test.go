// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// A database may contain any bytes. Opening it works or returns an error, but never panics or blocks forever. If Open
// returns ErrDamaged, PutAside can rename the database, and Open can create a new one.
func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	s, err := Open(f.Context(), dir, Options{})
	if err != nil {
		f.Fatal(err)
	}
	for i := range 50 {
		s.Record(activity.Request{Time: start, Host: "h", Crawler: string(rune('a' + i%26)), Path: "/p", Rule: "r", Robots: "v", RobotsTxt: i%2 == 0})
	}
	if err := s.Close(); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, databaseName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), []byte("no database"), uint32(len(whole)))
	f.Add(uint32(96), []byte{0xff, 0xff, 0xff, 0xff}, uint32(len(whole)))
	f.Add(uint32(100), []byte{5, 0, 0, 0, 1}, uint32(5000))
	f.Add(uint32(4096), []byte{0xff, 0, 0xff}, uint32(len(whole)))
	f.Fuzz(func(t *testing.T, at uint32, patch []byte, size uint32) {
		dir := t.TempDir()
		b := append([]byte(nil), whole...)
		copy(b[int(at)%len(b):], patch)
		if err := os.WriteFile(filepath.Join(dir, databaseName), b[:min(len(b), int(size))], 0o600); err != nil {
			t.Fatal(err)
		}
		err := use(t, dir)
		if err == nil || !errors.Is(err, ErrDamaged) {
			return
		}
		if _, err := PutAside(dir, time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := use(t, dir); err != nil {
			t.Errorf("after the damaged one was put aside: %v", err)
		}
	})
}

// use opens a store, records a request, and runs every query.
func use(t *testing.T, dir string) error {
	s, err := Open(t.Context(), dir, Options{writeInterval: time.Hour})
	if err != nil {
		return err
	}
	s.Record(activity.Request{Time: start, Host: "h", Crawler: "c", Path: "/p"})
	r, err := OpenReader(t.Context(), dir)
	if err == nil {
		_, err = r.Totals(t.Context(), Query{By: []Dimension{ByHour, ByHost, ByCrawler, ByPath}, To: start.AddDate(1, 0, 0)})
		_, err2 := r.Crawlers(t.Context())
		_, err3 := r.Reads(t.Context())
		_, err4 := r.Publications(t.Context(), "")
		err = errors.Join(err, err2, err3, err4, r.Check(t.Context()), r.Close())
	}
	return errors.Join(err, s.Close())
}
