// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
)

// Errors of Document.Publish.
var (
	// ErrReadOnly: the source is not in Caddy's storage.
	ErrReadOnly = errors.New("only a policy in Caddy's storage can be published from here; write its source as storage:KEY")
	// ErrOvertaken: the storage holds another version than the one that was meant to
	// be replaced.
	ErrOvertaken = errors.New("another version was published in the meantime")
	// ErrStorage: Caddy's storage failed while the version was read or written.
	ErrStorage = errors.New("storage error")
	// ErrLockStays: the version was published, and the lock in the storage was not
	// released.
	ErrLockStays = errors.New("published, but the lock in Caddy's storage could not be released, and the next version may have to wait for it")
)

// Published is a version that was published with a note, and its text.
type Published struct {
	SHA256 string    `json:"sha256"`
	Time   time.Time `json:"time"`
	Note   string    `json:"note,omitempty"`
	Text   string    `json:"text"`
}

// The bounds of the history beside a policy in the storage.
const (
	historySuffix  = ".history"
	maxHistory     = 20
	maxHistorySize = 4 << 20
)

// Writable reports whether the source of the document can be published to.
func (d *Document) Writable() bool {
	_, _, err := d.storage()
	return err == nil
}

// storage returns the running subscriber and its source, if that is in the storage.
func (d *Document) storage() (*subscriber, *storageSource, error) {
	r, _ := d.running()
	if r == nil {
		return nil, nil, errors.New("no site uses this policy any more")
	}
	s, ok := r.src.(*storageSource)
	if !ok {
		return nil, nil, ErrReadOnly
	}
	return r, s, nil
}

// publishTimeout bounds how long writing a version may take.
const publishTimeout = 30 * time.Second

// Publish writes a new text of the policy to the storage and serves it, if the recorder
// that guards reloads allows it and the storage still holds the version whose SHA-256 is
// replaces, or one that this server has rejected. The versions that it replaces stay in
// History. The caller has checked the policy's own tests.
func (d *Document) Publish(ctx context.Context, replaces, text, note string) (Outcome, error) {
	o, err := d.publishChecked(ctx, replaces, text, note)
	if err != nil {
		return Outcome{}, err
	}
	o.Notify() // without the semaphore, as a handler of the event may load a configuration
	return o, nil
}

func (d *Document) publishChecked(ctx context.Context, replaces, text, note string) (Outcome, error) {
	r, s, err := d.storage()
	if err != nil {
		return Outcome{}, err
	}
	if err := d.reading.Acquire(ctx, 1); err != nil {
		return Outcome{}, err
	}
	defer d.reading.Release(1)
	next, err := Compile(s.name(), []byte(text))
	if err != nil {
		return Outcome{}, err
	}
	if before := d.Status().Current; before != nil && before.SHA256 != next.SHA256 {
		if err := checkReload(s.name(), before, next); err != nil {
			return Outcome{}, err
		}
	}
	// A write that has begun is finished, whoever waits for it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
	defer cancel()
	known := []string{replaces}
	if d.rejected != "" {
		known = append(known, d.rejected)
	}
	// A storage that ignores ctx may write it later still: then the watcher finds it there.
	err = within(ctx, "publishing", func() error { return s.publish(ctx, known, text, note) })
	if err != nil && !errors.Is(err, ErrOvertaken) && !errors.Is(err, ErrLockStays) && !errors.Is(err, ErrStorage) {
		err = fmt.Errorf("%w: %w", ErrStorage, err)
	}
	switch {
	case errors.Is(err, ErrLockStays):
		r.notifier.logger.Warn("a published policy is still locked in the storage", zap.String("policy", s.name()), zap.Error(err))
	case err != nil:
		return Outcome{}, err
	}
	return d.adopt(r, content{data: []byte(text)}, next, true), nil
}

// PublishTo writes a text at a key of a storage, if the storage holds the version whose
// SHA-256 is replaces, or nothing if that is empty.
func PublishTo(ctx context.Context, storage certmagic.Storage, key, replaces, text, note string) error {
	s := &storageSource{storage: storage, at: key}
	return s.publish(ctx, []string{replaces}, text, note)
}

// publish writes a text in place of one of the versions in replaces. Its errors are
// ErrOvertaken, ErrLockStays and, for everything else, ErrStorage.
func (s *storageSource) publish(ctx context.Context, replaces []string, text, note string) (err error) {
	lock := s.at + ".publish"
	if err := s.storage.Lock(ctx, lock); err != nil {
		return fmt.Errorf("%w: locking %s: %w", ErrStorage, s.name(), err)
	}
	defer func() {
		switch unlock := s.storage.Unlock(context.WithoutCancel(ctx), lock); {
		case unlock == nil:
		case err == nil:
			err = fmt.Errorf("%w: %w", ErrLockStays, unlock)
		default:
			err = errors.Join(err, unlock)
		}
	}()
	err = s.replace(ctx, replaces, text, note)
	if err != nil && !errors.Is(err, ErrOvertaken) {
		err = fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return err
}

// replace is publish while the lock is held.
func (s *storageSource) replace(ctx context.Context, replaces []string, text, note string) error {
	before, err := s.storage.Load(ctx, s.at)
	sum := ""
	switch {
	case err == nil:
		sum = sumOf(before)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("reading %s: %w", s.name(), err)
	}
	if !slices.Contains(replaces, sum) {
		return ErrOvertaken
	}
	history, err := s.history(ctx)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	if sum != "" && (len(history) == 0 || history[0].SHA256 != sum) {
		history = append([]Published{{SHA256: sum, Time: now, Text: string(before)}}, history...)
	}
	history = append([]Published{{SHA256: sumOf([]byte(text)), Time: now, Note: note, Text: text}}, history...)
	if err := s.saveHistory(ctx, history); err != nil {
		return err
	}
	if err := s.storage.Store(ctx, s.at, []byte(text)); err != nil {
		return fmt.Errorf("publishing: %w", err)
	}
	if got, err := s.storage.Load(ctx, s.at); err != nil || !bytes.Equal(got, []byte(text)) {
		return fmt.Errorf("the storage does not return what was published: %w", errors.Join(err, fs.ErrInvalid))
	}
	return nil
}

// History lists what was published with Publish and what that replaced, newest first.
func (d *Document) History(ctx context.Context) ([]Published, error) {
	_, s, err := d.storage()
	if err != nil {
		return nil, nil //nolint:nilerr // another source has no history
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var all []Published
	err = within(ctx, "reading the history", func() (err error) {
		all, err = s.history(ctx)
		return err
	})
	if err != nil {
		return nil, err // all may still be written to
	}
	return all, nil
}

func (s *storageSource) history(ctx context.Context) ([]Published, error) {
	data, err := s.storage.Load(ctx, s.at+historySuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the history of %s: %w", s.name(), err)
	}
	var all []Published
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("the history of %s is damaged: %w", s.name(), err)
	}
	return all, nil
}

// saveHistory writes the newest versions of a history, as many as its bounds allow.
func (s *storageSource) saveHistory(ctx context.Context, all []Published) error {
	size := 0
	for i := range all {
		if size += len(all[i].Text); i > 1 && (i == maxHistory || size > maxHistorySize) {
			all = all[:i]
			break
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := s.storage.Store(ctx, s.at+historySuffix, data); err != nil {
		return fmt.Errorf("saving the previous version: %w", err)
	}
	return nil
}
