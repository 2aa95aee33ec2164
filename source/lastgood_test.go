// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap/zapcore"
)

// savingOptions are options that save policies in a directory of the test.
func savingOptions(t *testing.T) *Options {
	t.Helper()
	o := testOptions(zapcore.NewNopCore())
	o.LastGood = filepath.Join(t.TempDir(), "last_good")
	return o
}

// What was stored is served only if it is whole, valid, and of this source.
func TestLastGood(t *testing.T) {
	n := savingOptions(t)
	src := newFileSource("/srv/policy.yaml")
	if l := n.loadLastGood(src); l != nil {
		t.Error("there is one before one was stored")
	}
	n.saveLastGood(src, content{data: []byte(fakePolicy)})
	l := n.loadLastGood(src)
	if l == nil || l.SHA256 != sumOf([]byte(fakePolicy)) {
		t.Fatalf("%+v", l)
	}
	path := directory(n.LastGood).file(src.lastGoodKey())
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
		if l := n.loadLastGood(src); l != nil {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// Policies of deleted files stay stored for a while, but none that is in use
// has to go for them.
func TestLastGoodIsBounded(t *testing.T) {
	n := savingOptions(t)
	used := newFileSource("/srv/used.yaml")
	d := n.pool.documents.Acquire(used.key, func() *Document { return newDocument(used.name) })
	d.all = []*user{newTestUser(t, n, used)}
	n.saveLastGood(used, content{data: []byte(fakePolicy)}) // the oldest
	first := newFileSource("/srv/first.yaml")
	n.saveLastGood(first, content{data: []byte(fakePolicy)})
	var last *source
	for i := range maxLastGood + 5 {
		last = newFileSource(fmt.Sprintf("/srv/release-%d.yaml", i))
		n.saveLastGood(last, content{data: []byte(fakePolicy)})
	}
	files, err := os.ReadDir(n.LastGood)
	if err != nil || len(files) > maxLastGood+1 {
		t.Errorf("%d policies are stored; %v", len(files), err)
	}
	for src, want := range map[*source]bool{used: true, last: true, first: false} {
		if l := n.loadLastGood(src); (l != nil) != want {
			t.Errorf("%s is saved: %t", src.name, l != nil)
		}
	}
}

// Who may not write leaves no file behind.
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

// A text whose tests a date has broken is not accepted, unless it was before: then it
// is served after a restart, with a warning.
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
	options.saveLastGood(src, content{data: text})
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

// flakySaves cannot load one of its keys.
type flakySaves struct {
	directory
	key string
	err error
}

func (f flakySaves) Load(ctx context.Context, key string) ([]byte, error) {
	if key == f.key {
		return nil, f.err
	}
	return f.directory.Load(ctx, key)
}

// A policy that cannot be read now may be the newest one: nothing is deleted then. One
// that is damaged goes before all others.
func TestLastGoodThatCannotBeReadStays(t *testing.T) {
	n := savingOptions(t)
	var sources []*source
	for i := range maxLastGood {
		sources = append(sources, newFileSource(fmt.Sprintf("/srv/release-%d.yaml", i)))
		n.saveLastGood(sources[i], content{data: []byte(fakePolicy)})
	}
	dir := directory(n.LastGood)
	newest := sources[maxLastGood-1].lastGoodKey()
	damaged := LastGood + "/damaged.json"
	if err := dir.Store(t.Context(), damaged, []byte(`{"saved": "2999-01-01T00:00:00Z", "text": 1}`)); err != nil {
		t.Fatal(err)
	}
	gone := errors.New("the network is down")
	if err := n.pool.pruneLastGood(t.Context(), flakySaves{dir, newest, gone}); !errors.Is(err, gone) {
		t.Errorf("the error of the storage: %v", err)
	}
	if keys, err := dir.List(t.Context(), LastGood, false); err != nil || len(keys) != maxLastGood+1 {
		t.Errorf("%d policies are left, %v", len(keys), err)
	}
	if err := n.pool.pruneLastGood(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if _, err := dir.Load(t.Context(), damaged); err == nil {
		t.Error("the damaged one is left")
	}
}
