// SPDX-License-Identifier: Apache-2.0

// Package wholefile replaces files in one step. Readers find either the old or the new content, even after a crash.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces a file. The disk needs room for both the old and the new file.
func Write(name string, data []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".writing-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // has no effect after the rename
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
