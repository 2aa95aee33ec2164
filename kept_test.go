// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap/zapcore"

	"github.com/robotspolicy/caddy-robots-policy/internal/policyname"
)

// keeping is a teller that keeps policies in a directory of the test.
func keeping(t *testing.T) (tell *teller, dir string) {
	t.Helper()
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	return runningTeller(t, zapcore.NewNopCore()), filepath.Join(caddy.AppDataDir(), policyname.LastGood)
}

// What was kept is served only if it is whole, good, and of this source.
func TestKept(t *testing.T) {
	tell, dir := keeping(t)
	src := &fileSource{path: "/srv/policy.yaml"}
	if l, _ := tell.kept(src); l != nil {
		t.Error("there is one before one was kept")
	}
	tell.keep(src, reading{data: []byte(fakePolicy)})
	l, _ := tell.kept(src)
	if l == nil || l.sum != sumOf([]byte(fakePolicy)) {
		t.Fatalf("%+v", l)
	}
	path := filepath.Join(filepath.Dir(dir), filepath.Base(dir), filepath.Base(keepKey(src)))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	of := func(source, text string) []byte {
		data, err := json.Marshal(kept{Source: source, Text: []byte(text)})
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
		if l, _ := tell.kept(src); l != nil {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// Policies of files that are no more are kept for a while, but none that is in use
// has to go for them.
func TestKeptIsBounded(t *testing.T) {
	tell, dir := keeping(t)
	used := &fileSource{path: "/srv/used.yaml"}
	d := &document{key: used.key(), name: used.path, readers: []*reader{{src: used, teller: tell}}}
	if _, _, err := documents.LoadOrNew(d.key, func() (caddy.Destructor, error) { return d, nil }); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = documents.Delete(d.key) }()
	tell.keep(used, reading{data: []byte(fakePolicy)})
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, filepath.Base(keepKey(used))), old, old); err != nil {
		t.Fatal(err)
	}
	var last *fileSource
	for i := range maxKept + 5 {
		last = &fileSource{path: fmt.Sprintf("/srv/release-%d.yaml", i)}
		tell.keep(last, reading{data: []byte(fakePolicy)})
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) > maxKept+1 {
		t.Errorf("%d policies are kept; %v", len(files), err)
	}
	for _, src := range []*fileSource{used, last} {
		if l, _ := tell.kept(src); l == nil {
			t.Errorf("%s is gone", src.path)
		}
	}
}

// Validating, which somebody else than Caddy's user may do, leaves no file behind.
func TestValidatingKeepsNothing(t *testing.T) {
	tell, dir := keeping(t)
	args := os.Args
	defer func() { os.Args = args }()
	for _, command := range []string{"validate", "adapt"} {
		os.Args = []string{"caddy", command}
		d := &document{key: "x", name: "x"}
		src := &fileSource{path: filepath.Join(t.TempDir(), "policy.yaml")}
		writePolicy(t, src.path, fakePolicy)
		if err := d.open(context.Background(), &reader{src: src, teller: tell, take: func(*live) {}}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("caddy %s keeps a policy", command)
		}
	}
}
