// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestHostsAreBounded(t *testing.T) {
	dir := t.TempDir()
	s := newTestSet(t, dir+"/{host}.yaml")
	s.lookups.rate = 1e9
	for i := range maxMisses + 500 {
		if l, err := s.find(context.Background(), fmt.Sprintf("h%d.example", i)); l != nil || err != nil {
			t.Fatal(l, err)
		}
	}
	if len(s.misses) > maxMisses || len(s.entries) != 0 {
		t.Errorf("%d misses, %d entries", len(s.misses), len(s.entries))
	}
	// Entries, filled in by hand as they cost more.
	for i := range maxHosts {
		e, _ := s.add(fmt.Sprintf("h%d.example", i), time.Unix(int64(i), 0))
		close(e.ready)
	}
	writePolicy(t, filepath.Join(dir, "new.example.yaml"), hostPolicyText)
	s.misses = map[string]*hostMiss{}
	if l, err := s.find(context.Background(), "new.example"); l == nil || err != nil {
		t.Fatal(l, err)
	}
	if len(s.entries) != maxHosts {
		t.Errorf("%d entries", len(s.entries))
	}
}

// A name that no file can have is that of a host without a file, and nothing is
// held for it, however many of them are asked for.
func TestHostsThatCanHaveNoFile(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, filepath.Join(dir, "default.yaml"), hostPolicyText)
	core, logs := observer.New(zap.InfoLevel)
	for _, name := range []string{"/{host}.yaml", "/{host}/policy.yaml"} {
		s := newTestSet(t, dir+name)
		s.readers[0].teller.logger = zap.New(core)
		long := strings.Repeat("a.", 126)
		for _, host := range []string{long[:250], long[:252] + "b", "default.yaml"} {
			if l, err := s.find(context.Background(), host); l != nil || err != nil {
				t.Errorf("%s of %d characters in %s: %+v %v", host[:5], len(host), name, l, err)
			}
		}
		if len(s.entries) > 0 || logs.Len() > 0 {
			t.Errorf("%d entries, told %v", len(s.entries), logs.All())
		}
	}
}

// While the directory is away, hosts that nobody has heard of cost little memory and
// no line in the log, and none of them is open.
func TestHostsWithoutTheirDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "policies")
	writePolicy(t, filepath.Join(dir, "a.example.yaml"), hostPolicyText)
	core, logs := observer.New(zap.InfoLevel)
	s := newTestSet(t, dir+"/{host}.yaml")
	s.lookups.rate = 1e9
	s.readers[0].teller.logger = zap.New(core)
	find := func(host string) *live {
		t.Helper()
		l, err := s.find(context.Background(), host)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first := find("a.example")
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.sweep(context.Background(), false)
	}
	for i := range 100 {
		if l := find(fmt.Sprintf("h%d.example", i)); l == nil || l != find("h0.example") {
			t.Fatalf("h%d.example: %+v", i, l)
		}
	}
	if find("a.example") != first || s.answer().Error == "" {
		t.Errorf("%+v", s.answer())
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.sweep(context.Background(), false)
	}
	if len(s.entries) != 1 || find("a.example") != first || find("h0.example") != nil || s.answer().Error != "" {
		t.Errorf("%+v", s.answer())
	}
	if logs.Len() != 2 {
		t.Errorf("%v", logs.All())
	}
}

// Files that hang hold so many threads and no more, and no request for long; hosts
// whose policy is held are served.
func TestHostsThatHang(t *testing.T) {
	dir := t.TempDir()
	for _, host := range []string{"a", "b"} {
		writePolicy(t, filepath.Join(dir, host+".example.yaml"), hostPolicyText)
	}
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, dir+"/{host}.yaml")
		find := func(host string) error {
			_, err := s.find(context.Background(), host)
			return err
		}
		if err := find("a.example"); err != nil {
			t.Fatal(err)
		}
		for range maxReading {
			s.reading <- struct{}{}
		}
		start := time.Now()
		if err := find("b.example"); err == nil || time.Since(start) > maxQueueing {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		s.entries["c.example"] = &hostEntry{host: "c.example", ready: make(chan struct{})} // is read, for ever
		if err := find("c.example"); err == nil || time.Since(start) > 2*readTimeout {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		if err := find("a.example"); err != nil {
			t.Error(err)
		}
		<-s.reading
		if err := find("b.example"); err != nil {
			t.Error(err)
		}
		// So it is for those who ask for a reload.
		_ = s.sweeping.take(context.Background())
		if s.reload(context.Background()) {
			t.Error("a sweep beside one that hangs")
		}
		s.sweeping.pass()
		if !s.reload(context.Background()) {
			t.Error("no sweep after one that hung")
		}
	})
}

// An entry can be put out while it is still read.
func TestHostsEvictWhileLoading(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, filepath.Join(dir, "a.example.yaml"), hostPolicyText)
	s := newTestSet(t, dir+"/{host}.yaml")
	for range 20 {
		e, _ := s.add("a.example", time.Now())
		go s.load(e, "a.example.yaml")
		s.mu.Lock()
		s.evict()
		s.mu.Unlock()
		if err := e.wait(context.Background()); err != nil || e.live.Load() == nil {
			t.Fatal(err)
		}
	}
}

// Hosts without a file that are in use stay known as such while others that nobody
// has heard of are asked for in their thousands.
func TestHostsWithoutAFileUnderAFlood(t *testing.T) {
	dir := t.TempDir()
	s := newTestSet(t, dir+"/{host}.yaml")
	s.lookups.rate = 1e9
	known := func(host string) {
		t.Helper()
		if l, err := s.find(context.Background(), host); l != nil || err != nil {
			t.Fatal(l, err)
		}
	}
	for i := range 3 * maxMisses {
		known(fmt.Sprintf("h%d.example", i))
		if i%1000 == 0 {
			known("used.example")
		}
		if i%maxMisses == maxMisses/2 {
			known("used.example")
			s.sweep(context.Background(), false)
			if s.misses["used.example"] == nil {
				t.Fatal("a host in use is forgotten")
			}
		}
	}
	writePolicy(t, filepath.Join(dir, "used.example.yaml"), hostPolicyText)
	known("used.example")
	s.sweep(context.Background(), false)
	if l, err := s.find(context.Background(), "used.example"); l == nil || err != nil {
		t.Error("its file is not found", err)
	}
}

func TestBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bucket{rate: 10}
		for i := range 10 {
			if err := b.wait(context.Background()); err != nil {
				t.Fatal(i, err)
			}
		}
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		// Those who leave the queue leave their places to others.
		for range 1000 {
			if err := b.wait(gone); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		start := time.Now()
		if err := b.wait(context.Background()); err != nil || time.Since(start) > time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		b.waiting = maxWaiting
		if err := b.wait(context.Background()); !errors.Is(err, errBusy) {
			t.Error(err)
		}
	})
}
