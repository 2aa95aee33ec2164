// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
)

// unnamedStorage is a storage that has one value for all keys, and no method String that describes it.
type unnamedStorage struct {
	Storage
	text string
}

func (u unnamedStorage) Load(context.Context, string) ([]byte, error) {
	if u.text == "" {
		return nil, fs.ErrNotExist
	}
	return []byte(u.text), nil
}

// unnamedMap is a storage that is a map.
type unnamedMap map[string]string

func (m unnamedMap) Load(_ context.Context, key string) ([]byte, error) { return []byte(m[key]), nil }

func (unnamedMap) Store(context.Context, string, []byte) error { return fs.ErrInvalid }

func (unnamedMap) Delete(context.Context, string) error { return fs.ErrInvalid }

func (unnamedMap) List(context.Context, string, bool) ([]string, error) { return nil, fs.ErrInvalid }

func (unnamedMap) Lock(context.Context, string) error { return fs.ErrInvalid }

func (unnamedMap) Unlock(context.Context, string) error { return fs.ErrInvalid }

// Two storages of the same type, without a description, are not treated as the same storage. Each has its own policy.
func TestStoragesOfOneTypeAreNotShared(t *testing.T) {
	const other = fakePolicy + "# other\n"
	for name, storages := range map[string][2]Storage{
		"pointers": {&unnamedStorage{text: fakePolicy}, &unnamedStorage{text: other}},
		"values":   {unnamedStorage{text: fakePolicy}, unnamedStorage{text: other}},
		"maps":     {unnamedMap{"site.yaml": fakePolicy}, unnamedMap{"site.yaml": other}},
	} {
		var pool Pool
		var stores [2]*Store
		for i, storage := range storages {
			var err error
			if stores[i], err = pool.Open(t.Context(), Options{Policy: "storage:site.yaml", Storage: storage, Reload: time.Hour}); err != nil {
				t.Fatal(name, err)
			}
			defer stores[i].Close()
		}
		for i, want := range []string{fakePolicy, other} {
			if s, err := stores[i].Get(t.Context(), "a.example"); err != nil || s.Text != want {
				t.Errorf("%s: store %d serves %q, %v", name, i, s.Text, err)
			}
		}
	}
}

// Instances of the same storage share a document. After a restart, a new instance finds the saved version.
func TestSameStorage(t *testing.T) {
	dir := t.TempDir()
	a, b := newStorageSource(&certmagic.FileStorage{Path: dir}, "x"), newStorageSource(&certmagic.FileStorage{Path: dir}, "x")
	other := newStorageSource(&certmagic.FileStorage{Path: filepath.Join(dir, "other")}, "x")
	if a.shareKey() != b.shareKey() || a.shareKey() == other.shareKey() {
		t.Errorf("%q, %q, %q", a.shareKey(), b.shareKey(), other.shareKey())
	}
	c, d := newStorageSource(&unnamedStorage{}, "x"), newStorageSource(&unnamedStorage{}, "x")
	if c.shareKey() == d.shareKey() || c.key != d.key {
		t.Errorf("%q, %q", c.key, d.key)
	}
}
