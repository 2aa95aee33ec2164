// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap/zapcore"
)

// standingOf returns the Standing for a history. Each letter in versions stands for a version with this text, and the
// last letter is the newest version. An upper-case letter means that servers have served the version. stored is the
// text in the storage.
func standingOf(versions, stored string) *Standing {
	st := &Standing{SHA256: stored}
	for _, v := range versions {
		p := Published{SHA256: strings.ToLower(string(v))}
		if p.SHA256 != string(v) {
			p.Served = time.Now()
		}
		p.Undo = len(st.History) > 1 && st.History[1].SHA256 == p.SHA256
		st.History = following(st.History, p)
	}
	return st
}

// An undo returns to the version that servers served directly before the present one.
func TestUndoOfHistories(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		versions, stored, undo string
		again                  bool
	}{
		{"", "", "none", false},
		{"a", "a", "none", false},
		{"ab", "b", "none", false},
		{"Ab", "b", "a", false},  // b was published but not loaded, so servers serve a
		{"AB", "b", "a", false},  // servers serve b
		{"AbC", "c", "a", false}, // b was never served
		{"ABA", "a", "b", true},  // a was published again as an undo, so the next undo returns to b
		{"AbA", "a", "none", false},
		{"ABAB", "b", "a", true},
		{"ABC", "c", "b", false},
		{"AB", "x", "b", false}, // another program wrote x to the storage
		{"AB", "a", "b", false},
		{"A", "", "a", false}, // the text was deleted from the storage
	} {
		st := standingOf(c.versions, c.stored)
		got := "none"
		if back, err := st.GoBack(0); err == nil {
			got = back.SHA256
			if r := st.Returns(got); r != Undo {
				t.Errorf("%s, %s: the undo returns %v", c.versions, c.stored, r)
			}
		}
		if got != c.undo || st.UndoesUndo() != c.again {
			t.Errorf("%s, %s: undo returns to %s, again %v; want %+v", c.versions, c.stored, got, st.UndoesUndo(), c)
		}
	}
	st := standingOf("AbCDE", "e")
	for sum, want := range map[string]Return{"a": Earlier, "b": NeverServed, "c": Earlier, "d": Undo, "e": NeverServed, "x": NeverServed} {
		if got := st.Returns(sum); got != want {
			t.Errorf("%s: %v, want %v", sum, got, want)
		}
	}
	for n, want := range map[int]string{1: "", 2: "v2 cannot be restored, because no server is known to have served it", 3: "", 5: "v5 is already the version in the storage", 9: "there is no version v9"} {
		if _, err := st.GoBack(n); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("v%d: %v", n, err)
		}
	}
}

