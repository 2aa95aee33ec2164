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

// The message of check about a policy file that it cannot read, or that is too large.
func TestUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // anyone may look for the files
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

// unprivileged does something as a user who may not read every file.
func unprivileged(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with its user
		const nobody = 65534
		if err := syscall.Setfsuid(nobody); err != nil {
			t.Error(err)
			return
		}
		do()
	}()
	<-done
}
