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
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/wholefile"
)

// lastGood is the saved last good version of a policy. A server uses it if the source is not available when the server
// starts.
type lastGood struct {
	Source  string    `json:"source"`
	Saved   time.Time `json:"saved"`
	Text    []byte    `json:"text"`
	Counted counted   `json:"counted"`
	Before  string    `json:"before,omitempty"` // SHA-256 of the text served before
}

// File names of policies can change with every deployment, so there may be many saved policies that no site uses
// anymore. A saved policy is in use if a server has marked it within the time lastGoodLife. Each server marks the
// policies that it uses once a day (lastGoodUse). At most maxLastGood policies that are not in use are kept.
const (
	maxLastGood  = 64
	lastGoodUse  = 24 * time.Hour
	lastGoodLife = 30 * lastGoodUse
)

// lastGoodFile returns the file name for the last good version of a source, or "" if versions are not saved.
func (o *Options) lastGoodFile(src *source) string {
	if o.LastGood == "" || src.key == "" {
		return ""
	}
	return filepath.Join(o.LastGood, sumOf([]byte(src.key))[:32]+".json")
}

// saveLastGood gives a good version its number, and saves the version. The version is served even if it cannot be
// saved. before is the SHA-256 of the text served before, or empty if not known.
func (o *Options) saveLastGood(src *source, s *Snapshot) (before string) {
	file := o.lastGoodFile(src)
	if saved, err := o.lastGood(src); err == nil {
		before = saved.before(s.SHA256)
	}
	number := o.count(src, s, true)
	if file == "" || o.ReadOnly {
		return before
	}
	data, err := json.Marshal(lastGood{Source: src.name, Saved: time.Now().UTC(), Text: []byte(s.Text), Counted: number, Before: before})
	if err == nil {
		_, err = within(context.Background(), readTimeout, "writing", func(context.Context) (any, error) {
			return nil, errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), wholefile.Write(file, data, 0o600), o.pruneLastGood())
		})
	}
	if err != nil {
		o.Logger.Warn("storing the last known good policy failed", zap.String("policy", src.name), zap.Error(err))
	}
	return before
}

// before returns the SHA-256 of the text served before the text with the hash sum.
func (l *lastGood) before(sum string) string {
	if saved := sumOf(l.Text); saved != sum {
		return saved
	}
	return l.Before
}

// markLastGood marks the saved version of a document as in use, so that other servers keep it. The caller must hold
// d.loading.
func (d *Document) markLastGood(u *user) {
	file, now := u.lastGoodFile(u.src), time.Now()
	if file == "" || u.ReadOnly || now.Sub(d.marked) < lastGoodUse {
		return
	}
	d.marked = now
	_, _ = within(context.Background(), readTimeout, "writing", func(context.Context) (any, error) { return nil, os.Chtimes(file, now, now) })
}

// pruneLastGood deletes the oldest saved policies if there are too many. It keeps the policies that this server uses.
// It also keeps policies that a server has marked within the time lastGoodLife, because that server may still use them.
func (o *Options) pruneLastGood() error {
	entries, err := os.ReadDir(o.LastGood)
	if err != nil || len(entries) <= maxLastGood {
		return err
	}
	used := map[string]bool{}
	for _, d := range o.pool.documents.All() {
		d.mu.RLock()
		for _, u := range d.all {
			used[u.lastGoodFile(u.src)] = true
		}
		d.mu.RUnlock()
	}
	var unused []os.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && !used[filepath.Join(o.LastGood, e.Name())] {
			unused = append(unused, info)
		}
	}
	slices.SortFunc(unused, func(a, b os.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range unused[:max(0, len(unused)-maxLastGood)] {
		if time.Since(info.ModTime()) < lastGoodLife {
			break
		}
		if err := ignoreNotExist(os.Remove(filepath.Join(o.LastGood, info.Name()))); err != nil {
			return err
		}
	}
	return nil
}

// loadLastGood returns the last good version of a source, or nil if there is none. It checks the version like a new
// one, except that a failed test of the policy is only a warning (see compileAccepted).
func (o *Options) loadLastGood(src *source) (s *Snapshot, before string) {
	saved, err := o.lastGood(src)
	if err == nil {
		s, err = compileAccepted(src.name, saved.Text)
	}
	if err != nil {
		if ignoreNotExist(err) != nil {
			o.Logger.Warn("the last good policy cannot be used", zap.String("policy", src.name), zap.Error(err))
		}
		return nil, ""
	}
	s.Since = saved.Saved
	o.count(src, s, false) // false: do not read the history, because the storage may hang
	o.Logger.Info("starting with the last good policy", zap.String("policy", src.name),
		zap.String("sha256", s.SHA256), zap.Time("saved", saved.Saved))
	return s, saved.Before
}

// accepted reports whether data is the last good version of a source.
func (o *Options) accepted(src *source, data []byte) bool {
	saved, err := o.lastGood(src)
	return err == nil && bytes.Equal(saved.Text, data)
}

func (o *Options) lastGood(src *source) (lastGood, error) {
	file := o.lastGoodFile(src)
	if file == "" {
		return lastGood{}, fs.ErrNotExist
	}
	return within(context.Background(), readTimeout, "reading", func(context.Context) (saved lastGood, err error) {
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &saved)
		}
		if err == nil && saved.Source != src.name {
			err = fmt.Errorf("the file belongs to the policy %q", saved.Source)
		}
		return saved, err
	})
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
