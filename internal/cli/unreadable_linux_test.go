// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// The golden file has the messages of check about policy files that cannot be read or are too large.
func TestUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // all users may look for the files
		t.Fatal(err)
	}
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("secret.yaml", "version: 1\n", 0)
	write("large.yaml", "version: 1\n"+strings.Repeat("# a line of many\n", 100_000), 0o644)
	if err := os.Mkdir(filepath.Join(dir, "policies"), 0o755); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	for _, name := range []string{"none.yaml", "policies", "secret.yaml", "large.yaml"} {
		unprivileged(t, func() {
			out, errOut, err := runCheck(t, "", filepath.Join(dir, name))
			fmt.Fprintf(&said, "$ check %s\n%s%s%v\n", name, out, errOut, err)
		})
	}
	compareGolden(t, "testdata/unreadable.txt", bytes.ReplaceAll(said.Bytes(), []byte(dir+"/"), nil))
}

// unprivileged calls the function do as a user who may not read all files.
func unprivileged(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so the thread ends and no other goroutine runs as this user
		const nobody = 65534
		if err := syscall.Setfsuid(nobody); err != nil {
			t.Error(err)
			return
		}
		do()
	}()
	<-done
}
