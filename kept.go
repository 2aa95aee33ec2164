// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/internal/policyname"
)

// kept is a policy that was good, as it is kept for a start without its source.
type kept struct {
	Source string          `json:"source"`
	Saved  time.Time       `json:"saved"`
	Mark   json.RawMessage `json:"mark,omitempty"`
	Text   []byte          `json:"text"`
}

// maxKept is how many policies are kept that no site uses now: names of files can
// change with every deployment.
const maxKept = 64

// storedMark is a mark that outlives the process.
type storedMark interface {
	// restore returns the mark of that JSON.
	restore(json.RawMessage) any
}

// keepStorage is where the last good policy of a source is kept.
func (t *teller) keepStorage(src source) certmagic.Storage {
	if src.keeps() == keepShared {
		return t.ctx.Storage()
	}
	return &certmagic.FileStorage{Path: caddy.AppDataDir()}
}

func keepKey(src source) string {
	return path.Join(policyname.LastGood, sumOf([]byte(src.key()))[:32]+".json")
}

// keep keeps a policy that is good. That it cannot is no reason not to serve it.
func (t *teller) keep(src source, found reading) {
	if src.keeps() == keepNowhere || validating() {
		return // validating is often done by another user, whose files Caddy could not read
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	k := kept{Source: src.name(), Saved: time.Now().UTC(), Text: found.data}
	if _, ok := src.(storedMark); ok {
		k.Mark, _ = json.Marshal(found.mark)
	}
	data, err := json.Marshal(k)
	if err == nil {
		storage := t.keepStorage(src)
		err = within(ctx, "the storage", func() error { return errors.Join(storage.Store(ctx, keepKey(src), data), prune(ctx, storage)) })
	}
	if err != nil {
		t.logger.Warn("the policy could not be kept for a start without its source", zap.String("policy", src.name()), zap.Error(err))
	}
}

// prune deletes the oldest of too many policies that were kept, but none that is
// in use here.
func prune(ctx context.Context, storage certmagic.Storage) error {
	keys, err := storage.List(ctx, policyname.LastGood, false)
	if err != nil || len(keys) <= maxKept {
		return err
	}
	used := keptInUse()
	keys = slices.DeleteFunc(keys, func(key string) bool { return used[key] })
	modified := map[string]time.Time{}
	for _, key := range keys {
		info, err := storage.Stat(ctx, key)
		if err != nil {
			return ignoreMissing(err)
		}
		modified[key] = info.Modified
	}
	slices.SortFunc(keys, func(a, b string) int { return modified[a].Compare(modified[b]) })
	for _, key := range keys[:max(0, len(keys)-maxKept)] {
		if err := storage.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// keptInUse are the keys of the policies that sites use.
func keptInUse() map[string]bool {
	used := map[string]bool{}
	for _, d := range allDocuments() {
		d.mu.Lock()
		for _, r := range d.readers {
			used[keepKey(r.src)] = true
		}
		d.mu.Unlock()
	}
	return used
}

// kept returns the policy that was kept for a source, with its mark, or nil. It
// is checked like any other.
func (t *teller) kept(src source) (*live, any) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	var data []byte
	err := within(ctx, "the storage", func() (err error) {
		data, err = t.keepStorage(src).Load(ctx, keepKey(src))
		return err
	})
	var k kept
	if err == nil {
		err = json.Unmarshal(data, &k)
	}
	if err == nil && k.Source != src.name() {
		err = fmt.Errorf("it is that of %q", k.Source)
	}
	var l *live
	if err == nil {
		l, err = newLive(src.name(), k.Text)
	}
	if err != nil {
		if ignoreMissing(err) != nil {
			t.logger.Warn("the policy that was kept cannot be used", zap.String("policy", src.name()), zap.Error(err))
		}
		return nil, nil
	}
	l.since = k.Saved
	t.logger.Info("starting with the policy that was good last", zap.String("policy", src.name()),
		zap.String("sha256", l.sum), zap.Time("saved", k.Saved))
	if s, ok := src.(storedMark); ok {
		return l, s.restore(k.Mark)
	}
	return l, nil
}

// within waits for f only as long as ctx lasts: not every storage heeds it, and no
// file of a network that is away.
func within(ctx context.Context, what string, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s does not answer: %w", what, ctx.Err())
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
