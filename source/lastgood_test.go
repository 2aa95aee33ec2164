// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap/zapcore"
)

// keeping returns a notifier that stores policies in a directory of the test.
func keeping(t *testing.T) (n *notifier, dir string) {
	t.Helper()
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	return runningNotifier(t, zapcore.NewNopCore()), filepath.Join(caddy.AppDataDir(), LastGood)
}

// What was stored is served only if it is whole, valid, and of this source.
func TestLastGood(t *testing.T) {
	n, dir := keeping(t)
	src := &fileSource{path: "/srv/policy.yaml"}
	if l, _ := n.loadLastGood(src); l != nil {
		t.Error("there is one before one was stored")
	}
	n.saveLastGood(src, content{data: []byte(fakePolicy)})
	l, _ := n.loadLastGood(src)
	if l == nil || l.SHA256 != sumOf([]byte(fakePolicy)) {
		t.Fatalf("%+v", l)
	}
	path := filepath.Join(filepath.Dir(dir), filepath.Base(dir), filepath.Base(lastGoodKey(src)))
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
		"nothing": {}, "half": whole[:len(whole)/2], "of another source": of("/srv/other.yaml", fakePolicy), "broken": of(src.path, "version: 1\nrulez: 1\n"),
		"no text": of(src.path, ""), "null": []byte("null"),
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if l, _ := n.loadLastGood(src); l != nil {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// Policies of deleted files stay stored for a while, but none that is in use
// has to go for them.
func TestLastGoodIsBounded(t *testing.T) {
	n, dir := keeping(t)
	used := &fileSource{path: "/srv/used.yaml"}
	d := newDocument(used.key(), used.path)
	d.subscribers = []*subscriber{newSubscriber(used, n)}
	if _, _, err := pool.LoadOrNew(d.key, func() (caddy.Destructor, error) { return d, nil }); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = pool.Delete(d.key) }()
	n.saveLastGood(used, content{data: []byte(fakePolicy)})
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, filepath.Base(lastGoodKey(used))), old, old); err != nil {
		t.Fatal(err)
	}
	var last *fileSource
	for i := range maxLastGood + 5 {
		last = &fileSource{path: fmt.Sprintf("/srv/release-%d.yaml", i)}
		n.saveLastGood(last, content{data: []byte(fakePolicy)})
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) > maxLastGood+1 {
		t.Errorf("%d policies are stored; %v", len(files), err)
	}
	for _, src := range []*fileSource{used, last} {
		if l, _ := n.loadLastGood(src); l == nil {
			t.Errorf("%s is gone", src.path)
		}
	}
}

// Validating, which somebody else than Caddy's user may do, leaves no file behind.
func TestValidatingStoresNothing(t *testing.T) {
	n, dir := keeping(t)
	args := os.Args
	defer func() { os.Args = args }()
	for _, command := range []string{"validate", "adapt"} {
		os.Args = []string{"caddy", command}
		d := newDocument("x", "x")
		src := &fileSource{path: filepath.Join(t.TempDir(), "policy.yaml")}
		writePolicy(t, src.path, fakePolicy)
		if err := d.open(context.Background(), newSubscriber(src, n)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("caddy %s keeps a policy", command)
		}
	}
}

// A text whose tests a date has broken is not accepted, unless it was before: then it
// is served after a restart, with a warning.
func TestTextThatWasAcceptedBefore(t *testing.T) {
	notifier, _ := keeping(t)
	text := []byte("version: 1\nrules:\n  - for: everyone\n    allow:\n      index:\n        - {paths: /events/, time-limit: until-2026-01-31}\nexpect:\n  - everyone may index /events/\n")
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	src := &fileSource{path: file}
	d := newDocument(src.key(), src.path)
	if err := d.open(context.Background(), newSubscriber(src, notifier)); err == nil || !strings.Contains(err.Error(), "[expectation-failed]") {
		t.Fatalf("a new text: %v", err)
	}
	notifier.saveLastGood(src, content{data: text})
	if err := d.open(context.Background(), newSubscriber(src, notifier)); err != nil {
		t.Fatalf("a text that was accepted before: %v", err)
	}
	current := d.Status().Current
	if current == nil || current.SHA256 != sumOf(text) || !strings.Contains(current.Warnings.Error(), "[expectation-no-longer-holds]") {
		t.Errorf("%+v", current)
	}
	changed := append(text, '\n')
	if err := os.WriteFile(file, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.open(context.Background(), newSubscriber(src, notifier)); err != nil {
		t.Fatal(err)
	}
	if st := d.Status(); st.Current.SHA256 != sumOf(text) || st.Err == nil || !strings.Contains(st.Err.Error(), "[expectation-failed]") {
		t.Errorf("a changed text: %v", st.Err)
	}
}
