// SPDX-License-Identifier: Apache-2.0

package source

import (
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
)

// A version keeps its number if the same text is read again or the server restarts. Each change of the text leads to
// the next number. If only the program or the catalog changes, the number after the dot increases.
func TestNumbers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := &Options{LastGood: filepath.Join(dir, "good"), Logger: zap.NewNop(), pool: new(Pool)}
	src := newFileSource(filepath.Join(dir, "site.yaml"))
	var numbers, ids []string
	for _, step := range []struct{ text, program string }{
		{fakePolicy, ""}, {fakePolicy, ""}, {fakePolicy, "newer"}, {fakePolicy, "newer"}, {fakePolicy + "# more\n", "newer"}, {fakePolicy, ""},
	} {
		s, err := Compile(src.name, []byte(step.text))
		if err != nil {
			t.Fatal(err)
		}
		if p := s.Publication(); step.program != "" {
			p.Program = step.program
			p.Identify()
		}
		o.saveLastGood(src, s)
		numbers, ids = append(numbers, s.Publication().Label()), append(ids, s.Publication().ID)
	}
	if want := []string{"v1", "v1", "v1.1", "v1.1", "v2", "v3"}; !slices.Equal(numbers, want) {
		t.Errorf("%v, want %v", numbers, want)
	}
	if ids[0] != ids[1] || ids[1] == ids[2] || ids[2] != ids[3] || ids[3] == ids[4] || ids[0] != ids[5] {
		t.Errorf("%v", ids)
	}
}

// The author of a version in a storage is still known after a restart. If another program writes a text to the storage,
// the version does not have an author, even if the same text was published earlier. If the history cannot be read when
// the version is loaded, the author is read from it later.
func TestPublisher(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := &Options{LastGood: filepath.Join(dir, "good"), Logger: zap.NewNop(), pool: new(Pool)}
	storage := &certmagic.FileStorage{Path: filepath.Join(dir, "storage")}
	src := newStorageSource(storage, "site.yaml")
	history := filepath.Join(dir, "storage", "site.yaml"+historySuffix)
	load := func(text, want string) {
		t.Helper()
		s, err := Compile(src.name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		o.saveLastGood(src, s)
		if p := s.Publication(); p.Label()+" "+p.By+" "+p.Note != want {
			t.Errorf("%s %q %q, want %q", p.Label(), p.By, p.Note, want)
		}
	}
	publish := func(before, text string, by Signed) {
		t.Helper()
		if before != "" {
			before = sumOf([]byte(before))
		}
		if err := PublishTo(t.Context(), storage, "site.yaml", Change{Replaces: before, Text: text, Signed: by}); err != nil {
			t.Fatal(err)
		}
	}
	second, other := fakePolicy+"# second\n", fakePolicy+"# by other means\n"
	publish("", fakePolicy, Signed{By: "alice", Note: "training out"})
	load(fakePolicy, "v1 alice training out")
	load(fakePolicy, "v1 alice training out")
	load(other, "v2  ")
	publish(fakePolicy, second, Signed{By: "bob"})
	whole, err := os.ReadFile(history)
	if err != nil || os.WriteFile(history, []byte("{"), 0o600) != nil {
		t.Fatal(err)
	}
	load(second, "v3  ")
	if err := os.WriteFile(history, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	load(second, "v3 bob ")
	load(fakePolicy, "v4  ")
}

// A publication contains the documents of each host that the policy names, and of all other hosts.
func TestPublication(t *testing.T) {
	t.Parallel()
	s, err := Compile("site.yaml", []byte(`version: 1
publish: {rsl: /license.xml, tdmrep: on}
rules:
  - for: everyone
    disallow: {train-ai: /, index: /private/}
  - for: everyone
    hosts: [staging.example.com]
    disallow: {crawl: /}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range s.Publication().Documents {
		got = append(got, d.Name+" "+d.Host)
		if d.Version == "" || d.Text == "" {
			t.Errorf("%+v", d)
		}
	}
	want := []string{
		"robots.txt staging.example.com", "tdmrep.json staging.example.com", "license.xml staging.example.com", "fields staging.example.com",
		"robots.txt ", "tdmrep.json ", "license.xml ", "fields ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// The policy of a loaded configuration is only listed as running when the configuration runs.
func TestRunning(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "site.yaml")
	if err := os.WriteFile(file, []byte(fakePolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	var runs atomic.Bool // atomic, because the goroutine that watches the file calls Running, too
	p := new(Pool)
	s, err := p.Open(t.Context(), Options{Policy: file, Running: runs.Load})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, want := range []int{0, 1} {
		if got := len(p.Running()); got != want || len(p.InForce()) != want || len(p.Loaded()) != 1 {
			t.Errorf("%d policies run, %d are in force, of %d, want %d", got, len(p.InForce()), len(p.Loaded()), want)
		}
		runs.Store(true)
	}
}
