// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

const commandPolicy = `version: 1
rules:
  - for: GPTBot
    disallow:
      crawl: /
  - for: everyone
    hosts: staging.example.com
    disallow:
      crawl: /secret/
`

// runCommand runs `caddy robots-policy` with arguments, and with additional environment variables. It runs in a folder
// that contains the policy files good.yaml and bad.yaml, and a robots.txt.
func runCommand(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good.yaml":  commandPolicy,
		"bad.yaml":   "version: 1\nrules:\n  - for: GPTBot\n    dissallow: {crawl: /}\n",
		"robots.txt": "User-agent: *\nDisallow: /tmp/\n",
		"other.txt":  "Disallow: /y\nUser-agent: *\nDisallow: /x/\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := asCaddyCommand(dir, append([]string{"robots-policy"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, env...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

// TestCommands runs commands in separate processes, and checks their exit codes and output. Without ROBOTSPOLICY_LONG,
// it runs only every third command.
func TestCommands(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		args           string
		code           int
		stdout, stderr string // texts that the stream must contain; if there are none, the stream must be empty
	}{
		{"--help", 0, "explain", ""},
		{"check --help", 0, "--json", ""},
		{"", 2, "", "explain"},
		{"bogus", 2, "", `unknown command "bogus"`},
		{"chekc good.yaml", 2, "", `did you mean "check"?`},
		{"chekc --json", 2, "", "unknown flag"},

		{"check good.yaml", 0, "good.yaml", ""},
		{"check bad.yaml", 1, "[unknown-key]", ""},
		{"check absent.yaml", 2, "", "absent.yaml"},
		{"check", 2, "", "expected at least one FILE"},
		{"check --bogus good.yaml", 2, "", "unknown flag"},
		{"check --json bad.yaml", 1, `"code": "unknown-key"`, ""},

		{"render good.yaml", 0, "User-agent: GPTBot\nDisallow: /\n", ""},
		{"render --host STAGING.example.com:443 good.yaml", 0, "Disallow: /secret/", ""},
		{"render --host other.example.com good.yaml", 0, "User-agent: GPTBot", ""},
		{"render --host https://x/y good.yaml", 2, "", "--host"},
		{"render --host *.example.com good.yaml", 2, "", "must be one host"},
		{"render --host= good.yaml", 2, "", "--host"},
		{"render bad.yaml", 1, "", "[unknown-key]"},
		{"render good.yaml --merge robots.txt", 0, "# from the robots.txt of the site\nDisallow: /tmp/\n", ""},
		{"render good.yaml --merge other.txt", 0, "# from the robots.txt of the site\nDisallow: /x/\n", `other.txt:1: "Disallow: /y" comes before`},
		{"render good.yaml --merge absent.txt", 2, "", "absent.txt"},
		{"render good.yaml bad.yaml", 2, "", "expected FILE"},

		{"explain good.yaml --agent GPTBot https://x.example/", 0, "It may not crawl", ""},
		{"explain good.yaml --agent Bingbot https://x.example/", 0, "It may crawl", ""},
		{"explain bad.yaml --agent GPTBot https://x.example/", 1, "", "[unknown-key]"},
		{"explain good.yaml https://x.example/", 2, "", "--agent"},
		{"explain good.yaml --agent GPTBot x.example/", 2, "", "invalid URL"},
		{"explain good.yaml --agent GPTBot", 2, "", "expected FILE --agent"},

		{"import robots.txt", 0, "documented to ignore the group of *", ""},
		{"import absent.txt", 2, "", "absent.txt"},
		{"import", 2, "", "expected ROBOTS.TXT"},
		{"schema", 0, `"$schema"`, ""},
		{"schema good.yaml", 2, "", "no arguments"},
	} {
		if i%3 != 0 && !testkit.Long() {
			continue
		}
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := runCommand(t, nil, strings.Fields(c.args)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, s := range []struct{ name, got, want string }{{"stdout", stdout, c.stdout}, {"stderr", stderr, c.stderr}} {
				if s.want == "" && s.got != "" || !strings.Contains(s.got, s.want) {
					t.Errorf("%s is\n%s\nwant %q", s.name, s.got, s.want)
				}
			}
		})
	}
}

// Output that does not go to a terminal has no colors, with and without NO_COLOR.
func TestCommandsWithoutColor(t *testing.T) {
	t.Parallel()
	for _, env := range []string{"NO_COLOR=1", "NO_COLOR="} {
		_, stdout, stderr := runCommand(t, []string{env, "TERM=xterm-256color"}, "check", "bad.yaml")
		if strings.Contains(stdout+stderr, "\x1b") {
			t.Errorf("%s: colors: %q%q", env, stdout, stderr)
		}
	}
}

// cleanPolicy returns a policy file without errors, warnings or hints.
func cleanPolicy(t *testing.T) string {
	t.Helper()
	clean := filepath.Join(t.TempDir(), "clean.yaml")
	if err := os.WriteFile(clean, []byte("version: 1\nrules:\n  - for: GPTBot\n    disallow:\n      crawl: /a/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return clean
}

// The JSON output has empty lists instead of null, so that programs need not handle both.
func TestCommandsJSON(t *testing.T) {
	t.Parallel()
	clean := cleanPolicy(t)
	code, stdout, _ := runCommand(t, nil, "check", "--json", clean)
	if code != 0 || !strings.Contains(stdout, `"diagnostics": []`) {
		t.Errorf("check --json of a clean file: %d, %s", code, stdout)
	}
}
