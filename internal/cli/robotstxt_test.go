// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const robotsFile = "User-agent: *\nDisallow: /admin/\nDisallow: http://example.com/x\n\nUser-agent: GPTBot\nCrawl-delay: 2\nDisallow: /\nAllow: /open/\n"

// The commands explain and check accept a robots.txt, or the address of a site, instead of a policy file.
func TestRobotsTxtInPlaceOfAPolicy(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "robots.txt")
	if err := os.WriteFile(file, []byte(robotsFile), 0o600); err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(robotsFile))
	}))
	t.Cleanup(site.Close)
	for _, name := range []string{file, site.URL} {
		for agent, want := range map[string]string{
			"GPTBot/1.3":                             "GPTBot/1.3 may not fetch https://www.example.com/x.\n  because %:7, in the group of GPTBot, is \"Disallow: /\"\nThe file asks this crawler to wait 2 seconds",
			"Mozilla/5.0 (compatible; GPTBot/1.3)":   "Mozilla/5.0 (compatible; GPTBot/1.3) may not fetch https://www.example.com/x.\n  because %:7, in the group of GPTBot,",
			"AdsBot-Google (+http://www.google.com)": "AdsBot-Google (+http://www.google.com) may fetch https://www.example.com/x.\n  because % has no group for this crawler\n",
			"OtherBot":                               "OtherBot may fetch https://www.example.com/x.\n  because no line in the group of * matches this URL\n",
		} {
			out, _, err := execute(explainCommand(), "", name, "--agent", agent, "https://www.example.com/x")
			at := name
			if name == site.URL {
				at += "/robots.txt"
			}
			if want = strings.ReplaceAll(want, "%", at); err != nil || !strings.HasPrefix(out, want) {
				t.Errorf("%v: %s\nwant %s", err, out, want)
			}
		}
		out, _, err := runCheck(t, "", name)
		for _, want := range []string{":3: warning: \"http://example.com/x\" is a URL instead of a path such as /x/", "is a robots.txt with 3 Allow or Disallow lines for * and GPTBot; 1 warning and no notes"} {
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("%v: no %q in\n%s", err, want, out)
			}
		}
		if _, _, err := runCheck(t, "", "--strict", name); err == nil {
			t.Errorf("%s: a line that does nothing passes --strict", name)
		}
	}
}

// A policy treats two spellings of a path as one path, but a robots.txt does not. If robots.txt decides differently
// about the other spelling, the command explain mentions this.
func TestExplainMentionsOtherSpellings(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "robots.txt")
	if err := os.WriteFile(file, []byte("User-agent: *\nDisallow: /wiki/Talk:\nDisallow: /a%3Ab\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/wiki/Talk%3AX": "may fetch https://www.example.com/wiki/Talk%3AX.\n  because no line in the group of * matches this URL\n  but line 2 disallows /wiki/Talk:X, which is the same path in another spelling; a policy file made from this robots.txt disallows both spellings\n",
		"/a%3Ab":         "may not fetch https://www.example.com/a%3Ab.\n  because " + file + ":3, in the group of *, is \"Disallow: /a%3Ab\"\n  but the crawler may fetch /a:b, which is the same path in another spelling; a policy file made from this robots.txt disallows both spellings\n",
	} {
		out, _, err := execute(explainCommand(), "", file, "--agent", "GPTBot", "https://www.example.com"+path)
		if err != nil || out != "GPTBot "+want {
			t.Errorf("%v: %s\nwant %s", err, out, want)
		}
	}
}

// For a robots.txt, the command check prints the same notes as the command import.
func TestCheckPrintsTheNotesOfImport(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"User-agent: Google Bot\nDisallow: /gb\n",
		"User-agent: *\nDisallow: /wiki/Talk:\nDisalow: /x\nFoo: bar\n",
		"User-agent: *\nContent-Signal: ai-train=no\n\nUser-agent: Bingbot\nDisallow: /b\n",
		"# only a comment\n",
	} {
		file := filepath.Join(t.TempDir(), "robots.txt")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		checked, _, err := runCheck(t, "", file)
		_, imported, err2 := execute(importCommand(), "", file)
		notes := imported[:strings.Index(imported, ` answers to "may`)+1]
		notes = notes[:strings.LastIndex(notes, "\n")+1]
		if err != nil || err2 != nil || notes == "" || !strings.HasPrefix(checked, notes) {
			t.Errorf("%v, %v: check prints\n%s\nimport prints\n%s", err, err2, checked, imported)
		}
	}
}

// Crawlers cannot find lines in a web page, in another format, or in a file in UTF-16. The commands explain and check
// report this and fail.
func TestRobotsTxtThatCrawlersCannotRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"<!doctype html>\n<p>User-agent: *\n":    "this is a web page, not a robots.txt",
		"{\"error\": 1}\n":                       "this is not a robots.txt, because crawlers cannot read any of its lines",
		"\xff\xfeD\x00i\x00s\x00a\x00l\x00:\x00": "crawlers cannot read this file, because it is in UTF-16, so they may fetch everything; save it as UTF-8",
	} {
		file := filepath.Join(t.TempDir(), "robots.txt")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errOut, err := execute(explainCommand(), "", file, "--agent", "Googlebot", "https://www.example.com/x")
		if err == nil || out != "" || !strings.Contains(errOut, file+": "+want) {
			t.Errorf("explain: %v %s%s", err, out, errOut)
		}
		out, _, err = runCheck(t, "", file)
		if err == nil || !strings.HasPrefix(out, file+":1: "+want) || !strings.Contains(out, file+": 1 error\n") {
			t.Errorf("check: %v %s", err, out)
		}
	}
}
