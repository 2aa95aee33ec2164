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
)

// kept is a policy that was good, as it is kept for a start without its source.
type kept struct {
	Source string          `json:"source"`
	Saved  time.Time       `json:"saved"`
	Mark   json.RawMessage `json:"mark,omitempty"`
	Text   []byte          `json:"text"`
}

// keepDir holds the policies that were good, maxKept of them: names of files can
// change with every deployment.
const (
	keepDir = "robots_policy/last_good"
	maxKept = 64
)

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
	return path.Join(keepDir, sumOf([]byte(src.key()))[:32]+".json")
}

// keep keeps a policy that is good. That it cannot is no reason not to serve it.
func (t *teller) keep(src source, found reading) {
	if src.keeps() == keepNowhere {
		return
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
		err = within(ctx, func() error { return errors.Join(storage.Store(ctx, keepKey(src), data), prune(ctx, storage)) })
	}
	if err != nil {
		t.logger.Warn("the policy could not be kept for a start without its source", zap.String("policy", src.name()), zap.Error(err))
	}
}

// prune deletes the oldest of too many policies that were kept.
func prune(ctx context.Context, storage certmagic.Storage) error {
	keys, err := storage.List(ctx, keepDir, false)
	if err != nil || len(keys) <= maxKept {
		return err
	}
	modified := map[string]time.Time{}
	for _, key := range keys {
		info, err := storage.Stat(ctx, key)
		if err != nil {
			return ignoreMissing(err)
		}
		modified[key] = info.Modified
	}
	slices.SortFunc(keys, func(a, b string) int { return modified[a].Compare(modified[b]) })
	for _, key := range keys[:len(keys)-maxKept] {
		if err := storage.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// kept returns the policy that was kept for a source, with its mark, or nil. It
// is checked like any other.
func (t *teller) kept(src source) (*live, any) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	var data []byte
	err := within(ctx, func() (err error) {
		data, err = t.keepStorage(src).Load(ctx, keepKey(src))
		return err
	})
	var k kept
	if err == nil {
		err = json.Unmarshal(data, &k)
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

// within waits for f only as long as ctx lasts: not every storage heeds it.
func within(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the storage does not answer: %w", ctx.Err())
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
