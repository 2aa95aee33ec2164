// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Some rules depend on a crawler's proven identity, but the server may be unable to obtain the proof. The command check
// reports these rules. It examines the server's configuration, or assumes the default of the directive. The reports do
// not change the exit code.
func TestCheckSaysWhatCannotBeProven(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	impostors := write("impostors.yaml", "version: 1\nenforcement: {impostors: block}\nrules: [{for: everyone, disallow: {crawl: /x/}}]\n")
	bytespider := write("bytespider.yaml", "version: 1\nrules:\n  - {for: everyone, disallow: {crawl: /x/}}\n  - {for: Bytespider, identity: verified, allow: {crawl: /x/}}\n")
	proven := write("proven.yaml", "version: 1\nrules:\n  - {for: everyone, disallow: {crawl: /x/}}\n  - {for: Bingbot, identity: verified, allow: {crawl: /x/}}\n")
	config := func(name, verify string) string {
		return write(name, `{"apps":{"http":{"servers":{"s":{"routes":[{"handle":[{"handler":"subroute","routes":[{"handle":[{"handler":"robots_policy","verify":`+verify+`}]}]}]}]}}}}}`)
	}
	off, dns := config("off.json", `["off"]`), config("dns.json", `["lists","dns"]`)
	for _, c := range []struct{ args, want string }{
		{impostors, "impostors are not detected"},
		{impostors + " --config " + off, "impostors are not detected"},
		{impostors + " --config " + dns, ""},
		{bytespider, "key to verify Bytespider, so the rule never applies to Bytespider"},
		{bytespider + " --config " + dns, "key to verify Bytespider, so the rule never applies to Bytespider"},
		{proven + " --config " + dns, ""},
		{proven + " --config " + off, `with "verify off", crawlers are not verified, so the rule never applies`},
	} {
		out, stderr, err := execute(checkCommand(), "", strings.Fields(c.args)...)
		if err != nil || c.want == "" && strings.Contains(out, "that the server does not make (settings: ") || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v %s\n%s", c.args, err, stderr, out)
		}
	}
	none := write("none.json", "{}")
	if _, stderr, _ := execute(checkCommand(), "", impostors, "--config", none); !strings.Contains(stderr, "has the directive robots_policy") {
		t.Error(stderr)
	}
}
