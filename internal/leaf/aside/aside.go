// SPDX-License-Identifier: Apache-2.0

// Package aside renames damaged files to make room for new ones. It never deletes files.
package aside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Mark comes between the old name of a damaged file and the time in its new name.
const Mark = ".damaged-"

// Put appends Mark and the time to the names of files that belong together, and returns the first new name. It skips
// files that do not exist, and never replaces an existing file.
func Put(now time.Time, names ...string) (first string, err error) {
	suffix := Mark + now.UTC().Format("20060102T150405Z")
	for _, name := range names {
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		to := name + suffix
		if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
			return first, fmt.Errorf("renaming the damaged file %s failed: %s already exists", name, to)
		}
		if err := os.Rename(name, to); err != nil {
			return first, fmt.Errorf("renaming the damaged file %s failed: %w", name, err)
		}
		if first == "" {
			first = to
		}
	}
	return first, nil
}
