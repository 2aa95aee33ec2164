// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/certmagic"
	"golang.org/x/sync/semaphore"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// idle returns an exchange without a goroutine, so that a test can call its steps.
func idle(t *testing.T) *exchange {
	t.Helper()
	state := optional.NewState("fleet")
	t.Cleanup(state.Remove)
	return &exchange{state: state, busy: semaphore.NewWeighted(1), older: map[string]*site.Site{}, peers: map[string]*peer{}, sequence: time.Now().UnixNano()}
}

func reading(crawler string, at int64, verified bool) site.Reading {
	return site.Reading{Crawler: crawler, Host: "www.example.com", Version: "v", Policy: "p", At: at, Verified: verified}
}

// Other servers read the message of a server, and the server itself reads it after a restart. If one message is
// damaged, the messages of the other servers are read nevertheless.
func TestServersReadEachOther(t *testing.T) {
	t.Parallel()
	ctx, storage := t.Context(), &certmagic.FileStorage{Path: t.TempDir()}
	a, b := idle(t), idle(t)
	atA, atB := &Fleet{Node: "a", storage: storage}, &Fleet{Node: "b", storage: storage}
	a.restored = []site.Reading{reading("gptbot", 100, true), reading("gptbot", 50, true)}
	if err := b.read(ctx, atB); err != nil {
		t.Errorf("before any server wrote: %v", err)
	}
	if err := a.write(ctx, atA); err != nil {
		t.Fatal(err)
	}
	if err := storage.Store(ctx, key("c"), []byte("not what a server writes")); err != nil {
		t.Fatal(err)
	}
	if err := b.read(ctx, atB); err == nil || !strings.Contains(err.Error(), "c.json.gz") {
		t.Errorf("a damaged message: %v", err)
	}
	if got := fmt.Sprint(b.peers["a"].Readings); got != fmt.Sprint([]site.Reading{reading("gptbot", 100, true)}) || len(b.peers) != 1 {
		t.Errorf("%s of %d servers", got, len(b.peers))
	}
	again := idle(t)
	if err := again.write(ctx, atA); err != nil || len(again.restored) != 1 {
		t.Errorf("after a restart: %+v, %v", again.restored, err)
	}
}

// This server reads the messages of the server "a". It treats "a" as running when it sees a new message, except at the
// first read, because that message may be old. After three reads without a new message, it treats "a" as missing.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	x := idle(t)
	for i, step := range []struct {
		sequence       int64 // 0 means that the message cannot be read
		alive, missing int
	}{
		{7, 1, 0},
		{7, 1, 0},
		{7, 1, 0},
		{7, 1, 0}, // this server may have stopped long ago
		{8, 2, 0},
		{8, 2, 0},
		{0, 2, 0},
		{8, 1, 1},
		{8, 1, 1},
		{3, 2, 0}, // this server was restarted
	} {
		var m *message
		if step.sequence > 0 {
			m = &message{Sequence: step.sequence}
		}
		x.heard("a", m)
		if alive, missing := x.count(); alive != step.alive || missing != step.missing || len(x.missing()) != missing {
			t.Errorf("step %d: %d alive, %d missing, want %d, %d", i, alive, missing, step.alive, step.missing)
		}
	}
}

