// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// fakeSource is a source whose text and errors are set by a test.
type fakeSource struct {
	mu        sync.Mutex
	text      string
	err       error
	reads     int
	settleFor time.Duration
	isRemote  bool
	hang      chan struct{} // if set, reading waits until this channel is closed, and ignores its context
	fault     any           // if set, reading panics
	out       int           // number of reads in progress; maxOut is the largest such number
	maxOut    int
}

func (f *fakeSource) source() *source {
	return &source{
		name: "fake", key: "fake", interval: time.Second, minInterval: time.Second,
		settle: f.settleFor, remote: f.isRemote, read: bounded(f.read),
	}
}

func (f *fakeSource) set(text string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text, f.err = text, err
}

func (f *fakeSource) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads
}

func (f *fakeSource) read(context.Context, any) (content, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	if hang := f.hang; hang != nil {
		f.out++
		f.maxOut = max(f.maxOut, f.out)
		f.mu.Unlock()
		<-hang
		f.mu.Lock()
		f.out--
	}
	if f.fault != nil {
		panic(f.fault)
	}
	if f.err != nil {
		return content{}, f.err
	}
	return content{data: []byte(f.text)}, nil
}

func testOptions(core zapcore.Core) *Options {
	return &Options{Logger: zap.New(core), Reload: ReloadOff, pool: new(Pool)}
}

// newTestUser returns a user that does not watch its source for changes.
func newTestUser(t *testing.T, o *Options, src *source) *user {
	t.Helper()
	u, err := newUser(o, src)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

const fakePolicy = "version: 1\nrules:\n  - for: everyone\n    disallow:\n      crawl: /a\n"

func newTestDocument(t *testing.T, src *fakeSource) (*Document, *user, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	d := newDocument("fake")
	r := newTestUser(t, testOptions(core), src.source())
	r.watch, r.interval = true, time.Second
	if err := d.open(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	return d, r, logs
}

// An error that occurs in many reads is reported only once. The recovery from it is also reported once.
func TestDocumentReportsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{text: fakePolicy, settleFor: 250 * time.Millisecond}
		d, r, logs := newTestDocument(t, src)
		d.join(r)
		defer d.leave(r)
		count := func(message string) int { return logs.FilterMessageSnippet(message).Len() }
		first := r.snapshot
		for i, state := range []struct {
			text string
			err  error
		}{{"version: 1\nrulez: 1\n", nil}, {"", errors.New("gone")}, {"version: 1\nrulez: 1\n", nil}} {
			src.set(state.text, state.err)
			pass(time.Minute)
			if n := count("policy not reloaded"); n != i+1 {
				t.Errorf("%+v: reported %d times", state, n)
			}
			if r.snapshot != first || d.Status().Error == "" {
				t.Errorf("%+v: %+v", state, d.Status())
			}
		}
		src.set(fakePolicy, nil)
		pass(time.Minute)
		if count("policy recovered") != 1 || d.Status().Error != "" || r.snapshot != first {
			t.Errorf("%+v", d.Status())
		}
		src.set(fakePolicy+"# b\n", nil)
		pass(time.Minute)
		if count("policy reloaded") != 1 || r.snapshot == first {
			t.Errorf("%+v", d.Status())
		}
		if c := d.Status().Reloads; c.Applied != 1 || c.Rejected != 3 {
			t.Errorf("%+v", c)
		}
	})
}

// While a text keeps changing, it is not loaded, and its errors are not reported.
func TestDocumentWaitsForAStableText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{text: fakePolicy, settleFor: 250 * time.Millisecond}
		d, r, logs := newTestDocument(t, src)
		d.join(r)
		defer d.leave(r)
		first := r.snapshot
		for i := range 300 {
			switch i % 3 {
			case 0:
				src.set(fakePolicy+"# "+strings.Repeat("x", i)+"\n", nil)
			case 1:
				src.set("", errors.New("gone "+strings.Repeat("x", i)))
			case 2:
				src.set("version: 1\n# "+strings.Repeat("x", i), nil)
			}
			pass(100 * time.Millisecond)
		}
		if n := logs.FilterLevelExact(zap.ErrorLevel).Len(); n > 0 || r.snapshot != first {
			t.Errorf("%d errors, %v", n, r.snapshot != first)
		}
	})
}

// pass lets time pass in a synctest bubble, and waits until all goroutines are blocked.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Two handlers share a document, but only one of them watches it. When the policy changes, the other handler keeps the
// old version. When the handler that watches leaves, the document is no longer polled.
func TestDocumentReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{text: fakePolicy}
		d, follower, _ := newTestDocument(t, src)
		pinned := newTestUser(t, follower.Options, follower.src)
		d.join(follower)
		d.join(pinned)
		first := pinned.snapshot
		src.set(fakePolicy+"# b\n", nil)
		pass(10 * time.Second)
		if follower.snapshot == first || pinned.snapshot != first || len(d.Status().Older) != 1 {
			t.Errorf("%+v", d.Status())
		}
		if o := d.Reload(context.Background()); o.Err != nil || pinned.snapshot != follower.snapshot {
			t.Errorf("%+v", o)
		}
		d.leave(follower)
		reads := src.count()
		pass(time.Minute)
		if src.count() != reads {
			t.Error("the source is still read")
		}
		d.join(follower)
		pass(10 * time.Second)
		if src.count() == reads {
			t.Error("the source is not read again")
		}
		d.leave(follower)
		d.leave(pinned)
		if o := d.Reload(context.Background()); o.Err == nil {
			t.Error("a reload without users")
		}
	})
}

