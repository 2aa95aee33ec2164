// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

func TestDiff(t *testing.T) {
	_, write := newFolder(t)
	policyText := "version: 1\nrules:\n  - for: everyone-else\n    disallow: {crawl: /admin/}\n"
	old := write("old.yaml", policyText)
	robots := write("robots.txt", "User-agent: *\nDisallow: /admin/\n")
	ai := write("ai.yaml", policyText+"  - for: GPTBot\n    disallow: {crawl: /}\n")
	search := write("search.yaml", policyText+"  - for: Bingbot\n    disallow: {crawl: /news/}\n")
	message := write("message.yaml", policyText+"enforcement: {message: no}\n")
	spelled := write("spelled.txt", "User-agent: *\nDisallow: /lost+found\n")
	imported := write("imported.yaml", string(mustImport(t, spelled)))
	broken := write("broken.yaml", "version: 1\nrulez: []\n")
	page := write("page.txt", "<!doctype html><p>hello")
	long := write("long.txt", "User-agent: "+strings.Repeat("long", 40)+"\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n")
	noLong := write("no-long.yaml", string(mustImport(t, long)))
	all := write("all.txt", "User-agent: *\nDisallow: /b\n\nUser-agent: everyone\nDisallow: /b\nDisallow: /a\n\nUser-agent: everyone-else\nDisallow: /b\n")
	allOpen := write("all-open.txt", "User-agent: *\nDisallow: /b\n\nUser-agent: everyone\nDisallow: /b\n\nUser-agent: everyone-else\nDisallow:\n")
	allNamed := write("all-named.yaml", string(mustImport(t, all)))
	signal := write("signal.txt", "User-agent: *\nContent-Signal: ai-input=no\nDisallow: /x\n\nUser-agent: GPTBot\nDisallow: /gpt\n\nUser-agent: ClaudeBot\nDisallow: /claude\n")
	signalPolicy := write("signal.yaml", string(mustImport(t, signal)))
	signalLess := write("signal-less.yaml", strings.Replace(string(mustImport(t, signal)), "version: 1\n", "version: 1\nenforcement: {message: no}\n", 1))
	both := write("both.txt", "\xff\xfe"+strings.Join(strings.Split("User-agent: *\nDisallow: /x\nContent-Signal: ai-input=no\n", ""), "\x00")+"\x00")
	bothRead := write("both.yaml", "version: 1\nrules:\n  - for: everyone-else\n    disallow: {crawl: /x, ai-use: /}\npublish: {content-signal: on, content-usage: off}\n")
	const sameWords = "remain the same"
	for name, tt := range map[string]struct {
		args  []string
		stdin string
		fails bool
		has   []string
		not   string
	}{
		"the same":                                  {args: []string{old, old}, has: []string{"Nothing changes.\n"}},
		"AI loses":                                  {args: []string{old, ai}, has: []string{"Others lose:\n  GPTBot may no longer crawl the whole site (disallowed before: /admin/)\n"}},
		"AI loses, any":                             {args: []string{"--fail-on", "any", old, ai}, fails: true, has: []string{"GPTBot"}},
		"search loses":                              {args: []string{old, search}, fails: true, has: []string{"Search engines lose:\n  Bingbot may no longer crawl /news/\n"}},
		"search loses, none":                        {args: []string{"--fail-on", "none", old, search}, has: []string{"Bingbot may no longer crawl /news/"}},
		"search gains":                              {args: []string{search, old}, has: []string{"Gained:\n  Bingbot may now crawl /news/\n"}},
		"a robots.txt":                              {args: []string{robots, search}, fails: true, has: []string{"Bingbot may no longer crawl /news/"}},
		"the standard input":                        {args: []string{robots, "-"}, stdin: "User-agent: *\nDisallow: /admin/\n", has: []string{"Nothing changes."}},
		"a setting":                                 {args: []string{old, message}, has: []string{"No decision changes; these settings do:\n  enforcement.message: none → no\n"}},
		"a setting, settings":                       {args: []string{"--fail-on", "decisions,settings", old, message}, fails: true},
		"a setting, decisions":                      {args: []string{"--fail-on", "decisions,spellings", old, message}},
		"a decision, settings":                      {args: []string{"--fail-on", "settings", old, ai}},
		"a decision, decisions":                     {args: []string{"--fail-on", "decisions", old, ai}, fails: true},
		"a file and its import":                     {args: []string{spelled, imported}, has: []string{"Apart from what the notes say, all decisions and settings remain the same, but robots.txt lists other spellings of paths.\n"}},
		"a file and its import, any":                {args: []string{"--fail-on", "any", spelled, imported}, fails: true},
		"a file and its import, others":             {args: []string{"--fail-on", "decisions,settings", spelled, imported}},
		"a group that import leaves out":            {args: []string{long, noLong}, has: []string{"Decisions about crawling change. The comparison of the policies does not find these changes. But a second, independent parser of robots.txt finds them, because it reads the robots.txt files themselves, and not policies converted from them.\n"}, not: sameWords},
		"a preference":                              {args: []string{signal, signalPolicy}, has: []string{"Preferences about AI or search change. The comparison of the policies does not find these changes. But a second,", "\n  the policy's robots.txt states ai-input=no for / and GPTBot and ClaudeBot; " + signal + " states no preference about it\n"}, not: "ai-use"},
		"a preference and a setting":                {args: []string{signal, signalLess}, has: []string{"Preferences about AI or search change. The comparison of the policies does not find these changes. But a second,", "\nSettings:\n  enforcement.message: none → no\n"}, not: "No decision changes"},
		"a file in UTF-16":                          {args: []string{both, bothRead}, fails: true, has: []string{"Decisions about crawling and preferences about AI or search change. The comparison of the policies does not find these changes", "\n  the policy's robots.txt:2 disallows /x"}, not: "both.yaml:"},
		"a file with notes, and itself":             {args: []string{long, long}, has: []string{"Nothing changes.\n"}, not: "Apart from"},
		"a group that import leaves out, decisions": {args: []string{"--fail-on", "decisions", long, noLong}, fails: true},
		"crawlers called everyone":                  {args: []string{allOpen, all}, has: []string{"\n  crawler:everyone may no longer crawl /a", "\n  crawler:everyone-else may no longer crawl /b"}},
		"crawlers called everyone, imported":        {args: []string{"--fail-on", "any", all, allNamed}, has: []string{"Apart from what the notes say, nothing changes."}},
		"one argument":                              {args: []string{old}, fails: true, has: []string{"expected OLD and NEW"}},
		"a wrong flag":                              {args: []string{"--fail-on", "loss", old, old}, fails: true, has: []string{`invalid --fail-on "loss": must be search-loss, decisions, settings, spellings, any or none`}},
		"a broken policy":                           {args: []string{old, broken}, fails: true, has: []string{"rulez"}},
		"a web page":                                {args: []string{old, page}, fails: true, has: []string{"web page"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := execute(diffCommand(), tt.stdin, tt.args...)
			if (err != nil) != tt.fails {
				t.Errorf("error %v\n%s%s", err, out, errOut)
			}
			if tt.not != "" && strings.Contains(out+errOut, tt.not) {
				t.Errorf("%q in:\n%s%s", tt.not, out, errOut)
			}
			for _, has := range tt.has {
				if !strings.Contains(out+errOut, has) {
					t.Errorf("no %q in:\n%s%s", has, out, errOut)
				}
			}
		})
	}
	t.Run("JSON", func(t *testing.T) {
		out, _, err := execute(diffCommand(), "", "--json", old, ai)
		var d compare.Diff
		if err != nil || json.Unmarshal([]byte(out), &d) != nil || len(d.Changes) != 1 || d.Changes[0].Crawlers[0] != "GPTBot" || !d.Complete {
			t.Errorf("%v %s", err, out)
		}
	})
}

func mustImport(t *testing.T, name string) []byte {
	t.Helper()
	out, errOut, err := execute(importCommand(), "", name)
	if err != nil {
		t.Fatalf("%v: %s", err, errOut)
	}
	return []byte(out)
}
