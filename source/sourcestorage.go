// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// Storage stores values that several servers may share, such as Caddy's storage. Errors about a key that does not
// exist are fs.ErrNotExist. A storage that is a fmt.Stringer is the same as others with that description.
type Storage interface {
	Load(ctx context.Context, key string) ([]byte, error)
	Store(ctx context.Context, key string, value []byte) error
	Delete(ctx context.Context, key string) error
	List(ctx context.Context, prefix string, recursive bool) ([]string, error)
	Lock(ctx context.Context, name string) error
	Unlock(ctx context.Context, name string) error
}

// storedPolicy is a policy in a storage, where `caddy robots-policy publish` puts it.
type storedPolicy struct {
	Storage
	key string
}

const storageInterval = 5 * time.Second

// newStorageSource returns the source of a key. A storage is identified by its description, as each configuration has
// an instance of its own for the same storage. Without one, it is not taken for any other.
func newStorageSource(storage Storage, key string) *source {
	where, instance := fmt.Sprintf("%T", storage), ""
	if n, ok := storage.(fmt.Stringer); ok {
		where = n.String()
	} else {
		instance = " of " + instanceOf(storage)
	}
	s := &storedPolicy{storage, key}
	return &source{
		name: s.name(), key: "storage " + where + " " + key, instance: instance, interval: storageInterval, minInterval: 100 * time.Millisecond,
		remote: true, read: bounded(s.read), stored: s,
	}
}

// instanceOf tells the instances of a type apart: by address, or else by value.
func instanceOf(storage Storage) string {
	if reflect.TypeOf(storage).Kind() == reflect.Pointer {
		return fmt.Sprintf("%p", storage)
	}
	return fmt.Sprintf("%#v", storage)
}

func (s *storedPolicy) name() string { return StoragePrefix + s.key }

func (s *storedPolicy) read(ctx context.Context, _ any) (content, error) {
	data, err := s.Load(ctx, s.key)
	if errors.Is(err, fs.ErrNotExist) {
		return content{}, fmt.Errorf("nothing is published at %s: %w", s.name(), err)
	}
	return content{data: data[:min(len(data), policyfile.MaxSize+1)]}, err
}

// NewReader returns a function that returns the value of a key, nil if there is none. It gives up after some seconds,
// even where the storage ignores its context; while such a read is still running, no other one begins.
func NewReader(storage Storage, key string) func(context.Context) ([]byte, error) {
	read := bounded(func(ctx context.Context, _ any) (content, error) {
		data, err := storage.Load(ctx, key)
		return content{data: data}, ignoreNotExist(err)
	})
	return func(ctx context.Context) ([]byte, error) {
		found, err := read(ctx, nil)
		if err != nil {
			return nil, fmt.Errorf("reading %s%s: %w", StoragePrefix, key, err)
		}
		return found.data, nil
	}
}

// Errors of publishing.
var (
	// errReadOnly: the source is not in a storage.
	errReadOnly = errors.New("only a policy in Caddy's storage can be published from here; write its source as storage:KEY")
	// ErrOvertaken: the storage holds another version than the one that was meant to be replaced.
	ErrOvertaken = errors.New("another version was published in the meantime")
	// ErrStorage: the storage failed while the version was read or written.
	ErrStorage = errors.New("storage error")
	// ErrLockStays: the version was published, and the lock in the storage was not released.
	ErrLockStays = errors.New("published, but the lock in Caddy's storage could not be released, and the next version may have to wait for it")
)

// PublishTo writes a text at a key of a storage, if the storage holds the version whose SHA-256 is replaces, or
// nothing if that is empty. It gives up after a minute, and then has seconds to release the lock. Its errors are
// ErrOvertaken, ErrLockStays and, for everything else, ErrStorage.
func PublishTo(ctx context.Context, storage Storage, key, replaces, text string, by Signed) error {
	return (&storedPolicy{storage, key}).publish(ctx, publishToTimeout, []string{replaces}, text, by)
}

