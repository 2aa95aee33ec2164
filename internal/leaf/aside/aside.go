// SPDX-License-Identifier: Apache-2.0

// Package aside moves damaged files out of the way. They are never deleted.
package aside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Mark is in the names of files that were put aside, before the time.
const Mark = ".damaged-"

// Put renames files that belong together to names with the time, and returns the first of the new names. A file that
// does not exist is skipped, and an older one that was put aside is never replaced.
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
