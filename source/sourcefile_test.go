// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// If a file is too large, only one byte more than the limit is read.
func TestAHugeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	writePolicy(t, path, "version: 1\n")
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skip(err)
	}
	found, err := newFileSource(path).read(context.Background(), nil)
	if err != nil || len(found.data) != policyfile.MaxSize+1 {
		t.Fatal(len(found.data), err)
	}
	if _, err := Compile(path, found.data); err == nil || !strings.Contains(err.Error(), "file-too-large") {
		t.Error(err)
	}
}

// A change is detected even if the clock or the file's date is wrong.
func TestFileMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	src := newFileSource(path)
	for name, date := range map[string]time.Time{
		"now": time.Now(), "of the future": time.Now().Add(24 * time.Hour), "of the epoch": time.Unix(0, 0), "old": time.Now().Add(-time.Hour),
	} {
		write := func(text string) {
			writePolicy(t, path, text)
			if err := os.Chtimes(path, date, date); err != nil {
				t.Fatal(err)
			}
		}
		write("a\n")
		found, err := src.read(context.Background(), nil)
		if err != nil {
			t.Fatal(name, err)
		}
		// The text of the file changes, but its date and size do not. The source may treat this file as unchanged if
		// the date is old, but only for a limited time. If the date is recent, it must read the file again, because the
		// clock of the file system may be coarse.
		write("b\n")
		again, err := src.read(context.Background(), found.validator)
		if believed := errors.Is(err, errUnchanged); believed != (time.Since(date) > coarseClock) || !believed && string(again.data) != "b\n" {
			t.Errorf("%s: %q %v", name, again.data, err)
		}
		mark := found.validator.(fileValidator)
		mark.read = mark.read.Add(-rereadFile)
		if again, err := src.read(context.Background(), mark); err != nil || string(again.data) != "b\n" {
			t.Errorf("%s, later: %q %v", name, again.data, err)
		}
		write("longer\n")
		if again, err := src.read(context.Background(), found.validator); err != nil || string(again.data) != "longer\n" {
			t.Errorf("%s, longer: %q %v", name, again.data, err)
		}
	}
}
