// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/time/rate"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

func TestHostsAreBounded(t *testing.T) {
	dir := t.TempDir()
	s := newTestSet(t, dir+"/{host}.yaml")
	s.lookups.SetLimit(rate.Inf)
	for i := range maxMisses + 500 {
		if l, err := s.Get(context.Background(), fmt.Sprintf("h%d.example", i)); l != nil || err != nil {
			t.Fatal(l, err)
		}
	}
	if len(s.misses) > maxMisses || len(s.files) != 0 {
		t.Errorf("%d misses, %d entries", len(s.misses), len(s.files))
	}
	// The test adds made-up documents to the list of loaded files, because really loading that many files takes too
	// long.
	for i := range maxFiles {
		s.add(fmt.Sprintf("h%d.example.yaml", i), newDocument("made up"))
	}
	writePolicy(t, filepath.Join(dir, "new.example.yaml"), hostPolicyText)
	s.misses = map[string]*atomic.Bool{}
	if l, err := s.Get(context.Background(), "new.example"); l == nil || err != nil {
		t.Fatal(l, err)
	}
	if len(s.files) != maxFiles {
		t.Errorf("%d entries", len(s.files))
	}
}

// Some hosts have names that no file can have, so they have no policy. Requests for many such hosts use no memory.
func TestHostsThatCanHaveNoFile(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, filepath.Join(dir, "default.yaml"), hostPolicyText)
	core, logs := observer.New(zap.InfoLevel)
	for _, name := range []string{"/{host}.yaml", "/{host}/policy.yaml"} {
		s := newTestSet(t, dir+name)
		s.all[0].Logger = zap.New(core)
		long := strings.Repeat("a.", 126)
		for _, host := range []string{long[:250], long[:252] + "b", "default.yaml"} {
			if l, err := s.Get(context.Background(), host); l != nil || err != nil {
				t.Errorf("%s of %d characters in %s: %+v %v", host[:5], len(host), name, l, err)
			}
		}
		if len(s.files) > 0 || logs.Len() > 0 {
			t.Errorf("%d entries, logged %v", len(s.files), logs.All())
		}
	}
}

// While the directory of the files cannot be read, all hosts whose files are not loaded yet share one restrictive
// policy. Requests for these hosts use little memory, and do not write log lines.
func TestHostsWithoutTheirDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "policies")
	writePolicy(t, filepath.Join(dir, "a.example.yaml"), hostPolicyText)
	core, logs := observer.New(zap.InfoLevel)
	s := newTestSet(t, dir+"/{host}.yaml")
	s.lookups.SetLimit(rate.Inf)
	s.all[0].Logger = zap.New(core)
	find := func(host string) *Snapshot {
		t.Helper()
		l, err := s.Get(context.Background(), host)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first := find("a.example")
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	s.sweepAll(t)
	for i := range 100 {
		if l := find(fmt.Sprintf("h%d.example", i)); l == nil || l != find("h0.example") {
			t.Fatalf("h%d.example: %+v", i, l)
		}
	}
	if find("a.example") != first || s.Status().Error == "" {
		t.Errorf("%+v", s.Status())
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	s.sweepAll(t)
	if len(s.files) != 1 || find("a.example") != first || find("h0.example") != nil || s.Status().Error != "" {
		t.Errorf("%+v", s.Status())
	}
	if logs.Len() != 2 {
		t.Errorf("%v", logs.All())
	}
}

// While reading some files hangs, only a limited number of threads are blocked, and no request waits long for these
// files. Hosts whose policy is loaded are still served.
func TestHostsThatHang(t *testing.T) {
	dir := t.TempDir()
	for _, host := range []string{"a", "b"} {
		writePolicy(t, filepath.Join(dir, host+".example.yaml"), hostPolicyText)
	}
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, dir+"/{host}.yaml")
		find := func(host string) error {
			_, err := s.Get(context.Background(), host)
			return err
		}
		if err := find("a.example"); err != nil {
			t.Fatal(err)
		}
		if !s.reads.TryAcquire(maxReads) {
			t.Fatal("a read is under way")
		}
		start := time.Now()
		if err := find("b.example"); err == nil || time.Since(start) > maxReadWait {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		hang := make(chan struct{})
		s.loading.DoChan("c.example.yaml", func() (any, error) { <-hang; return (*Document)(nil), nil })
		if err := find("c.example"); err == nil || time.Since(start) > 2*readTimeout {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		if err := find("a.example"); err != nil {
			t.Error(err)
		}
		close(hang)
		s.reads.Release(maxReads)
		if err := find("b.example"); err != nil {
			t.Error(err)
		}
		// If an earlier sweep hangs, a reload gives up after some time.
		_ = s.sweeping.Acquire(context.Background(), 1)
		if s.Reload(context.Background()) {
			t.Error("a second sweep started while the first one hangs")
		}
		s.sweeping.Release(1)
		if !s.Reload(context.Background()) {
			t.Error("no sweep after one that hung")
		}
	})
}

