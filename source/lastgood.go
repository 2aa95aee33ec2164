// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
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

// lastGood is the last good version of a policy as it is saved, for a start without
// its source.
type lastGood struct {
	Source    string          `json:"source"`
	Saved     time.Time       `json:"saved"`
	Validator json.RawMessage `json:"validator,omitempty"`
	Text      []byte          `json:"text"`
}

// maxLastGood is how many policies stay saved that no site uses now: file names can
// change with every deployment.
const maxLastGood = 64

// savedValidator is a source whose validators outlive the process.
type savedValidator interface {
	// restore returns a validator that was marshaled.
	restore(json.RawMessage) any
}

// lastGoodStorage returns where the last good version of a source is saved.
func (n *notifier) lastGoodStorage(src source) certmagic.Storage {
	if src.place() == savedShared {
		return n.ctx.Storage()
	}
	return &certmagic.FileStorage{Path: caddy.AppDataDir()}
}

func lastGoodKey(src source) string {
	return path.Join(LastGood, sumOf([]byte(src.key()))[:32]+".json")
}

// saveLastGood saves a good version. It is served even if that fails.
func (n *notifier) saveLastGood(src source, found content) {
	if src.place() == notSaved || validatingOnly() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	saved := lastGood{Source: src.name(), Saved: time.Now().UTC(), Text: found.data}
	if _, ok := src.(savedValidator); ok {
		saved.Validator, _ = json.Marshal(found.validator)
	}
	data, err := json.Marshal(saved)
	if err == nil {
		storage := n.lastGoodStorage(src)
		err = within(ctx, "the storage", func() error {
			return errors.Join(storage.Store(ctx, lastGoodKey(src), data), pruneLastGood(ctx, storage))
		})
	}
	if err != nil {
		n.logger.Warn("storing the last known good policy failed", zap.String("policy", src.name()), zap.Error(err))
	}
}

// pruneLastGood deletes the oldest saved policies if there are too many, but none
// that is in use here.
func pruneLastGood(ctx context.Context, storage certmagic.Storage) error {
	keys, err := storage.List(ctx, LastGood, false)
	if err != nil || len(keys) <= maxLastGood {
		return err
	}
	used := lastGoodInUse()
	keys = slices.DeleteFunc(keys, func(key string) bool { return used[key] })
	modified := map[string]time.Time{}
	for _, key := range keys {
		info, err := storage.Stat(ctx, key)
		if err != nil {
			return ignoreNotExist(err)
		}
		modified[key] = info.Modified
	}
	slices.SortFunc(keys, func(a, b string) int { return modified[a].Compare(modified[b]) })
	for _, key := range keys[:max(0, len(keys)-maxLastGood)] {
		if err := storage.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// lastGoodInUse returns the storage keys of the policies that sites use.
func lastGoodInUse() map[string]bool {
	used := map[string]bool{}
	for _, d := range allDocuments() {
		d.mu.Lock()
		for _, r := range d.subscribers {
			used[lastGoodKey(r.src)] = true
		}
		d.mu.Unlock()
	}
	return used
}

// loadLastGood returns the last good version of a source with its validator, or nil.
// It is checked like any other, but for the tests of the policy, which it passed.
func (n *notifier) loadLastGood(src source) (*Snapshot, any) {
	saved, err := n.readLastGood(src)
	var s *Snapshot
	if err == nil {
		s, err = compileAccepted(src.name(), saved.Text)
	}
	if err != nil {
		if ignoreNotExist(err) != nil {
			n.logger.Warn("the last good policy cannot be used", zap.String("policy", src.name()), zap.Error(err))
		}
		return nil, nil
	}
	s.Since = saved.Saved
	n.logger.Info("starting with the last good policy", zap.String("policy", src.name()),
		zap.String("sha256", s.SHA256), zap.Time("saved", saved.Saved))
	if r, ok := src.(savedValidator); ok {
		return s, r.restore(saved.Validator)
	}
	return s, nil
}

// readLastGood reads what saveLastGood saved.
func (n *notifier) readLastGood(src source) (saved lastGood, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	var data []byte
	err = within(ctx, "the storage", func() (err error) {
		data, err = n.lastGoodStorage(src).Load(ctx, lastGoodKey(src))
		return err
	})
	if err == nil {
		err = json.Unmarshal(data, &saved)
	}
	if err == nil && saved.Source != src.name() {
		err = fmt.Errorf("it is that of %q", saved.Source)
	}
	return saved, err
}

// accepted reports whether a text is the last good version of a source.
func (n *notifier) accepted(src source, data []byte) bool {
	if src.place() == notSaved {
		return false
	}
	saved, err := n.readLastGood(src)
	return err == nil && bytes.Equal(saved.Text, data)
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
