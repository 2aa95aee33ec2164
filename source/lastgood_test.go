// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap/zapcore"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// savingOptions returns options that save policies in a temporary directory.
func savingOptions(t *testing.T) *Options {
	t.Helper()
	o := testOptions(zapcore.NewNopCore())
	o.LastGood = filepath.Join(t.TempDir(), "last_good")
	return o
}

func fakeVersion(t *testing.T) *Snapshot {
	t.Helper()
	s, err := Compile("fake", []byte(fakePolicy))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A saved policy is served only if it is complete, valid, and was saved for the source that asks for it.
func TestLastGood(t *testing.T) {
	n := savingOptions(t)
	src := newFileSource("/srv/policy.yaml")
	if l, _ := n.loadLastGood(src); l != nil {
		t.Error("there is one before one was stored")
	}
	n.saveLastGood(src, fakeVersion(t))
	l, _ := n.loadLastGood(src)
	if l == nil || l.SHA256 != sumOf([]byte(fakePolicy)) {
		t.Fatalf("%+v", l)
	}
	path := n.lastGoodFile(src)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	of := func(source, text string) []byte {
		data, err := json.Marshal(lastGood{Source: source, Text: []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, data := range map[string][]byte{
		"nothing": {}, "half": whole[:len(whole)/2], "of another source": of("/srv/other.yaml", fakePolicy), "broken": of(src.name, "version: 1\nrulez: 1\n"),
		"no text": of(src.name, ""), "null": []byte("null"),
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if l, _ := n.loadLastGood(src); l != nil {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// If there are too many saved policies, the oldest ones of deleted files are deleted, but only some time after they
// were saved. A policy in use is never deleted.
func TestLastGoodIsBounded(t *testing.T) {
	testkit.SkipRace(t)
	n := savingOptions(t)
	used := newFileSource("/srv/used.yaml")
	d := n.pool.documents.Acquire(used.key, func() *Document { return newDocument(used.name) })
	d.all = []*user{newTestUser(t, n, used)}
	n.saveLastGood(used, fakeVersion(t)) // the oldest
	first := newFileSource("/srv/first.yaml")
	n.saveLastGood(first, fakeVersion(t))
	for i, src := range []*source{used, first} {
		if at := time.Now().Add(time.Duration(i-2)*time.Hour - lastGoodLife); os.Chtimes(n.lastGoodFile(src), at, at) != nil {
			t.Fatal("the times of files cannot be set")
		}
	}
	var last *source
	for i := range maxLastGood + 5 {
		last = newFileSource(fmt.Sprintf("/srv/release-%d.yaml", i))
		n.saveLastGood(last, fakeVersion(t))
		if at := time.Now().Add(time.Duration(i-100)*time.Second - lastGoodLife); os.Chtimes(n.lastGoodFile(last), at, at) != nil {
			t.Fatal("the times of files cannot be set")
		}
	}
	files, err := os.ReadDir(n.LastGood)
	if err != nil || len(files) > maxLastGood+1 {
		t.Errorf("%d policies are stored; %v", len(files), err)
	}
	for src, want := range map[*source]bool{used: true, last: true, first: false} {
		if l, _ := n.loadLastGood(src); (l != nil) != want {
			t.Errorf("%s is saved: %t", src.name, l != nil)
		}
	}
}

// Eight servers share a directory, each with many policies. A server never deletes a policy that another server still
// uses, however long ago the policy was saved.
func TestLastGoodOfManyServers(t *testing.T) {
	testkit.SkipRace(t)
	dir := t.TempDir()
	var servers []*Options
	var sources [][]*source
	for i := range 8 {
		o := savingOptions(t)
		o.LastGood = dir
		var own []*source
		for k := range 20 {
			src := newFileSource(fmt.Sprintf("/srv/%d/policy-%d.yaml", i, k))
			o.saveLastGood(src, fakeVersion(t))
			own = append(own, src)
		}
		servers, sources = append(servers, o), append(sources, own)
	}
	for i, o := range servers {
		for _, src := range sources[i] {
			if old := time.Now().Add(-2 * lastGoodLife); os.Chtimes(o.lastGoodFile(src), old, old) != nil {
				t.Fatal("the times of files cannot be set")
			}
		}
	}
	for i, o := range servers[:7] { // the eighth server no longer runs
		for _, src := range sources[i] {
			newDocument(src.name).markLastGood(newTestUser(t, o, src))
		}
	}
	for k := range 80 {
		servers[0].saveLastGood(newFileSource(fmt.Sprintf("/srv/new-%d.yaml", k)), fakeVersion(t))
	}
	saved := make([]int, len(servers))
	for i, o := range servers {
		for _, src := range sources[i] {
			if l, _ := o.loadLastGood(src); l != nil {
				saved[i]++
			}
		}
	}
	if want := []int{20, 20, 20, 20, 20, 20, 20, 0}; !slices.Equal(saved, want) {
		t.Errorf("saved are %d, want %d", saved, want)
	}
}

// With Options.ReadOnly, no version is saved.
func TestReadOnlySavesNothing(t *testing.T) {
	n := savingOptions(t)
	n.ReadOnly = true
	src := newFileSource(filepath.Join(t.TempDir(), "policy.yaml"))
	writePolicy(t, src.name, fakePolicy)
	if err := newDocument("x").open(context.Background(), newTestUser(t, n, src)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(n.LastGood); err == nil {
		t.Error("a policy is saved")
	}
}

// A test in the policy fails because a date has passed. If the text of the policy is new to the server, it is rejected.
// If the server had accepted the same text before a restart, it is served after the restart, with a warning.
func TestTextThatWasAcceptedBefore(t *testing.T) {
	options := savingOptions(t)
	text := []byte("version: 1\nrules:\n  - for: everyone\n    allow:\n      index:\n        - {paths: /events/, time-limit: until-2026-01-31}\nexpect:\n  - everyone may index /events/\n")
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	src := newFileSource(file)
	d := newDocument(src.name)
	if err := d.open(context.Background(), newTestUser(t, options, src)); err == nil || !strings.Contains(err.Error(), "[expectation-failed]") {
		t.Fatalf("a new text: %v", err)
	}
	accepted, err := compileAccepted(src.name, text)
	if err != nil {
		t.Fatal(err)
	}
	options.saveLastGood(src, accepted)
	if err := d.open(context.Background(), newTestUser(t, options, src)); err != nil {
		t.Fatalf("a text that was accepted before: %v", err)
	}
	current := d.Current()
	if current == nil || current.SHA256 != sumOf(text) || !strings.Contains(current.Warnings.Error(), "[expectation-no-longer-holds]") {
		t.Errorf("%+v", current)
	}
	changed := append(text, '\n')
	if err := os.WriteFile(file, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.open(context.Background(), newTestUser(t, options, src)); err != nil {
		t.Fatal(err)
	}
	if st := d.Status(); st.SHA256 != sumOf(text) || !strings.Contains(st.Error, "[expectation-failed]") {
		t.Errorf("a changed text: %s", st.Error)
	}
}

// When the server starts, the text in the source differs from the last good version. The server must ask the guard
// before it loads the new text. This also applies if several sites use the policy, or if none of them watches it. A
// policy without a last good version is loaded at once.
func TestStartWaitsForTheGuard(t *testing.T) {
	const next = fakePolicy + "# next\n"
	storage := &certmagic.FileStorage{Path: t.TempDir()}
	src := newStorageSource(storage, "site.yaml")
	store := func(text string) {
		t.Helper()
		if err := storage.Store(t.Context(), "site.yaml", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	o := savingOptions(t)
	g := &guard{}
	var running atomic.Bool
	o.Guard, o.Running = g.check, running.Load
	start := func(sites int) (d *Document, all []*user) {
		t.Helper()
		d = newDocument(src.name)
		for range sites {
			u := newTestUser(t, o, src)
			if err := d.open(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			d.join(u)
			t.Cleanup(func() { d.leave(u) })
			all = append(all, u)
		}
		return d, all
	}
	store(fakePolicy)
	if d, _ := start(1); d.Current() == nil {
		t.Error("a first policy waits")
	}
	store(next)
	d, all := start(3)
	if d.Current().Text != fakePolicy || g.times() != 0 {
		t.Fatalf("it is loaded before the safety check has started, which was asked %d times", g.times())
	}
	g.answers(errors.New("search engines would lose 20 requests"))
	running.Store(true)
	wait := d.poll(t.Context())
	if s := d.Status(); wait > unavailableRetry || d.Current().Text != fakePolicy || !strings.Contains(s.Error, "would lose 20") {
		t.Errorf("after the safety check has started: %+v, next poll after %s", s, wait)
	}
	g.answers(nil)
	store(next + "# corrected\n")
	wait = d.poll(t.Context())
	for _, u := range all {
		if u.snapshot.Text != next+"# corrected\n" || d.Status().Reload != "off" {
			t.Errorf("the corrected text is not loaded: %s, next poll after %s", u.snapshot.Text, wait)
		}
	}
}
