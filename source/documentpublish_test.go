// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap/zapcore"

	"github.com/robotspolicy/caddy-robots-policy/site"
)

// guard provides an Options.Guard that answers with err.
type guard struct {
	mu    sync.Mutex
	err   error
	asked int
}

func (g *guard) check(context.Context, string, *site.Site, *site.Site, site.Below, []string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	return g.err
}

// answers sets the error that the guard returns, or nil.
func (g *guard) answers(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
}

// times returns how often the guard's check was called.
func (g *guard) times() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked
}

// openStored opens a document whose text is in a storage.
func openStored(t *testing.T) (*Document, *user, *storedPolicy) {
	t.Helper()
	storage := &certmagic.FileStorage{Path: t.TempDir()}
	if err := PublishTo(t.Context(), storage, "site.yaml", Change{Text: fakePolicy}); err != nil {
		t.Fatal(err)
	}
	src := newStorageSource(storage, "site.yaml")
	d := newDocument(src.name)
	u := newTestUser(t, testOptions(zapcore.NewNopCore()), src)
	if err := d.open(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	d.join(u)
	return d, u, src.stored
}

func (s *storedPolicy) holds(t *testing.T, want string) {
	t.Helper()
	if got, err := s.Load(t.Context(), s.key); err != nil || string(got) != want {
		t.Errorf("the storage holds %q, %v, want %q", got, err, want)
	}
}

// A text that the guard rejects, or that has an error, is never written to the storage. So the next version can be
// published.
func TestPublishAsksTheGuardFirst(t *testing.T) {
	d, u, s := openStored(t)
	g := &guard{err: errors.New("it would block search crawlers")}
	u.Guard = g.check
	if _, err := d.Publish(t.Context(), Change{Replaces: sumOf([]byte(fakePolicy)), Text: fakePolicy + "# closed\n"}); err == nil || !strings.Contains(err.Error(), "search crawlers") {
		t.Errorf("published against the safety check: %v", err)
	}
	if _, err := d.Publish(t.Context(), Change{Replaces: sumOf([]byte(fakePolicy)), Text: "version: 1\nrulez: 1\n"}); err == nil {
		t.Error("an invalid policy was published")
	}
	s.holds(t, fakePolicy)
	if st, err := d.Standing(t.Context()); err != nil || len(st.History) != 1 {
		t.Errorf("%v, %v; want one version in the history", st, err)
	}
	g.answers(nil)
	o, err := d.Publish(t.Context(), Change{Replaces: sumOf([]byte(fakePolicy)), Text: fakePolicy + "# good\n", Signed: Signed{By: "alice", Note: "note"}})
	if err != nil || o.Now.Text != fakePolicy+"# good\n" || d.Current() != o.Now {
		t.Errorf("a good version was not published after a rejected one: %v", err)
	}
	if g.times() != 2 {
		t.Errorf("the safety check was asked %d times for two versions", g.times())
	}
	s.holds(t, fakePolicy+"# good\n")
	if _, err := d.Publish(t.Context(), Change{Replaces: sumOf([]byte(fakePolicy)), Text: fakePolicy}); !errors.Is(err, ErrOvertaken) {
		t.Errorf("published over a version that was not seen: %v", err)
	}
}

// faultyStorage fails to acquire or release locks, to write a policy, or to read it after that.
type faultyStorage struct {
	Storage
	lock, unlock, store, load error
	arrives                   bool // the text is written although Store returns an error
	wait                      bool // Store fails only when its context ends
	failed                    bool
}

func (f *faultyStorage) Store(ctx context.Context, name string, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.store == nil || strings.HasSuffix(name, historySuffix) {
		return f.Storage.Store(ctx, name, data)
	}
	if f.failed = true; f.wait {
		<-ctx.Done()
	}
	if f.arrives {
		return errors.Join(f.store, f.Storage.Store(ctx, name, data))
	}
	return f.store
}

func (f *faultyStorage) Load(ctx context.Context, name string) ([]byte, error) {
	if f.failed && f.load != nil {
		return nil, f.load
	}
	return f.Storage.Load(ctx, name)
}

func (f *faultyStorage) Lock(ctx context.Context, name string) error {
	return errors.Join(f.lock, f.Storage.Lock(ctx, name))
}

func (f *faultyStorage) Unlock(ctx context.Context, name string) error {
	return errors.Join(f.unlock, f.Storage.Unlock(ctx, name))
}

// If the lock cannot be released, the text is still published. If the lock cannot be acquired, publishing fails with
// ErrStorage.
func TestPublishWithAFaultyLock(t *testing.T) {
	d, _, s := openStored(t)
	faulty := &faultyStorage{Storage: s.Storage, unlock: errors.New("gone away")}
	s.Storage = faulty
	const good = fakePolicy + "# good\n"
	o, err := d.Publish(t.Context(), Change{Replaces: sumOf([]byte(fakePolicy)), Text: good})
	if err != nil || o.Now == nil || o.Now.Text != good || d.Current() != o.Now {
		t.Errorf("published, but the lock cannot be released: %+v, %v", o.Now, err)
	}
	s.holds(t, good)
	err = PublishTo(t.Context(), s.Storage, s.key, Change{Replaces: sumOf([]byte(good)), Text: fakePolicy})
	if !errors.Is(err, ErrLockStays) || errors.Is(err, ErrStorage) {
		t.Errorf("PublishTo: %v", err)
	}
	s.holds(t, fakePolicy)
	err = PublishTo(t.Context(), s.Storage, s.key, Change{Replaces: sumOf([]byte(good)), Text: good})
	if !errors.Is(err, ErrOvertaken) || errors.Is(err, ErrLockStays) || errors.Is(err, ErrStorage) {
		t.Errorf("overtaken, and the lock cannot be released: %v", err)
	}
	faulty.lock = errors.New("no connection")
	err = PublishTo(t.Context(), s.Storage, s.key, Change{Replaces: sumOf([]byte(fakePolicy)), Text: good})
	if !errors.Is(err, ErrStorage) || !strings.Contains(err.Error(), "no connection") {
		t.Errorf("without a lock: %v", err)
	}
	s.holds(t, fakePolicy)
}

// Another program has written a text to the storage, and the server has rejected it. A new version based on the served
// version can replace the rejected text.
func TestPublishReplacesARejectedVersion(t *testing.T) {
	d, _, s := openStored(t)
	if err := s.Store(t.Context(), s.key, []byte("version: 1\nrulez: 1\n")); err != nil {
		t.Fatal(err)
	}
	if o := d.Reload(t.Context()); o.Err == nil {
		t.Fatal("an invalid policy was loaded")
	}
	if _, err := d.Publish(t.Context(), Change{Replaces: sumOf([]byte(fakePolicy)), Text: fakePolicy + "# good\n"}); err != nil {
		t.Error(err)
	}
	s.holds(t, fakePolicy+"# good\n")
	if err := d.Status().Error; err != "" {
		t.Errorf("still reported as rejected: %s", err)
	}
}

// If the guard cannot decide now, this is reported once, and the guard is asked again later.
func TestUndecidedGuardIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{text: fakePolicy}
		d, r, logs := newTestDocument(t, src)
		d.join(r)
		defer d.leave(r)
		g := &guard{err: UndecidedError{errors.New("the store is busy")}}
		r.Guard = g.check
		src.set(fakePolicy+"# b\n", nil)
		pass(10*time.Minute + time.Second)
		if n := logs.FilterMessageSnippet("policy not reloaded").Len(); n != 1 {
			t.Errorf("reported %d times", n)
		}
		if g.times() < 5 || g.times() > 20 {
			t.Errorf("asked %d times in ten minutes", g.times())
		}
		if o := d.Reload(t.Context()); o.Err == nil || g.times() < 6 {
			t.Errorf("a manual reload did not ask the guard again: %v", o.Err)
		}
		g.answers(nil)
		pass(2 * time.Minute)
		if s := d.Status(); s.Error != "" || d.Current().Text != fakePolicy+"# b\n" {
			t.Errorf("not loaded after the safety check could decide: %s", s.Error)
		}
		g.answers(errors.New("it would block search crawlers"))
		before := g.times()
		src.set(fakePolicy+"# c\n", nil)
		pass(10 * time.Minute)
		if n := g.times() - before; n != 1 {
			t.Errorf("after the guard had decided, it was asked %d times", n)
		}
	})
}

