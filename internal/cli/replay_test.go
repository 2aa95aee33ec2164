// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
)

// execute runs a subcommand in the same way as Caddy, and returns its output.
func execute(cmd *cobra.Command, in string, args ...string) (stdout, stderr string, err error) {
	var out, errOut bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	cmd.SetIn(strings.NewReader(in))
	cmd.SetArgs(args)
	err = cmd.Execute()
	return out.String(), errOut.String(), err
}

func TestReplay(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	policy := write("new.yaml", "version: 1\nenforcement: {mode: block}\nrules:\n  - for: CCBot\n    disallow: {crawl: [/]}\n")
	broken := write("broken.yaml", "version: 1\nrules:\n  - for: everyone\n    disalow: {crawl: [/]}\n")
	const line = `192.0.2.7 - - [22/Nov/2026:10:34:56 +0100] "GET /a?b HTTP/1.1" 200 2326 "-" "CCBot/2.0"` + "\n"
	log := write("access.log", line+line)

	out, stderr, err := execute(replayCommand(), "", policy, log)
	if err != nil || !strings.Contains(out, "blocked  2 requests  1 crawler") || stderr != "" {
		t.Errorf("%v\n%s%s", err, out, stderr)
	}
	page := filepath.Join(dir, "report.html")
	out, _, err = execute(replayCommand(), line, policy, "--json", "--html", page, "--host", "example.com", "-")
	var r replay.Report
	if err != nil || json.Unmarshal([]byte(out), &r) != nil || r.Requests != 1 || len(r.NewlyRefused) != 1 {
		t.Errorf("%v\n%s", err, out)
	}
	if b, err := os.ReadFile(page); err != nil || !bytes.Contains(b, []byte("CCBot")) {
		t.Errorf("the page: %v\n%s", err, b)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{policy}, "no requests to replay for " + policy + ": add access logs, or --database"},
		{[]string{policy, filepath.Join(dir, "none")}, "there is no access log "},
		{[]string{policy, policy}, "unknown log format: describe it with --format"},
		{[]string{policy, log, "--map", "url=path"}, "--map: invalid map url=path: before the =, write agent, host, ip, request, size, time or uri; after it, the name of a field in the log"},
		{[]string{policy, log, "--map", "uri=path", "--format", "json"}, "--map is for JSON, and --format for other logs"},
		{[]string{policy, log, "--format", "nginx"}, `invalid format "nginx": must be json, common`},
		{[]string{policy, "--against", "-", "-"}, "the standard input (-) is named twice"},
		{[]string{"-", "--against", "-", log}, "the standard input (-) is named twice"},
		{[]string{"-", "-"}, "the standard input (-) is named twice"},
		{[]string{policy, log, "--since", "yesterday"}, `invalid --since "yesterday": must be a day`},
		{[]string{broken, log}, "disalow"},
		{[]string{policy, "--against", broken, log}, "disalow"},
	} {
		if out, stderr, _ := execute(replayCommand(), "", c.args...); !strings.Contains(stderr, c.want) || out != "" {
			t.Errorf("%q prints %q and %q, want the error %q", c.args, out, stderr, c.want)
		}
	}
}

// The command replay accepts a robots.txt as the old policy, and JSON logs with --map. If a log has an incomplete line,
// the command exits with status 3.
func TestReplayOfOtherInputs(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	policy := write("new.yaml", "version: 1\nenforcement: {mode: block}\nrules:\n  - for: CCBot\n    disallow: {crawl: [/]}\n")
	robots := write("robots.txt", "User-agent: *\nDisallow: /private/\n")
	log := write("app.log", `{"when":"2026-11-22T10:34:56Z","client":{"ip":"192.0.2.7"},"path":"/private/","ua":"CCBot/2.0"}`+"\n")
	names := []string{"--map", "time=when,ip=client.ip,uri=path,agent=ua"}
	out, stderr, err := execute(replayCommand(), "", append(names, policy, "--against", robots, log)...)
	if err != nil || !strings.Contains(out, "Newly blocked:\n  crawler  requests") || !strings.Contains(out, "CCBot    1 ") {
		t.Errorf("%v\n%s%s", err, out, stderr)
	}
	out, _, err = execute(replayCommand(), "", policy, "--json", write("access.log", `192.0.2.7 - - [22/Nov/2026:10:34:56 +0100] "GET /a?b HTTP/1.1" 200 2326 "-" "CCBot/2.0"`+"\n"+`192.0.2.7 - - [22/No`+"\n"))
	var r replay.Report
	if err == nil || err.Error() != "exiting with status 3" || json.Unmarshal([]byte(out), &r) != nil || len(r.Coverage.Gaps) != 1 || r.Coverage.Gaps[0].Count != 1 {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, err = execute(replayCommand(), "", policy, write("empty.log", ""))
	if err == nil || err.Error() != "exiting with status 3" || !strings.Contains(out, "gap: the traffic has no requests") {
		t.Errorf("%v\n%s", err, out)
	}
}
