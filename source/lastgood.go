// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"
)

// lastGood is the last good version of a policy as it is saved, for a start without
// its source.
type lastGood struct {
	Source string    `json:"source"`
	Saved  time.Time `json:"saved"`
	Text   []byte    `json:"text"`
}

// maxLastGood is how many policies stay saved that no site uses now: file names can
// change with every deployment.
const maxLastGood = 64

// saves is where last good versions are saved: a Storage, or a directory.
type saves interface {
	Load(ctx context.Context, key string) ([]byte, error)
	Store(ctx context.Context, key string, value []byte) error
	Delete(ctx context.Context, key string) error
	List(ctx context.Context, prefix string, recursive bool) ([]string, error)
}

// directory has the files of Options.LastGood, by the last part of their keys.
type directory string

func (d directory) file(key string) string { return filepath.Join(string(d), path.Base(key)) }

func (d directory) Load(_ context.Context, key string) ([]byte, error) {
	return os.ReadFile(d.file(key))
}

func (d directory) Delete(_ context.Context, key string) error { return os.Remove(d.file(key)) }

// Store replaces the file as a whole, so that a crash leaves the old one or the new one.
func (d directory) Store(_ context.Context, key string, value []byte) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(string(d), ".saving-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it has the name of the key
	_, err = f.Write(value)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), d.file(key))
}

func (d directory) List(_ context.Context, prefix string, _ bool) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(string(d), "*.json"))
	for i, f := range files {
		files[i] = path.Join(prefix, filepath.Base(f))
	}
	return files, err
}

// saves returns where the last good version of a source is saved; nil if it is not.
func (o *Options) saves(src *source) saves {
	switch {
	case src.startsFromLastGood && o.Storage != nil:
		return o.Storage
	case src.key != "" && o.LastGood != "":
		return directory(o.LastGood)
	}
	return nil
}

func (src *source) lastGoodKey() string {
	return path.Join(LastGood, sumOf([]byte(src.key))[:32]+".json")
}

// saveLastGood saves a good version. It is served even if that fails.
func (o *Options) saveLastGood(src *source, found content) {
	to := o.saves(src)
	if to == nil || o.ReadOnly {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	data, err := json.Marshal(lastGood{Source: src.name, Saved: time.Now().UTC(), Text: found.data})
	if err == nil {
		_, err = within(ctx, "the storage", func() (any, error) {
			return nil, errors.Join(to.Store(ctx, src.lastGoodKey(), data), o.pool.pruneLastGood(ctx, to))
		})
	}
	if err != nil {
		o.Logger.Warn("storing the last known good policy failed", zap.String("policy", src.name), zap.Error(err))
	}
}

// pruneLastGood deletes the oldest saved policies if there are too many, but none
// that is in use here.
func (p *Pool) pruneLastGood(ctx context.Context, from saves) error {
	keys, err := from.List(ctx, LastGood, false)
	if err != nil || len(keys) <= maxLastGood {
		return err
	}
	used := map[string]bool{}
	for _, d := range p.documents.All() {
		d.mu.RLock()
		for _, u := range d.all {
			used[u.src.lastGoodKey()] = true
		}
		d.mu.RUnlock()
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return used[key] })
	savedAt := map[string]time.Time{}
	for _, key := range keys {
		data, err := from.Load(ctx, key)
		if err := errors.Join(ignoreNotExist(err), ctx.Err()); err != nil {
			return err // it may be the newest one
		}
		var saved lastGood
		if json.Unmarshal(data, &saved) == nil { // else it is damaged, and the oldest
			savedAt[key] = saved.Saved
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return savedAt[a].Compare(savedAt[b]) })
	for _, key := range keys[:max(0, len(keys)-maxLastGood)] {
		if err := ignoreNotExist(from.Delete(ctx, key)); err != nil {
			return err
		}
	}
	return nil
}

// loadLastGood returns the last good version of a source, or nil. It is checked like any
// other, but for the tests of the policy, which it passed.
func (o *Options) loadLastGood(src *source) *Snapshot {
	saved, err := o.lastGood(src)
	var s *Snapshot
	if err == nil {
		s, err = compileAccepted(src.name, saved.Text)
	}
	if err != nil {
		if ignoreNotExist(err) != nil {
			o.Logger.Warn("the last good policy cannot be used", zap.String("policy", src.name), zap.Error(err))
		}
		return nil
	}
	s.Since = saved.Saved
	o.Logger.Info("starting with the last good policy", zap.String("policy", src.name),
		zap.String("sha256", s.SHA256), zap.Time("saved", saved.Saved))
	return s
}

// accepted reports whether a text is the last good version of a source.
func (o *Options) accepted(src *source, data []byte) bool {
	saved, err := o.lastGood(src)
	return err == nil && bytes.Equal(saved.Text, data)
}

// lastGood returns what saveLastGood saved.
func (o *Options) lastGood(src *source) (lastGood, error) {
	from := o.saves(src)
	if from == nil {
		return lastGood{}, fs.ErrNotExist
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	saved, err := within(ctx, "the storage", func() (lastGood, error) { return readLastGood(ctx, from, src.lastGoodKey()) })
	if err == nil && saved.Source != src.name {
		err = fmt.Errorf("it is that of %q", saved.Source)
	}
	return saved, err
}

func readLastGood(ctx context.Context, from saves, key string) (saved lastGood, err error) {
	data, err := from.Load(ctx, key)
	if err == nil {
		err = json.Unmarshal(data, &saved)
	}
	return saved, err
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
