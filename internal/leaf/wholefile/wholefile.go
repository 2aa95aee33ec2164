// SPDX-License-Identifier: Apache-2.0

// Package wholefile replaces files so that a reader, or a crash, finds the old one or the new one and never a part.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces a file, in whose directory it needs room for both.
func Write(name string, data []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".writing-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it has its name
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
