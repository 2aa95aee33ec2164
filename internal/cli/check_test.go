// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// runCheck runs the command check, and returns its output and its error.
func runCheck(t *testing.T, stdin string, args ...string) (out, errOut string, err error) {
	t.Helper()
	return execute(checkCommand(), stdin, args...)
}

// newFolder returns a new folder and the function write. write creates a file in the folder, and returns the path of
// the file.
func newFolder(t *testing.T) (dir string, write func(name, text string) string) {
	t.Helper()
	dir = t.TempDir()
	return dir, func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

func TestCheck(t *testing.T) {
	_, write := newFolder(t)
	good := write("good.yaml", "version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\nexpect:\n  - GPTBot may not crawl /\n")
	warns := write("warns.yaml", "version: 1\nrules:\n  - for: GPTBott\n    disallow: {crawl: /}\n")
	broken := write("broken.yaml", "version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: admin}\n")
	failing := write("failing.yaml", "version: 1\nexpect:\n  - GPTBot may not crawl /\n")
	for name, tt := range map[string]struct {
		args  []string
		stdin string
		fails bool
		has   []string
	}{
		"good":             {args: []string{good}, has: []string{"good.yaml: no errors, no warnings and no hints; 1 test passed\n", "every host:\n  may crawl: ", "  may not crawl:     ai-training (1 of "}},
		"stdin":            {args: []string{"-"}, stdin: "version: 1\n", has: []string{"<stdin>: no errors", "may crawl:         everyone ("}},
		"warning":          {args: []string{warns}, has: []string{"[misspelled-crawler]", "warns.yaml: no errors, 1 warning and no hints\n"}},
		"strict":           {args: []string{"--strict", warns}, fails: true, has: []string{"[misspelled-crawler]"}},
		"strict good":      {args: []string{"--strict", good}},
		"error":            {args: []string{broken}, fails: true, has: []string{"[bad-path]", "broken.yaml: 1 error, no warnings and no hints\n"}},
		"test fails":       {args: []string{failing}, fails: true, has: []string{"[expectation-failed]"}},
		"several":          {args: []string{good, warns}, has: []string{"good.yaml: no errors", "warns.yaml: no errors"}},
		"hosts":            {args: []string{"-"}, stdin: "version: 1\nrules:\n  - for: everyone\n    hosts: staging.example\n    disallow: {index: /, crawl: /x/}\n", has: []string{"staging.example:\n  may not crawl:     /x/, for everyone\n  may not index:     everyone\n", "any other host:\n", "every host:\n  may crawl:         everyone ("}},
		"several, one bad": {args: []string{good, broken, warns}, fails: true, has: []string{"good.yaml: no errors", "broken.yaml: 1 error", "warns.yaml: no errors"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := runCheck(t, tt.stdin, tt.args...)
			if (err != nil) != tt.fails {
				t.Errorf("error %v\n%s", err, out)
			}
			for _, has := range tt.has {
				if !strings.Contains(out, has) {
					t.Errorf("no %q in:\n%s", has, out)
				}
			}
		})
	}
	t.Run("JSON", func(t *testing.T) {
		type report struct {
			Diagnostics []struct{ File, Code string }
			Policies    []struct {
				File  string
				Tests struct{ Outcome string }
				Hosts []struct {
					Hosts []string
					Crawl struct {
						Unknown bool `json:"unlisted_may"`
					}
				}
				Enforcement struct {
					Asked []int `json:"asked_by_lines"`
				}
			}
		}
		out, _, err := runCheck(t, "", "--json", good, warns, broken)
		var r report
		if jerr := json.Unmarshal([]byte(out), &r); jerr != nil || err == nil || len(r.Diagnostics) != 2 || r.Diagnostics[0].File != warns || r.Diagnostics[1].Code != "bad-path" {
			t.Fatalf("%v %v %s", err, jerr, out)
		}
		if len(r.Policies) != 2 || r.Policies[0].File != good || r.Policies[0].Tests.Outcome != "holds" || len(r.Policies[0].Hosts) != 1 ||
			!r.Policies[0].Hosts[0].Crawl.Unknown || !slices.Equal(r.Policies[0].Enforcement.Asked, []int{3}) {
			t.Errorf("%+v", r.Policies)
		}
		if out, _, err := runCheck(t, "", "--json", good); err != nil || !strings.Contains(out, `"diagnostics": []`) {
			t.Errorf("%v %s", err, out)
		}
		if out, _, err := runCheck(t, "", "--json", broken); err == nil || !strings.Contains(out, `"policies": []`) {
			t.Errorf("%v %s", err, out)
		}
	})
}
