// SPDX-License-Identifier: Apache-2.0

// Package catalogstore stores the catalog of crawlers in Caddy's storage for all servers that share the storage. `caddy
// robots-policy crawlers update` writes the catalog. Each server installs the catalog when it loads a configuration,
// and whenever the catalog in the storage changes.
package catalogstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// The sources of a catalog.
const (
	SourceEmbedded = "embedded"
	SourceStorage  = source.StoragePrefix + source.Catalog
)

// storageTimeout limits writing to the storage.
const storageTimeout = 10 * time.Second

// InUse returns the catalog that servers with this storage use, and where the catalog comes from. The catalog is
// usually the one in the storage. If the storage has no catalog, or if the built-in catalog is newer, it is the
// built-in catalog.
func InUse(ctx context.Context, storage certmagic.Storage) (c *crawlers.Catalog, from string, err error) {
	data, err := source.NewReader(storage, source.Catalog)(ctx)
	if err == nil {
		c, err = stored(data)
	}
	return c, sourceOf(c), err
}

// Store writes data, the text of a catalog, to the storage. The caller must have checked data.
func Store(ctx context.Context, storage certmagic.Storage, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	if err := storage.Store(ctx, source.Catalog, data); err != nil {
		return fmt.Errorf("writing %s: %w", SourceStorage, err)
	}
	if got, err := storage.Load(ctx, source.Catalog); err != nil || !bytes.Equal(got, data) {
		return fmt.Errorf("the storage does not return what was written to %s: %w", SourceStorage, errors.Join(err, fs.ErrInvalid))
	}
	return nil
}