// The list of missing files is limited. A frequently requested host without a file stays in the list, even if clients
// invent thousands of other hosts.
func TestHostsWithoutAFileUnderAFlood(t *testing.T) {
	testkit.Slow(t)
	dir := t.TempDir()
	s := newTestSet(t, dir+"/{host}.yaml")
	s.lookups.SetLimit(rate.Inf)
	known := func(host string) {
		t.Helper()
		if l, err := s.Get(context.Background(), host); l != nil || err != nil {
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
			if s.misses["used.example.yaml"] == nil {
				t.Fatal("a host in use is forgotten")
			}
		}
	}
	writePolicy(t, filepath.Join(dir, "used.example.yaml"), hostPolicyText)
	known("used.example")
	s.sweep(context.Background(), false)
	if l, err := s.Get(context.Background(), "used.example"); l == nil || err != nil {
		t.Error("its file is not found", err)
	}
}

// The number of simultaneous lookups is limited. Further requests wait for a moment, and then fail.
func TestLookupsAreLimited(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := newTestSet(t, dir+"/{host}.yaml")
		start := time.Now()
		var busy, ok atomic.Int64
		var wg sync.WaitGroup
		for i := range 3 * lookupsPerSecond {
			wg.Go(func() {
				switch _, err := h.Get(context.Background(), fmt.Sprintf("h%d.example", i)); {
				case err == nil:
					ok.Add(1)
				case errors.Is(err, errBusy):
					busy.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); took > maxLookupWait {
			t.Errorf("took %s", took)
		}
		if want := int64(lookupsPerSecond + lookupsPerSecond*maxLookupWait/time.Second); ok.Load() < want-1 || ok.Load() > want || busy.Load() == 0 {
			t.Errorf("%d lookups passed, %d failed, want %d to pass", ok.Load(), busy.Load(), want)
		}
	})
}

// If many requests wait for a file that hangs, they share one lookup, so requests for other files are not blocked.
func TestAFileThatHangsIsOneLookup(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, filepath.Join(dir, "other.example.yaml"), hostPolicyText)
	synctest.Test(t, func(t *testing.T) {
		h := newTestSet(t, dir+"/{host}.yaml")
		hang := make(chan struct{})
		h.loading.DoChan("slow.example.yaml", func() (any, error) { <-hang; return (*Document)(nil), nil })
		var wg sync.WaitGroup
		for range 3 * lookupsPerSecond {
			wg.Go(func() {
				if _, err := h.Get(context.Background(), "slow.example"); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if s, err := h.Get(context.Background(), "other.example"); s == nil || err != nil {
			t.Errorf("%+v, %v", s, err)
		}
		close(hang)
		wg.Wait()
	})
}

// A file that hangs does not delay the reload of the others, and is not read twice at once.
func TestASlowFileDelaysNoOtherHost(t *testing.T) {
	dir := t.TempDir()
	for _, host := range []string{"slow", "a", "b"} {
		writePolicy(t, filepath.Join(dir, host+".example.yaml"), hostPolicyText)
	}
	h := newTestSet(t, dir+"/{host}.yaml")
	for _, host := range []string{"slow", "a", "b"} {
		if s, err := h.Get(context.Background(), host+".example"); s == nil || err != nil {
			t.Fatal(s, err)
		}
	}
	src := &fakeSource{text: hostPolicyText, hang: make(chan struct{})}
	h.files["slow.example.yaml"].file.read = src.read
	for _, host := range []string{"a", "b"} {
		writePolicy(t, filepath.Join(dir, host+".example.yaml"), hostPolicyText+"# 2\n")
	}
	for _, host := range []string{"a", "b"} {
		for try := 0; ; try++ { // a busy machine may take longer than a sweep waits
			h.sweep(context.Background(), false)
			s, err := h.Get(context.Background(), host+".example")
			if err == nil && s.SHA256 == sumOf([]byte(hostPolicyText+"# 2\n")) {
				break
			}
			time.Sleep(50 * time.Millisecond)
			if try == 1000 {
				t.Fatalf("%s is not reloaded: %v", host, err)
			}
		}
	}
	if n := src.count(); n != 1 {
		t.Errorf("the file that hangs was read %d times", n)
	}
	close(src.hang)
}

// Reading one of the files takes a minute. A reload of all files nevertheless ends within its time limit, and the
// changes in the other files are applied without waiting for the slow one.
func TestReloadBesideASlowFile(t *testing.T) {
	const hosts = 40
	dir := t.TempDir()
	name := func(i int) string { return fmt.Sprintf("h%d.example.yaml", i) }
	for i := range hosts {
		writePolicy(t, filepath.Join(dir, name(i)), hostPolicyText)
	}
	synctest.Test(t, func(t *testing.T) {
		h := newTestSet(t, dir+"/{host}.yaml")
		for i := range hosts {
			if s, err := h.Get(context.Background(), fmt.Sprintf("h%d.example", i)); s == nil || err != nil {
				t.Fatal(s, err)
			}
		}
		start := time.Now()
		var mu sync.Mutex
		took := map[string]time.Duration{}
		for name, f := range h.files {
			f.users.join(&user{Options: h.all[0].Options, onChange: func(*Snapshot) {
				mu.Lock()
				defer mu.Unlock()
				took[name] = time.Since(start)
			}}, nil)
		}
		src := &fakeSource{text: hostPolicyText, hang: make(chan struct{})}
		h.files[name(0)].file.read = src.read
		time.AfterFunc(61*time.Second, func() { close(src.hang) })
		for i := range hosts {
			writePolicy(t, filepath.Join(dir, name(i)), hostPolicyText+"# 2\n")
		}
		start = time.Now()
		if h.Reload(context.Background()) {
			t.Error("the report says that the file that hangs was reloaded")
		}
		if d := time.Since(start); d > readTimeout {
			t.Errorf("the reload took %s", d)
		}
		mu.Lock()
		defer mu.Unlock()
		for i := 1; i < hosts; i++ {
			if d, ok := took[name(i)]; !ok || d > 0 {
				t.Fatalf("%s: reloaded %t, after %s", name(i), ok, d)
			}
		}
		time.Sleep(time.Minute) // longer than the file hangs
	})
}

// Hosts that have the same file share its policy, so requests for invented hosts use no memory.
func TestHostsShareAFile(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, filepath.Join(dir, "example.yaml"), hostPolicyText)
	h := newTestSet(t, dir+"/{labels.1}.yaml")
	var first *Snapshot
	for i := range 100 {
		s, err := h.Get(context.Background(), fmt.Sprintf("h%d.example.com", i))
		if s == nil || err != nil || first != nil && s != first {
			t.Fatal(s, err)
		}
		first = s
		if s, err := h.Get(context.Background(), fmt.Sprintf("h%d.other.com", i)); s != nil || err != nil {
			t.Fatal(s, err)
		}
	}
	if len(h.files) != 1 || len(h.misses) != 1 {
		t.Errorf("%d files, %d misses", len(h.files), len(h.misses))
	}
	if s, err := h.Get(context.Background(), "com"); s != nil || err != nil {
		t.Error("a host without that label", s, err)
	}
}