// HistoryOf lists what was published at a key of a storage and what that replaced, newest first.
func HistoryOf(ctx context.Context, storage Storage, key string) ([]Published, error) {
	return (&storedPolicy{storage, key}).history(ctx)
}

// locked writes while nobody else does. What has begun is finished, whoever waits for it, and after the limit there is
// time to release the lock. A storage that ignores its context may write later still: then the watcher finds it there.
func (s *storedPolicy) locked(ctx context.Context, limit time.Duration, what string, write func(context.Context) error) error {
	var held atomic.Bool
	_, err := within(context.WithoutCancel(ctx), limit+2*unlockTimeout, "the storage", func(ctx context.Context) (_ any, err error) {
		lock := s.key + ".publish"
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if err := s.Lock(limited, lock); err != nil {
			return nil, err
		}
		held.Store(true)
		defer func() {
			switch unlock := s.Unlock(context.WithoutCancel(ctx), lock); {
			case unlock == nil:
			case err == nil:
				err = fmt.Errorf("%w: %w", ErrLockStays, unlock)
			default:
				err = errors.Join(err, unlock)
			}
		}()
		return nil, write(limited)
	})
	if err == nil || errors.Is(err, ErrLockStays) || errors.Is(err, ErrOvertaken) {
		return err
	}
	if !held.Load() {
		what = "locking " + s.name()
	}
	return fmt.Errorf("%w: %s: %w", ErrStorage, what, err)
}

// publish is PublishTo, for one of several versions to replace.
func (s *storedPolicy) publish(ctx context.Context, limit time.Duration, replaces []string, text string, by Signed) error {
	return s.locked(ctx, limit, "publishing", func(ctx context.Context) error { return s.replace(ctx, replaces, text, by) })
}

// replace is publish, while the lock is held.
func (s *storedPolicy) replace(ctx context.Context, replaces []string, text string, by Signed) error {
	before, err := s.Load(ctx, s.key)
	sum := ""
	switch {
	case err == nil && len(bytes.TrimSpace(before)) == 0: // as good as nothing
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
		history = following(history, Published{SHA256: sum, Time: now, Text: string(before)})
	}
	history = following(history, Published{SHA256: sumOf([]byte(text)), Time: now, Signed: by, Text: text})
	if err := s.saveHistory(ctx, history); err != nil {
		return err
	}
	if err := s.Store(ctx, s.key, []byte(text)); err != nil {
		return errors.Join(err, s.withdraw(ctx, text, history[1:]))
	}
	if got, err := s.Load(ctx, s.key); err != nil || !bytes.Equal(got, []byte(text)) {
		return fmt.Errorf("the storage does not return what was published: %w", errors.Join(err, fs.ErrInvalid))
	}
	return nil
}

// withdraw restores a history after the text that follows it could not be written, unless the text may be there after
// all. The time that the write had may be over.
func (s *storedPolicy) withdraw(ctx context.Context, text string, history []Published) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
	defer cancel()
	got, err := s.Load(ctx, s.key)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(got, []byte(text)) {
		return s.saveHistory(ctx, history)
	}
	return nil
}

// following numbers a version, and puts it before those of a history.
func following(history []Published, p Published) []Published {
	p.Number = 1
	if len(history) > 0 {
		p.Number += history[0].Number
	}
	return append([]Published{p}, history...)
}

// Signed says who published a version or saved a draft, and why. The zero value is not known.
type Signed struct {
	By       string   `json:"by,omitempty"`
	Note     string   `json:"note,omitempty"`
	Approved []string `json:"approved,omitempty"` // the names of those who approved it
}

// Published is a version that was published, and its text.
type Published struct {
	SHA256 string    `json:"sha256"`
	Number int       `json:"number"` // 1, 2, 3, …
	Time   time.Time `json:"time"`
	Signed
	Text string `json:"text"`
}

// The bounds of the history beside a policy in the storage.
const (
	historySuffix  = ".history"
	maxHistory     = 20
	maxHistorySize = 4 << 20
)

// history returns what was published and what that replaced, newest first.
func (s *storedPolicy) history(ctx context.Context) ([]Published, error) {
	return loadBeside[[]Published](ctx, s, historySuffix, "history")
}

