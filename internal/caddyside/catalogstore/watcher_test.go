// SPDX-License-Identifier: Apache-2.0

package catalogstore

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// failing is a file storage that a test can make fail.
type failing struct {
	*certmagic.FileStorage
	err error
}

func (f *failing) Load(ctx context.Context, key string) ([]byte, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.FileStorage.Load(ctx, key)
}

// catalog returns the embedded catalog with a different date and an additional crawler.
func catalog(t *testing.T, date, token string) []byte {
	t.Helper()
	data, err := crawlers.Export("")
	if err != nil {
		t.Fatal(err)
	}
	embedded, err := crawlers.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.Replace(data, []byte("as-of: "+embedded.AsOf()), []byte("as-of: "+date), 1)
	return append(data, "  "+token+": {operator: Test, category: seo, honors: yes, source: field, examples: ["+token+"/1.0]}\n"...)
}

// smallCatalog is a catalog with one crawler.
func smallCatalog(date string) []byte {
	return []byte("version: 1\nas-of: " + date + "\ncrawlers:\n  Googlebot: {operator: Google, category: search, honors: yes, source: operator, examples: [Googlebot/2.1]}\n")
}

func knows(t *testing.T, token string) bool {
	t.Helper()
	c, err := crawlers.Default()
	if err != nil {
		t.Fatal(err)
	}
	_, ok := c.Lookup(token)
	return ok
}

func TestWatcher(t *testing.T) {
	ctx := context.Background()
	storage := &failing{FileStorage: &certmagic.FileStorage{Path: t.TempDir()}}
	t.Cleanup(func() { crawlers.Install(nil) })
	w := New(storage, "", zap.NewNop())
	expect := func(what, source, errText string, known ...string) {
		t.Helper()
		s := CurrentStatus()
		if s.Source != source || !strings.Contains(s.Error, errText) || (s.Error == "") != (errText == "") || s.Checked.IsZero() {
			t.Errorf("%s: %+v, want %s and %q", what, s, source, errText)
		}
		for _, token := range []string{"FirstNewBot", "SecondNewBot"} {
			if want := strings.Contains(strings.Join(known, " "), token); knows(t, token) != want {
				t.Errorf("%s: %s is known: %v", what, token, !want)
			}
		}
	}
	store := func(data []byte) {
		t.Helper()
		if err := Store(ctx, storage, data); err != nil {
			t.Fatal(err)
		}
	}
	expect("nothing is stored", SourceEmbedded, "")
	store(catalog(t, "2030-01-01", "FirstNewBot"))
	w.check(ctx)
	expect("a newer one", SourceStorage, "", "FirstNewBot")
	store(catalog(t, "2030-01-02", "SecondNewBot"))
	w.check(ctx)
	expect("one that is newer still", SourceStorage, "", "SecondNewBot")
	store([]byte("version: 1\ncrawlers: 3\n"))
	w.check(ctx)
	expect("a damaged one", SourceStorage, "storage:robots_policy/crawlers.yaml:2: expected a mapping", "SecondNewBot")
	w.check(ctx)
	expect("it is still damaged", SourceStorage, "expected a mapping", "SecondNewBot")
	storage.err = errors.New("no route")
	w.check(ctx)
	expect("the storage fails", SourceStorage, "no route", "SecondNewBot")
	New(storage, "", zap.NewNop())
	expect("a configuration is loaded meanwhile", SourceStorage, "no route", "SecondNewBot")
	storage.err = nil
	store(catalog(t, "2020-01-01", "FirstNewBot"))
	w.check(ctx)
	expect("one that is older than the embedded one", SourceEmbedded, "")
}

func TestGuard(t *testing.T) {
	before, err := crawlers.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	parse := func(data []byte) *crawlers.Catalog {
		c, err := crawlers.Parse("f.yaml", data)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	whole := catalog(t, "2030-01-01", "FirstNewBot")
	for _, tt := range []struct {
		name string
		data []byte
		want []string
	}{
		{"complete", whole, nil},
		{"older", catalog(t, "2020-01-01", "FirstNewBot"), []string{"is older than the catalog in use"}},
		{"a search engine less", bytes.Replace(whole, []byte("\n  Bingbot:\n    operator: Microsoft\n    category: search\n    reads-meta: true\n    further: [ai-input, ai-training]\n    results: web"),
			[]byte("\n  Bingbot:\n    operator: Microsoft\n    category: seo"), 1), []string{"or has them in another category: Bingbot;"}},
		{"shrunk", smallCatalog("2030-01-01"), []string{"more; add them again", "the catalog lacks"}},
	} {
		problems := Guard(before, parse(tt.data), now)
		text := errors.Join(problems...)
		if len(problems) != len(tt.want) {
			t.Errorf("%s: %v", tt.name, text)
		}
		for _, want := range tt.want {
			if text == nil || !strings.Contains(text.Error(), want) {
				t.Errorf("%s: %v, want %q", tt.name, text, want)
			}
		}
	}
}

// A catalog with a date in the future is rejected, because later catalogs would not be newer and could not replace it.
// If such a catalog is already in use, it can be replaced nevertheless.
func TestFutureDates(t *testing.T) {
	dated := func(date string) *crawlers.Catalog {
		c, err := crawlers.Parse("f.yaml", smallCatalog(date))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	now := time.Date(2030, 1, 1, 23, 0, 0, 0, time.UTC)
	for date, refused := range map[string]bool{"2029-12-31": false, "2030-01-01": false, "2030-01-02": false, "2030-01-03": true, "9999-12-31": true} {
		if err := CheckDate(dated(date), now); (err != nil) != refused {
			t.Errorf("%s: %v", date, err)
		}
	}
	if problems := Guard(dated("9999-12-31"), dated("2030-01-01"), now); len(problems) > 0 {
		t.Errorf("a catalog with a date in the far future cannot be replaced: %v", problems)
	}
	if problems := Guard(dated("2030-01-02"), dated("2030-01-01"), now); len(problems) != 1 {
		t.Errorf("an older catalog replaces a catalog with tomorrow's date: %v", problems)
	}
}

// If a new configuration is provisioned and then rejected, the running configuration keeps its catalog. A later check
// for a newer catalog reads the storage of the running configuration.
func TestRejectedConfiguration(t *testing.T) {
	t.Cleanup(func() { crawlers.Install(nil) })
	storageWith := func(token string) *certmagic.FileStorage {
		s := &certmagic.FileStorage{Path: t.TempDir()}
		if err := Store(t.Context(), s, catalog(t, "2030-01-01", token)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	storage := storageWith("FirstNewBot")
	running := New(storage, "", zap.NewNop())
	running.Start()
	defer running.Stop()
	for _, started := range []bool{false, true} {
		rejected := New(storageWith("SecondNewBot"), "", zap.NewNop())
		if started {
			rejected.Start()
		}
		if knows(t, "FirstNewBot") {
			t.Error("the catalog of the new configuration is not used")
		}
		rejected.Stop()
		for end := time.Now().Add(20 * time.Second); !knows(t, "FirstNewBot") || knows(t, "SecondNewBot"); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("started %v: the running configuration no longer has its catalog", started)
			}
		}
	}
	if err := Store(t.Context(), storage, catalog(t, "2030-01-02", "ThirdNewBot")); err != nil {
		t.Fatal(err)
	}
	if Check(t.Context()); !knows(t, "ThirdNewBot") {
		t.Error("a requested check does not reach the running configuration")
	}
}
