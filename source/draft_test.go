// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap/zapcore"
)

// A policy has at most one saved draft. To replace it, a person must have seen its latest state, including its
// approvals. If another person has changed or approved the draft in between, saving fails.
func TestDrafts(t *testing.T) {
	d, _, _ := openStored(t)
	base := sumOf([]byte(fakePolicy))
	if draft, err := d.Draft(t.Context()); draft != nil || err != nil {
		t.Fatalf("a draft before the first: %v, %v", draft, err)
	}
	first := &Draft{Base: base, Text: "one", Time: time.Now().UTC().Round(0), Signed: Signed{By: "alice", Note: "a note"}}
	if err := d.SaveDraft(t.Context(), "", first); err != nil {
		t.Fatal(err)
	}
	found, err := d.Draft(t.Context())
	if err != nil || found.ID() != first.ID() || found.By != "alice" || found.Note != "a note" {
		t.Fatalf("%+v, %v", found, err)
	}
	approved := *first
	approved.Approved = []string{"bob"}
	if err := d.SaveDraft(t.Context(), "", &approved); !errors.Is(err, ErrOvertaken) {
		t.Errorf("saved over a draft that was not seen: %v", err)
	}
	if err := d.SaveDraft(t.Context(), first.ID(), &approved); err != nil {
		t.Error(err)
	}
	if err := d.SaveDraft(t.Context(), first.ID(), nil); !errors.Is(err, ErrOvertaken) {
		t.Errorf("deleted a draft that was approved in the meantime: %v", err)
	}
	if err := d.SaveDraft(t.Context(), approved.ID(), nil); err != nil {
		t.Error(err)
	}
	if draft, err := d.Draft(t.Context()); draft != nil || err != nil {
		t.Errorf("a draft after it was deleted: %v, %v", draft, err)
	}
}

// While the storage key does not exist, the document does not have a policy, and this is not an error. When the first
// policy is written to the key, it is served. If the key later becomes empty, that policy stays in force.
func TestFirstPolicy(t *testing.T) {
	storage := &certmagic.FileStorage{Path: t.TempDir()}
	src := newStorageSource(storage, "first.yaml")
	d := newDocument(src.name)
	u := newTestUser(t, testOptions(zapcore.NewNopCore()), src)
	u.Strict = true // a configuration runs
	if err := d.open(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	d.join(u)
	if d.Current() != nil || u.snapshot != nil || d.Problem() == "" {
		t.Fatalf("before the first policy, a policy is served, or Problem is empty: %q", d.Problem())
	}
	update := func() Outcome {
		if err := d.loading.Acquire(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		return d.update(t.Context(), u.Options, src, false)
	}
	if out := update(); out.news != nothing || out.Err == nil {
		t.Errorf("the missing policy is reported a second time: %+v", out)
	}
	if err := d.loading.Acquire(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if out := d.apply(u.Options, src, textOf("rulez: 1\n"), nil, false); out.news != rejected || d.Current() != nil {
		t.Errorf("a first policy with an error: %+v", out)
	}
	d.loading.Release(1)
	u.report(src, Outcome{Err: errUnused, news: rejected}) // report must also work without a version
	if _, err := d.Publish(t.Context(), Change{Text: fakePolicy, Signed: Signed{By: "alice"}}); err != nil {
		t.Fatal(err)
	}
	if u.snapshot == nil || u.snapshot.Text != fakePolicy || d.Problem() != "" {
		t.Error("the first policy is not served")
	}
	if err := storage.Store(t.Context(), src.stored.key, nil); err != nil {
		t.Fatal(err)
	}
	if out := update(); out.Err == nil || d.Current().Text != fakePolicy {
		t.Errorf("a key that became empty: %+v", out)
	}
	d.leave(u)

	// A missing policy file is accepted when the server starts, but not when a configuration is replaced or validated.
	name := filepath.Join(t.TempDir(), "site.yaml")
	src = newFileSource(name)
	for _, x := range []struct{ strict, readOnly, ok bool }{{false, false, true}, {true, false, false}, {true, true, false}} {
		d := newDocument(name)
		u := newTestUser(t, testOptions(zapcore.NewNopCore()), src)
		u.Strict, u.ReadOnly = x.strict, x.readOnly
		if err := d.open(t.Context(), u); (err == nil) != x.ok {
			t.Errorf("%+v: %v", x, err)
		}
	}
	if err := os.WriteFile(name, []byte("version: 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := newDocument(name).open(t.Context(), newTestUser(t, testOptions(zapcore.NewNopCore()), src)); err == nil {
		t.Error("a first policy with an error was treated like a missing policy")
	}
}

func textOf(text string) content { return content{data: []byte(text)} }
