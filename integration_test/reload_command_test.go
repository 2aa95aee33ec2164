// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"errors"
	"os/exec"
	"testing"
)

// caddyExits runs Caddy's command, and returns its output and exit code. The test program works as Caddy, so that Caddy
// need not be built.
func caddyExits(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := asCaddyCommand(t.TempDir(), args...)
	cmd.Env = append(cmd.Env, "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}
