// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// Storage stores values that several servers may share, such as Caddy's storage. If a key does not exist, its methods
// return fs.ErrNotExist. Storages that implement fmt.Stringer are treated as the same storage if their String methods
// return the same description.
type Storage interface {
	Load(ctx context.Context, key string) ([]byte, error)
	Store(ctx context.Context, key string, value []byte) error
	Delete(ctx context.Context, key string) error
	List(ctx context.Context, prefix string, recursive bool) ([]string, error)
	Lock(ctx context.Context, name string) error
	Unlock(ctx context.Context, name string) error
}

// storedPolicy is a policy in a storage. `caddy robots-policy publish` puts it there.
type storedPolicy struct {
	Storage
	key string
}

const storageInterval = 5 * time.Second

// newStorageSource returns the source for a key of a storage. Each configuration creates a new instance of its storage.
// If the String methods of two instances return the same description, the instances are treated as the same storage. An
// instance without such a method is treated as a different storage.
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

// instanceOf returns a string that identifies the instance of a storage: its memory address or, if it is not a pointer,
// its value.
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
		return content{}, fmt.Errorf("no policy is published at %s: %w", s.name(), err)
	}
	return content{data: data[:min(len(data), policyfile.MaxSize+1)]}, err
}

// NewReader returns a function that returns the value of a key, or nil if the key does not exist. The function
// gives up after some seconds, even if the storage ignores its context. At most one read runs at a time.
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

// locked calls write while it holds a lock. If ctx ends, locked does not cancel write, so that it is not interrupted
// halfway. limit is the time for acquiring the lock and for write; locked may then need some more seconds to release
// the lock. A storage that ignores its context may write the text even after locked has returned. The server then finds
// the new text when it next polls the storage.
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
	if err == nil || errors.Is(err, ErrLockStays) || errors.Is(err, ErrOvertaken) || errors.Is(err, ErrOtherDraft) {
		return err
	}
	if !held.Load() {
		what = "locking " + s.name()
	}
	return fmt.Errorf("%w: %s: %w", ErrStorage, what, err)
}

// loadBeside reads a value stored next to a policy, such as its history. If the key does not exist, it returns the zero
// value. It returns an error if the value is damaged. An empty value is also an error, unless it is a draft. loadBeside
// does not return an empty history instead of a damaged one, because the version numbers would then start at 1 again.
func loadBeside[T any](ctx context.Context, s *storedPolicy, suffix, what string) (value T, err error) {
	data, err := s.Load(ctx, s.key+suffix)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 && suffix == draftSuffix:
		return value, nil
	case err != nil:
		return value, fmt.Errorf("reading the %s of %s: %w", what, s.name(), err)
	}
	if err := json.Unmarshal(data, &value); err != nil {
		return value, fmt.Errorf("the %s of %s %w: %w", what, s.name(), errDamaged, err)
	}
	return value, nil
}

var errDamaged = errors.New("is damaged")

// storeBeside stores a value next to a policy.
func (s *storedPolicy) storeBeside(ctx context.Context, suffix string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.Store(ctx, s.key+suffix, data)
}

const (
	publishTimeout   = 30 * time.Second
	publishToTimeout = time.Minute // longer than a storage keeps the lock of a process killed while publishing
	unlockTimeout    = 5 * time.Second
)
