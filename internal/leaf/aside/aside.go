// SPDX-License-Identifier: Apache-2.0

// Package aside renames damaged files, so that new ones can take their places. It never deletes them.
package aside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Mark is the part of the new name of a damaged file before the time.
const Mark = ".damaged-"

// Put adds the time to the names of files that belong together, and returns the first of the new names. It skips
// files that do not exist, and never replaces an existing file.
func Put(now time.Time, names ...string) (first string, err error) {
	suffix := Mark + now.UTC().Format("20060102T150405Z")
	for _, name := range names {
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		to := name + suffix
		if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
			return first, fmt.Errorf("putting the damaged %s aside: %s exists", name, to)
		}
		if err := os.Rename(name, to); err != nil {
			return first, fmt.Errorf("putting the damaged %s aside: %w", name, err)
		}
		if first == "" {
			first = to
		}
	}
	return first, nil
}
