// SPDX-License-Identifier: Apache-2.0

package aside

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Put never replaces a file that was put aside earlier.
func TestPut(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 11, 20, 22, 30, 0, 0, time.UTC)
	name := filepath.Join(dir, "x.db")
	for i, text := range []string{"one", "two"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		to, err := Put(now, filepath.Join(dir, "none"), name)
		if want := name + ".damaged-20261120T223000Z"; i == 0 && (err != nil || to != want) {
			t.Errorf("%q, %v, want %q", to, err, want)
		} else if i == 1 && err == nil {
			t.Error("an older file was replaced")
		}
	}
	if text, err := os.ReadFile(name + ".damaged-20261120T223000Z"); err != nil || string(text) != "one" {
		t.Errorf("%q, %v", text, err)
	}
}
