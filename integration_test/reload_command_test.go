// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"errors"
	"os/exec"
	"testing"
)

// caddyExits runs Caddy's command, and returns its output and exit code. The test program works as Caddy, so that Caddy
// need not be built.
func caddyExits(t *testing.T, args ...string) (string, int) {
	t.Helper()
	return caddyStarts(t, args...)()
}

// caddyStarts starts a command of Caddy. The returned function waits until the command ends, and returns its output and
// exit code.
func caddyStarts(t *testing.T, args ...string) (wait func() (string, int)) {
	t.Helper()
	cmd := asCaddyCommand(t.TempDir(), args...)
	var out bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(cmd.Env, "NO_COLOR=1"), &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return func() (string, int) {
		t.Helper()
		err := cmd.Wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return out.String(), exit.ExitCode()
		}
		if err != nil {
			t.Fatal(err)
		}
		return out.String(), 0
	}
}
