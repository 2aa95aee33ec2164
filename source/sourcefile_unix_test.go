// SPDX-License-Identifier: Apache-2.0

//go:build unix

package source

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe or another file that is not regular is rejected. The source does not open such a file, because opening or
// reading it may never end.
func TestIrregularFiles(t *testing.T) {
	dir := t.TempDir()
	fifo, loop := filepath.Join(dir, "fifo"), filepath.Join(dir, "loop")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir: "a directory", fifo: "a pipe or device", "/dev/zero": "a pipe or device", loop: "too many levels of symbolic links",
		filepath.Join(dir, "none"): "no such file", filepath.Join(fifo, "x"): "not a directory", filepath.Join(dir, strings.Repeat("x", 300)): "file name too long",
	} {
		if _, err := newFileSource(path).read(context.Background(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	// The file was regular when stat was called, and has become a pipe since then. Opening and reading it must not
	// block.
	file, err := os.OpenFile(fifo, openRead, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := readOpen(file); err == nil || !strings.Contains(err.Error(), "a pipe") {
		t.Error(err)
	}
}
