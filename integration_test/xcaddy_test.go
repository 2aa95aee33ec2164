// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// TestXcaddyBuild builds Caddy in a clone of the repository, with the command in the README.
func TestXcaddyBuild(t *testing.T) {
	testkit.Nightly(t)
	t.Parallel()
	for _, program := range []string{"xcaddy", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program)
		}
	}
	var commands []string
	for _, b := range shownBlocks(t) {
		if strings.HasPrefix(b.text, "xcaddy build ") {
			commands = append(commands, b.text)
		}
	}
	if len(commands) != 2 || commands[0] != commands[1] {
		t.Fatalf("the README and the packaging page show different commands: %q", commands)
	}
	repository, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	clone := filepath.Join(t.TempDir(), "clone")
	run := func(dir, script string) string {
		t.Helper()
		cmd := exec.Command("bash", "-euc", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, script, out)
		}
		return string(out)
	}
	run(t.TempDir(), "git clone --quiet "+repository+" "+clone)
	run(clone, commands[0])
	modules := run(clone, "./caddy list-modules --skip-standard")
	for _, module := range []string{"http.handlers.robots_policy\n", "http.matchers.crawler\n", "robots_policy.options.console\n"} {
		if !strings.Contains(modules, module) {
			t.Errorf("the binary lacks %s:\n%s", module, modules)
		}
	}
}