// If a server has not written a message for a week, according to the clock of the storage, the other servers delete its
// key. Before they do so, they must have read the key several times without finding a new message. So they keep the key
// of a server that only writes rarely, or that has started again.
func TestKeysOfServersThatAreGone(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	storage := &certmagic.FileStorage{Path: dir}
	names := map[string]time.Duration{"gone": 8 * 24 * time.Hour, "off": 6 * 24 * time.Hour, "back": 30 * 24 * time.Hour}
	data, err := (&message{Sequence: 7}).encode()
	for node, age := range names {
		at := time.Now().Add(-age)
		err = errors.Join(err, storage.Store(ctx, key(node), data), os.Chtimes(filepath.Join(dir, key(node)), at, at))
	}
	if err != nil {
		t.Fatal(err)
	}
	x, f := idle(t), &Fleet{Node: "a", storage: storage}
	if err := x.write(ctx, f); err != nil {
		t.Fatal(err)
	}
	other := idle(t) // another server, which must notice at the end that a key was deleted
	for node := range names {
		other.peers[node] = &peer{seen: true}
	}
	defer func() {
		for range missingAfter {
			if err := other.read(ctx, &Fleet{Node: "b", storage: storage}); err != nil {
				t.Error(err)
			}
		}
		if other.peers["gone"] != nil || other.peers["off"] == nil || other.peers["back"] == nil {
			t.Errorf("another server has the peers %v", slices.Sorted(maps.Keys(other.peers)))
		}
	}()
	for i := range missingAfter + 2 {
		if i == 2 {
			if data, err = (&message{Sequence: 8}).encode(); err == nil {
				err = storage.Store(ctx, key("back"), data)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := x.read(ctx, f); err != nil {
			t.Fatal(err)
		}
		for node := range names {
			if want := node != "gone" || i < missingAfter; storage.Exists(ctx, key(node)) != want || (x.peers[node] != nil) != want {
				t.Errorf("read %d: the key of %s: there %t, want %t", i, node, !want, want)
			}
		}
	}
}

// A client can send the names of crawlers and invent hosts. The Readings that result from its requests can fill only a
// part of a message. They do not displace the Readings of verified crawlers.
func TestUnverifiedReadingsAreCapped(t *testing.T) {
	t.Parallel()
	x := idle(t)
	for i := range 20_000 {
		x.restored = append(x.restored, site.Reading{Crawler: "gptbot", Host: fmt.Sprintf("h%d.example.com", i), Version: strings.Repeat("0", 64), Policy: strings.Repeat("1", 64), At: int64(1e9 + i), Verified: i%10 == 0})
	}
	all := x.own()
	verified := 0
	for _, r := range all {
		if r.Verified {
			verified++
		}
	}
	if verified != maxReadings || len(all) != maxReadings {
		t.Errorf("%d readings, %d of them verified", len(all), verified)
	}
	x.restored = x.restored[:5000]
	if all = x.own(); len(all) != 500+maxUnverified {
		t.Errorf("%d of 500 readings of verified crawlers", len(all))
	}
	m := message{Sequence: 1, Readings: all}
	data, err := m.encode()
	if err != nil || len(data) > 64<<10 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// hanging is a storage that never answers, and ignores its context.
type hanging struct {
	certmagic.FileStorage
	end   chan struct{}
	asked chan struct{}
}

func (h *hanging) Load(context.Context, string) ([]byte, error) {
	h.asked <- struct{}{}
	<-h.end
	return nil, context.Canceled
}

// If the storage hangs, no request and no metric waits for it. The exchange begins only one operation of the storage at
// a time, and closing the exchange does not wait for this operation.
func TestStorageThatHangs(t *testing.T) {
	t.Parallel()
	h := &hanging{end: make(chan struct{}), asked: make(chan struct{}, 100), FileStorage: certmagic.FileStorage{Path: t.TempDir()}}
	f := &Fleet{Node: "a", storage: h, Interval: caddy.Duration(time.Second)}
	x := newExchange(func() *Fleet { return f })
	<-h.asked
	x.count() // as a read of the metric does
	began := time.Now()
	x.close(f)
	if took := time.Since(began); took > 2*lastWrite {
		t.Errorf("closing took %s", took)
	}
	if n := len(h.asked); n > 0 {
		t.Errorf("%d more requests while one hangs", n)
	}
	close(h.end)
}

// Timely answers of a working storage are never treated as a failure.
func TestStorageThatWorks(t *testing.T) {
	t.Parallel()
	x, f := idle(t), &Fleet{Node: "a", storage: &certmagic.FileStorage{Path: t.TempDir()}}
	for range 300 {
		if err := errors.Join(x.write(t.Context(), f), x.read(t.Context(), f)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUnmarshal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"fleet":        `&{ 0s false}`,
		"fleet web-17": `&{web-17 0s false}`,
		"fleet web-17 {\ninterval 30s\nshared_limits\n}": `&{web-17 30s true}`,
		"fleet a b":                     "takes one argument",
		"fleet {\ninterval 5ms\n}":      "invalid interval",
		"fleet {\ninterval\n}":          "takes one argument",
		"fleet {\nshared_limits yes\n}": "takes no arguments",
		"fleet {\nlimits shared\n}":     "unrecognized option 'limits'",
	} {
		f := new(Fleet)
		got := ""
		if err := f.UnmarshalCaddyfile(caddyfile.NewTestDispenser(text)); err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprintf("&{%s %s %v}", f.Node, time.Duration(f.Interval), f.SharedLimits)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for _, name := range []string{"../x", "a/b", ".hidden", strings.Repeat("x", 101)} {
		if err := (&Fleet{Node: name}).check(); err == nil {
			t.Errorf("the name %q becomes the key %s", name, filepath.Clean(key(name)))
		}
	}
}

// late is a storage that answers after the caller has stopped waiting.
type late struct {
	certmagic.FileStorage
	answered chan struct{}
}

func (s *late) Load(ctx context.Context, key string) ([]byte, error) {
	<-ctx.Done()
	defer close(s.answered)
	return s.FileStorage.Load(context.Background(), key)
}

// An answer that a storage gives too late has no effect, and a truncated message is ignored.
func TestAnswersThatCome(t *testing.T) {
	t.Parallel()
	x, storage := idle(t), &late{FileStorage: certmagic.FileStorage{Path: t.TempDir()}, answered: make(chan struct{})}
	data, err := (&message{Sequence: 7, Readings: []site.Reading{reading("gptbot", 1, true)}}).encode()
	if err == nil {
		err = storage.Store(t.Context(), key("a"), data)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m, err := x.load(ctx, storage, key("a"))
	for range 100 {
		if m != nil || err == nil {
			t.Fatalf("%+v, %v", m, err)
		}
	}
	<-storage.answered
	for cut := range len(data) {
		if m, err := decode(data[:cut]); m != nil || err == nil {
			t.Errorf("%d of %d bytes are %+v, %v", cut, len(data), m, err)
		}
	}
}