// An empty history in the storage is damaged, because with an empty history the version numbers would start at 1 again.
// An empty draft means that there is no draft.
func TestEmptyHistory(t *testing.T) {
	d, _, s := openStored(t)
	for _, suffix := range []string{historySuffix, draftSuffix} {
		if err := s.Store(t.Context(), s.key+suffix, nil); err != nil {
			t.Fatal(err)
		}
	}
	err := PublishTo(t.Context(), s.Storage, s.key, Change{Replaces: sumOf([]byte(fakePolicy)), Text: fakePolicy + "# b\n"})
	if !errors.Is(err, ErrStorage) || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("published: %v", err)
	}
	s.holds(t, fakePolicy)
	if draft, err := d.Draft(t.Context()); draft != nil || err != nil {
		t.Errorf("a draft: %+v, %v", draft, err)
	}
}

// slowStorage acquires a lock only after a delay, or not at all if the context ends earlier. It also delays each write,
// and then writes even if the context has ended.
type slowStorage struct {
	Storage
	lock, store time.Duration
	locked      atomic.Bool
}

func (f *slowStorage) Lock(ctx context.Context, _ string) error {
	select {
	case <-time.After(f.lock):
		f.locked.Store(true)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *slowStorage) Unlock(context.Context, string) error {
	f.locked.Store(false)
	return nil
}

func (f *slowStorage) Store(ctx context.Context, key string, value []byte) error {
	time.Sleep(f.store)
	return f.Storage.Store(ctx, key, value)
}

// If the lock cannot be acquired in time, publishing fails with an error. If a write takes too long, the lock is
// released nevertheless.
func TestPublishToASlowStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowStorage{Storage: &certmagic.FileStorage{Path: t.TempDir()}, lock: 5 * time.Minute}
		publish := func() error { return PublishTo(t.Context(), slow, "site.yaml", Change{Text: fakePolicy}) }
		if err := publish(); !errors.Is(err, ErrStorage) || !strings.HasSuffix(err.Error(), "locking storage:site.yaml: context deadline exceeded") {
			t.Errorf("without a lock: %v", err)
		}
		slow.lock, slow.store = 0, publishToTimeout+time.Second
		if err := publish(); !errors.Is(err, ErrStorage) || !strings.HasSuffix(err.Error(), "publishing: context deadline exceeded") {
			t.Errorf("a slow write: %v", err)
		}
		if slow.locked.Load() {
			t.Error("the lock was not released")
		}
		slow.store = time.Hour
		start := time.Now()
		if err := publish(); !errors.Is(err, ErrStorage) || !strings.Contains(err.Error(), "publishing: the storage takes too long") || time.Since(start) > publishToTimeout+time.Minute {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		time.Sleep(2 * time.Hour) // the write ends
	})
}

