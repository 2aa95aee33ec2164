// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
)

// If the database is damaged while the server runs, the database is renamed, and new requests are stored in a new
// database.
func TestStoreDamagedWhileRunning(t *testing.T) {
	dir := t.TempDir()
	if err := caddy.Load(adapted(t, recording(dir, "A", "100MB")), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	a := runningActivity()
	first, _ := a.store.Get()
	// Another program overwrites the files of the database. The console detects the damage when it reads data for the
	// next page.
	for _, suffix := range []string{"", "-wal", "-shm"} {
		name := filepath.Join(a.directory, "activity.db"+suffix)
		if size, err := os.Stat(name); err != nil {
			t.Fatal(err)
		} else if f, err := os.OpenFile(name, os.O_RDWR, 0); err != nil {
			t.Fatal(err)
		} else if _, err = f.Write(bytes.Repeat([]byte{0x55}, int(size.Size()))); errors.Join(err, f.Close()) != nil {
			t.Fatal(err)
		}
	}
	s := &server{local: true, logger: caddy.Log()}
	s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("still not so: %s", what)
			}
		}
	}
	until("it fails", func() bool { return len(optional.Failing()) == 1 })
	if a.Reader() != nil || runningStore("") != nil {
		t.Error("a damaged store is read")
	}
	a.Record(activity.Request{}) // this request is not recorded, but counted
	if a.Dropped() != 1 {
		t.Errorf("%d requests are counted as not recorded", a.Dropped())
	}
	if _, err := a.Violations(t.Context(), time.Now(), 0, 1); err == nil {
		t.Error("violations of a store that is not open")
	}
	until("a new store is allowed", func() bool { s, ok := a.store.Get(); return ok && s.Store != first.Store })
	if n := len(optional.Failing()); n != 0 {
		t.Errorf("%d parts fail", n)
	}
	aside, err := filepath.Glob(filepath.Join(a.directory, "activity.db.damaged-*"))
	if err != nil || len(aside) != 1 {
		t.Fatalf("put aside: %v, %v", aside, err)
	}
	if s, err := os.Stat(aside[0]); err != nil || s.Size() == 0 {
		t.Errorf("nothing was put aside: %v", err)
	}
}