// A server has rejected some versions that other servers have served. When an earlier text is published again, this
// server loads it without asking the guard only if the history marks it as an undo. If search engines lose something
// because of the undo, an alert remains until the next version.
func TestUndoOnAnotherServer(t *testing.T) {
	const first, second, third = fakePolicy + "# first\n", fakePolicy + "# second\n", fakePolicy + "# third\n"
	d, u, s := openStored(t)
	publish := func(before, text string) {
		t.Helper()
		if err := PublishTo(t.Context(), s.Storage, s.key, Change{Replaces: sumOf([]byte(before)), Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := func(text string) { // another server serves it
		t.Helper()
		if err := s.markServed(t.Context(), sumOf([]byte(text))); err != nil {
			t.Fatal(err)
		}
	}
	g := &guard{err: errors.New("search engines would lose 20 requests")}
	u.Guard = g.check
	before := fakePolicy
	for _, text := range []string{first, second, third} { // this server rejects it
		publish(before, text)
		elsewhere(text)
		if out := d.Reload(t.Context()); out.Err == nil || d.Current().Text != fakePolicy {
			t.Fatalf("%q is loaded", text)
		}
		before = text
	}
	publish(third, second) // this publication is an undo
	if out := d.Reload(t.Context()); out.Err != nil || d.Current().Text != second {
		t.Errorf("the undo is not loaded: %v", out.Err)
	}
	if cost := d.Status().UndoCost; !strings.Contains(cost, "would lose 20 requests") {
		t.Errorf("no alert: %q", cost)
	}
	// The guard is asked about an older version, even if another server has served that version.
	publish(second, first)
	if out := d.Reload(t.Context()); out.Err == nil || d.Current().Text != second {
		t.Error("an older version is loaded")
	}
	g.answers(nil)
	if out := d.Reload(t.Context()); out.Err != nil && d.Status().UndoCost == "" {
		t.Error("the alert is gone before the next version")
	}
	publish(first, fakePolicy+"# new\n")
	if out := d.Reload(t.Context()); out.Err != nil || d.Status().UndoCost != "" {
		t.Errorf("the alert stays: %v, %q", out.Err, d.Status().UndoCost)
	}
}

// A test of the policy may fail now because the date or the crawler catalog has changed. This does not prevent an undo,
// but it causes an alert.
func TestUndoWithATestThatNoLongerHolds(t *testing.T) {
	const expired = "version: 1\nrules:\n  - for: everyone\n    allow: {crawl: /}\nexpect:\n  - GPTBot may not crawl /\n"
	storage := &certmagic.FileStorage{Path: t.TempDir()}
	s := &storedPolicy{storage, "site.yaml"}
	for _, c := range []Change{{Text: expired}, {Replaces: SumOf(expired), Text: fakePolicy}} {
		if err := PublishTo(t.Context(), storage, "site.yaml", c); err != nil {
			t.Fatal(err)
		}
		if err := s.markServed(t.Context(), SumOf(c.Text)); err != nil {
			t.Fatal(err)
		}
	}
	src := newStorageSource(storage, "site.yaml")
	d := newDocument(src.name)
	u := newTestUser(t, testOptions(zapcore.NewNopCore()), src)
	if err := d.open(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	d.join(u)
	defer d.leave(u)
	if _, err := d.Publish(t.Context(), Change{Replaces: SumOf(fakePolicy), Text: expired}); err != nil {
		t.Fatal(err)
	}
	if cost := d.Status().UndoCost; d.Current().Text != expired || !strings.Contains(cost, "GPTBot may not crawl /") {
		t.Errorf("served: %v, alert: %q", d.Current().Text == expired, cost)
	}
	if _, err := d.Publish(t.Context(), Change{Replaces: SumOf(expired), Text: expired + "# new\n"}); err == nil {
		t.Error("a new text whose test fails is published")
	}
}

// A text was served under one version number, and later published again under another number, but no server has loaded
// it again, for example because of the search-loss limit. An undo does not return to this second version.
func TestUndoSkipsAVersionThatWasNotLoaded(t *testing.T) {
	t.Parallel()
	s := &storedPolicy{&certmagic.FileStorage{Path: t.TempDir()}, "site.yaml"}
	if err := s.Store(t.Context(), s.key, []byte("found")); err != nil {
		t.Fatal(err)
	}
	before := "found"
	for _, v := range []struct {
		text   string
		loaded bool
		undo   string // the version that an undo returns to after this publication
	}{
		{"found", true, "none"}, // another program wrote it to the storage
		{"open", true, "v1"},
		{"found", false, "v2"}, // rejected
		{"new", false, "v2"},
		{"open", true, "v1"}, // servers have served it since v2
		{"disallowed", true, "v5"},
	} {
		if v.text != before {
			if err := PublishTo(t.Context(), s.Storage, s.key, Change{Replaces: SumOf(before), Text: v.text}); err != nil {
				t.Fatal(err)
			}
		}
		before = v.text
		if v.loaded {
			if err := s.markServed(t.Context(), SumOf(v.text)); err != nil {
				t.Fatal(err)
			}
		}
		st, err := s.standing(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := "none"
		if back := st.Undo(); back != nil {
			got = back.Label()
		}
		if got != v.undo {
			t.Errorf("after %q: undo returns to %s, want %s: %+v", v.text, got, v.undo, st.History)
		}
		if v := st.Version(3); v != nil && !v.Served.IsZero() {
			t.Error("v3 was served")
		}
	}
}

// The number of marks for served texts is limited. The newest marks are kept.
func TestServedMarksAreBounded(t *testing.T) {
	t.Parallel()
	s := &storedPolicy{&certmagic.FileStorage{Path: t.TempDir()}, "site.yaml"}
	for i := range maxServed + 5 {
		if err := s.markServed(t.Context(), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	marks, err := s.servedMarks(t.Context())
	if err := s.Store(t.Context(), s.key+servedSuffix, []byte("{")); err != nil {
		t.Fatal(err)
	}
	if err := PublishTo(t.Context(), s.Storage, s.key, Change{Text: "new"}); err != nil {
		t.Errorf("with damaged marks: %v", err)
	}
	if err != nil || len(marks) != maxServed || marks[maxServed-1].SHA256 != fmt.Sprint(maxServed+4) {
		t.Errorf("%d marks, %v", len(marks), err)
	}
}

// If a source has no policy at the start, it is polled until it has one, even if no store watches it.
func TestUnavailableIsAskedAgainWithReloadOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{err: errors.New("the storage is not there"), isRemote: true}
		d := newDocument("fake")
		u := newTestUser(t, testOptions(zapcore.NewNopCore()), src.source())
		u.watch = false
		if err := d.open(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		d.join(u)
		defer d.leave(u)
		if _, ok := errors.AsType[UnavailableError](d.unavailable()); !ok || u.snapshot != nil {
			t.Fatalf("%v", d.unavailable())
		}
		pass(5 * time.Minute)
		src.set(fakePolicy, nil)
		pass(unavailableRetry + time.Second)
		if d.unavailable() != nil || u.snapshot == nil {
			t.Fatalf("still unavailable: %v", d.unavailable())
		}
		src.set(fakePolicy+"# later\n", nil)
		pass(time.Hour)
		if u.snapshot.Text != fakePolicy {
			t.Error("a store that does not watch got the next version")
		}
	})
}