// If a text could not be written, the history does not list it as published. The exception is a text that the storage
// may have written although it returned an error.
func TestFailedPublicationIsNoHistory(t *testing.T) {
	for name, c := range map[string]struct {
		faulty faultyStorage
		want   int
	}{
		"not written":               {faultyStorage{store: errors.New("disk full")}, 1},
		"written, and not answered": {faultyStorage{store: errors.New("cut off"), arrives: true}, 2},
		"too late":                  {faultyStorage{store: errors.New("no time"), wait: true}, 1},
		"and cannot be read":        {faultyStorage{store: errors.New("gone"), load: errors.New("gone")}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, _, s := openStored(t)
				faulty := c.faulty
				faulty.Storage = s.Storage
				err := PublishTo(t.Context(), &faulty, s.key, Change{Replaces: sumOf([]byte(fakePolicy)), Text: fakePolicy + "# more\n", Signed: Signed{By: "mallory"}})
				if !errors.Is(err, ErrStorage) || !strings.Contains(err.Error(), faulty.store.Error()) {
					t.Errorf("published: %v", err)
				}
				history, err := s.history(t.Context())
				if err != nil || len(history) != c.want {
					t.Errorf("%d versions, %v", len(history), err)
				}
				time.Sleep(time.Minute) // the storage's own goroutines end
			})
		})
	}
}

// brokenStorage blocks or panics, and ignores its context.
type brokenStorage struct {
	Storage
	lock, load func()
}

func (f brokenStorage) Lock(context.Context, string) error {
	f.lock()
	return errors.New("no lock")
}

func (f brokenStorage) Load(context.Context, string) ([]byte, error) {
	f.load()
	return nil, errors.New("nothing")
}

// A storage that ignores its context, or panics, does not block the watcher or the next publication.
func TestPublishToABrokenStorage(t *testing.T) {
	for name, fault := range map[string]func(never chan struct{}) func(){
		"takes too long": func(never chan struct{}) func() { return func() { <-never } },
		"panic":          func(chan struct{}) func() { return func() { panic("out of order") } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, _, s := openStored(t)
				never := make(chan struct{})
				good := s.Storage
				s.Storage = brokenStorage{Storage: good, lock: fault(never), load: fault(never)}
				if _, err := d.Publish(t.Context(), Change{Replaces: sumOf([]byte(fakePolicy)), Text: fakePolicy + "# b\n"}); err == nil || !errors.Is(err, ErrStorage) || !strings.Contains(err.Error(), name) {
					t.Errorf("published: %v", err)
				}
				if _, err := d.Standing(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("a history: %v", err)
				}
				close(never)
				synctest.Wait()
				s.Storage = good
				if o := d.Reload(t.Context()); o.Err != nil {
					t.Error(o.Err)
				}
				if _, err := d.Publish(t.Context(), Change{Replaces: sumOf([]byte(fakePolicy)), Text: fakePolicy + "# c\n"}); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute) // the storage's own goroutines end
			})
		})
	}
}
