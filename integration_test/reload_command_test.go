// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

// caddyCommand is the command of this module; it is not to be had in short
// tests, as it takes a while to build.
func caddyCommand(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a whole Caddy")
	}
	return build(t)
}

// caddyExits runs the command and returns what it printed, and its exit code.
func caddyExits(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(caddyCommand(t), args...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}