// If applying a policy panics, the panic is reported, and polling continues.
func TestDocumentSurvivesAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{text: fakePolicy}
		d, r, logs := newTestDocument(t, src)
		faults := 0
		r.onChange = func(l *Snapshot) {
			if l.SHA256 != sumOf([]byte(fakePolicy)) && faults < 3 {
				faults++
				panic("a fault")
			}
		}
		d.join(r)
		defer d.leave(r)
		for i := range 5 {
			src.set(fakePolicy+strings.Repeat("# b\n", i+1), nil)
			pass(time.Minute)
		}
		if n := logs.FilterMessageSnippet("panic").Len(); n != 3 || faults != 3 {
			t.Errorf("%d panics, reported %d times", faults, n)
		}
		if s := d.Status(); s.SHA256 != sumOf([]byte(fakePolicy+strings.Repeat("# b\n", 5))) {
			t.Error("changes are not applied after a panic")
		}
	})
}

// A source hangs and ignores its context. Callers wait only for a limited time, and only one goroutine waits for the
// source. When the source answers again, changes are applied again.
func TestDocumentOfASourceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{text: fakePolicy}
		d, r, logs := newTestDocument(t, src)
		d.join(r)
		defer d.leave(r)
		hang := make(chan struct{})
		src.mu.Lock()
		src.hang = hang
		src.mu.Unlock()
		pass(10 * time.Minute)
		for range 3 {
			start := time.Now()
			if o := d.Reload(context.Background()); o.Err == nil || !strings.Contains(o.Err.Error(), "takes too long") || o.Now != r.snapshot {
				t.Errorf("%+v", o)
			}
			if took := time.Since(start); took > 2*readTimeout {
				t.Errorf("a reload waits %s", took)
			}
		}
		synctest.Wait()
		if src.maxOut != 1 {
			t.Errorf("%d reads at once", src.maxOut)
		}
		if n := logs.FilterMessageSnippet("policy not reloaded").Len(); n != 1 {
			t.Errorf("reported %d times", n)
		}
		src.mu.Lock()
		src.hang, src.text = nil, fakePolicy+"# b\n"
		src.mu.Unlock()
		close(hang)
		pass(time.Minute)
		if d.Status().Error != "" || r.snapshot.SHA256 != sumOf([]byte(src.text)) {
			t.Errorf("%+v", d.Status())
		}
	})
}

// If a storage module panics, Caddy continues to run.
func TestDocumentOfASourceThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{text: fakePolicy}
		d, r, _ := newTestDocument(t, src)
		d.join(r)
		defer d.leave(r)
		src.mu.Lock()
		src.fault = "index out of range"
		src.mu.Unlock()
		pass(time.Minute)
		if err := d.Status().Error; !strings.Contains(err, "index out of range") {
			t.Error(err)
		}
		src.mu.Lock()
		src.fault, src.text = nil, fakePolicy+"# b\n"
		src.mu.Unlock()
		pass(time.Minute)
		if d.Status().Error != "" || r.snapshot.SHA256 != sumOf([]byte(src.text)) {
			t.Errorf("%+v", d.Status())
		}
	})
}

// A network error has a different text each time. It is still reported only once, and the status shows the latest text.
func TestDocumentReportsANetworkErrorOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{text: fakePolicy, isRemote: true}
		d, r, logs := newTestDocument(t, src)
		d.join(r)
		defer d.leave(r)
		for i := range 100 {
			src.set("", fmt.Errorf("read tcp 192.0.2.1:%d->192.0.2.2:443: connection reset", 40000+i))
			pass(6 * time.Minute)
		}
		if n := logs.FilterMessageSnippet("policy not reloaded").Len(); n != 1 {
			t.Errorf("reported %d times", n)
		}
		if s := d.Status(); s.Reloads.Rejected != 1 || !strings.Contains(s.Error, "40099") {
			t.Errorf("%+v", s)
		}
	})
}

// A document is polled once a day. Then a configuration with a reload interval of one second also uses the document.
// The new interval applies at once, not only after the next poll.
func TestDocumentWakesForANewInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{text: fakePolicy}
		d, slow, _ := newTestDocument(t, src)
		slow.interval = 24 * time.Hour
		d.join(slow)
		defer d.leave(slow)
		pass(time.Minute)
		quick := newTestUser(t, slow.Options, slow.src)
		quick.watch, quick.interval = true, time.Second
		d.join(quick)
		defer d.leave(quick)
		pass(10 * time.Second)
		src.set(fakePolicy+"# b\n", nil)
		pass(3 * time.Second)
		if quick.snapshot.SHA256 != sumOf([]byte(fakePolicy+"# b\n")) {
			t.Error("the old interval is still used")
		}
	})
}

// Sources across a network are polled less often while they fail, and as often as before when they work again.
func TestPause(t *testing.T) {
	for failures, limit := range map[int]time.Duration{0: time.Minute, 1: 2 * time.Minute, 2: 4 * time.Minute, 3: 5 * time.Minute, 1000: 5 * time.Minute} {
		for range 100 {
			if p := nextPoll(time.Minute, failures, true); p > limit || p < limit*4/5-1 {
				t.Fatalf("after %d failures: %s", failures, p)
			}
		}
	}
	if p := nextPoll(time.Second, 9, false); p != time.Second {
		t.Error(p)
	}
	if p := nextPoll(time.Hour, 9, true); p < 48*time.Minute-1 || p > time.Hour {
		t.Error(p)
	}
}
