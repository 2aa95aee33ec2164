// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSet(t *testing.T) {
	const before = "# Ours.\nversion: 1\nrules:\n  - for: everyone\n    disallow:\n      crawl: /admin/   # staff\n"
	const refused = before + "  - for: GPTBot\n    disallow:\n      crawl: /\n    enforce: block\n"
	const tested = before + "expect:\n  - GPTBot may crawl /\n"
	for name, tt := range map[string]struct {
		file  string
		args  string
		fails bool
		has   []string
		after string // the expected file; "" if the file must not change
	}{
		"shown":          {args: "GPTBot block", has: []string{"   7 +   - for: GPTBot\n", "GPTBot may no longer crawl the whole site", "To change the file, add --write"}},
		"written":        {args: "GPTBot block --write", has: []string{"Written to "}, after: refused},
		"undone":         {file: refused, args: "GPTBot allow --write", has: []string{"-   - for: GPTBot", "GPTBot may now crawl"}, after: before},
		"same":           {file: refused, args: "GPTBot block --write", has: []string{"already has this decision"}},
		"search loses":   {args: "everyone ask /news/ --write", fails: true, has: []string{"Search engines lose:", "not written, because search engines would lose", "--yes"}},
		"search, yes":    {args: "everyone ask /news/ --write --yes", after: strings.Replace(before, "/admin/", "[/admin/, /news/]", 1)},
		"a guard":        {args: "Bingbot block --write", fails: true, has: []string{"blocks-search", "nothing was written"}},
		"intended":       {args: "Bingbot block --intended --write", has: []string{"as intended"}, after: before + "  - for: Bingbot\n    disallow:\n      crawl: /\n    enforce: block\n    intended: [blocks-search]\n"},
		"on a host":      {args: "GPTBot ask / --host dev.example.com --write", after: before + "  - for: GPTBot\n    hosts: dev.example.com\n    disallow:\n      crawl: /\n"},
		"against a test": {file: tested, args: "GPTBot ask --write", fails: true, has: []string{"expectation-failed", "nothing was written"}},
		"no edit known":  {file: before + "  - {for: [category:ai-training], disallow: {crawl: /}}\n", args: "operator:OpenAI allow --write", fails: true, has: []string{`still says "disallowed" for GPTBot, in the rule on line 7`}},
		"a wrong word":   {args: "GPTBot forbid", fails: true, has: []string{"must be allow, ask, block, slow, or snippet"}},
		"no rate":        {args: "GPTBot slow 60", fails: true, has: []string{`"60" is not a valid rate`, "such as 60/m"}},
		"no path":        {args: "GPTBot ask news", fails: true, has: []string{`"news" is not a valid path`}},
		"a broken file":  {file: "version: 1\nrulez: []\n", args: "GPTBot ask", fails: true, has: []string{"rulez"}},
		"few arguments":  {args: "GPTBot", fails: true, has: []string{"expected FILE, WHO"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.file == "" {
				tt.file = before
			}
			file := filepath.Join(t.TempDir(), "site-policy.yaml")
			if err := os.WriteFile(file, []byte(tt.file), 0o640); err != nil { //nolint:gosec // the mode is what is tested
				t.Fatal(err)
			}
			out, errOut, err := execute(setCommand(), "", append([]string{file}, strings.Fields(tt.args)...)...)
			if (err != nil) != tt.fails {
				t.Errorf("error %v\n%s%s", err, out, errOut)
			}
			for _, has := range tt.has {
				if !strings.Contains(out+errOut, has) {
					t.Errorf("no %q in:\n%s%s", has, out, errOut)
				}
			}
			if tt.after == "" {
				tt.after = tt.file
			}
			got, err := os.ReadFile(file)
			if err != nil || string(got) != tt.after {
				t.Errorf("the file is\n%s\nnot\n%s (%v)", got, tt.after, err)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("mode %v, %v", info, err)
			}
		})
	}
}

func TestDecisionIn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, do, place string }{
		{"block", "block", ""},
		{"block /a/", "block", "/a/"},
		{"slow 60/m", "slow", "60/m"},
		{"slow none", "slow", "none"},
		{"snippet 160", "snippet 160", ""},
		{"snippet none", "snippet none", ""},
		{"snippet 160 /a/", "snippet 160", "/a/"},
		{"ask train-ai", "ask train-ai", ""},
		{"ask train-ai /a/", "ask train-ai", "/a/"},
		{"ask *.pdf", "ask", "*.pdf"},
	} {
		do, place, err := decisionIn(strings.Fields(tt.args))
		if string(do) != tt.do || place != tt.place || err != nil {
			t.Errorf("%s: %q %q %v", tt.args, do, place, err)
		}
	}
	if _, _, err := decisionIn([]string{"ask", "/a/", "/b/"}); err == nil {
		t.Error("two paths are accepted")
	}
}