// loadBeside reads a value that is stored beside a policy, the zero value if there is none. An empty draft is none, but
// an empty history is damaged, as the numbers of versions would begin again.
func loadBeside[T any](ctx context.Context, s *storedPolicy, suffix, what string) (value T, err error) {
	data, err := s.Load(ctx, s.key+suffix)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 && suffix == draftSuffix:
		return value, nil
	case err != nil:
		return value, fmt.Errorf("reading the %s of %s: %w", what, s.name(), err)
	}
	if err := json.Unmarshal(data, &value); err != nil {
		return value, fmt.Errorf("the %s of %s is damaged: %w", what, s.name(), err)
	}
	return value, nil
}

// storeBeside stores a value beside a policy.
func (s *storedPolicy) storeBeside(ctx context.Context, suffix string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.Store(ctx, s.key+suffix, data)
}

// saveHistory writes the newest versions of a history, as many as its bounds allow.
func (s *storedPolicy) saveHistory(ctx context.Context, all []Published) error {
	size := 0
	for i := range all {
		if size += len(all[i].Text); i > 1 && (i == maxHistory || size > maxHistorySize) {
			all = all[:i]
			break
		}
	}
	if err := s.storeBeside(ctx, historySuffix, all); err != nil {
		return fmt.Errorf("saving the previous version: %w", err)
	}
	return ctx.Err() // a storage that ignored it may have returned too late to go on
}

const (
	publishTimeout   = 30 * time.Second
	publishToTimeout = time.Minute // enough for the lock of a process that was killed while it published
	unlockTimeout    = 5 * time.Second
)

var errUnused = errors.New("no site uses this policy any more")

// stored is the policy in a storage of a running configuration, nil if it has another source.
func (d *Document) stored() *storedPolicy {
	if u, _ := d.active(); u != nil {
		return u.src.stored
	}
	return nil
}

// Writable reports whether the source of the document can be published to.
func (d *Document) Writable() bool { return d.stored() != nil }

// Publish writes a new text of the policy to the storage and serves it, if the guard allows it and the storage still
// holds the version whose SHA-256 is replaces, or one that this server has rejected. The versions that it replaces
// stay in History. The caller has checked the policy's own tests.
func (d *Document) Publish(ctx context.Context, replaces, text string, by Signed) (Outcome, error) {
	u, _ := d.active()
	if u == nil {
		return Outcome{}, errUnused
	}
	if u.src.stored == nil {
		return Outcome{}, errReadOnly
	}
	if err := d.loading.Acquire(ctx, 1); err != nil {
		return Outcome{}, err
	}
	out, err := d.publishText(ctx, u, replaces, text, by)
	if err != nil {
		return Outcome{}, err
	}
	u.report(u.src, out)
	return out, nil
}

// publishText is Publish with loading held, which it releases.
func (d *Document) publishText(ctx context.Context, u *user, replaces, text string, by Signed) (Outcome, error) {
	defer d.loading.Release(1)
	next, err := Compile(u.src.name, []byte(text))
	if err != nil {
		return Outcome{}, err
	}
	if before := d.Current(); before != nil && before.SHA256 != next.SHA256 {
		if err := u.allows(u.src, before, next); err != nil {
			return Outcome{}, err
		}
	}
	known := []string{replaces}
	if d.rejected != "" {
		known = append(known, d.rejected)
	}
	err = u.src.stored.publish(ctx, publishTimeout, known, text, by)
	if errors.Is(err, ErrLockStays) {
		u.Logger.Warn("a published policy is still locked in the storage", zap.String("policy", u.src.name), zap.Error(err))
	} else if err != nil {
		return Outcome{}, err
	}
	return d.adopt(u.Options, u.src, content{data: []byte(text)}, next, true), nil
}

// History lists what was published with Publish and what that replaced, newest first.
// Another source than a storage has none.
func (d *Document) History(ctx context.Context) ([]Published, error) {
	s := d.stored()
	if s == nil {
		return nil, nil
	}
	return within(ctx, readTimeout, "reading the history", s.history)
}
