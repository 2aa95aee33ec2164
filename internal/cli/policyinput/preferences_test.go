// SPDX-License-Identifier: Apache-2.0

package policyinput

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// A crawler that has its own group does not read the preferences in the group of "*". But a policy cannot state a
// preference for all crawlers except this one. So after an import, the preferences also apply to this crawler, and the
// notes and the comparison name it. If the file is merged and not imported, the preferences stay as they are.
func TestPreferencesOfTheGroupForAll(t *testing.T) {
	t.Parallel()
	const star = "User-agent: *\nContent-Signal: ai-train=no, search=yes\nDisallow: /a/\n\n"
	named := "User-agent: GPTBot\nDisallow: /b/\n\nUser-agent: Bingbot\nUser-agent: Slurp\nDisallow: /c/\n\nUser-agent: Googlebot\nContent-Signal: search=yes\nDisallow: /d/\n"
	for name, c := range map[string]struct {
		file string
		want []string // the line, the preference and the crawlers of each note
		lost bool     // search engines lose a usage
		both bool     // a merge causes the same differences as an import
	}{
		"groups without preferences": {star + named, []string{"2: ai-train=no Googlebot GPTBot Bingbot Slurp", "2: search=yes GPTBot Bingbot Slurp"}, false, false},
		"the same preference":        {star + "User-agent: GPTBot\nContent-Signal: search=yes, ai-train=no\nDisallow: /b/\n", nil, false, false},
		"the other vocabulary":       {star + "User-agent: GPTBot\nContent-Usage: search=y, train-ai=n\nDisallow: /b/\n", nil, false, false},
		"a stricter preference":      {star + "User-agent: GPTBot\nContent-Signal: search=no, ai-train=no\nDisallow: /b/\n", nil, false, false},
		"search engines":             {"User-agent: *\nContent-Signal: search=no\n\nUser-agent: Bingbot\nDisallow: /c/\n", []string{"2: search=no Bingbot"}, true, false},
		"a path in a Content-Signal": {"User-agent: *\nContent-Signal: /x/ ai-train=no\nDisallow: /a/\n", []string{"2: ai-train=no crawlers"}, false, true},
		"paths that do not meet":     {"User-agent: *\nContent-Usage: /x/ train-ai=n\nContent-Usage: /y/ search=n\n", nil, false, false},
		"a shorter path":             {"User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: /y/ search=y\n", []string{"2: train-ai=n crawlers"}, false, false},
		"above the first group":      {"Content-Signal: ai-train=no\n\n" + named, nil, false, false},
		"use, of one group":          {"User-agent: *\nContent-Signal: search=yes, use=full\n\nUser-agent: Bingbot\nContent-Signal: search=yes\n", []string{"2: use=full Bingbot"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			c1 := mustConvert(t, []byte(c.file))
			q := c1.Judge()
			if len(c.want) == 0 && q.Differ > 0 || len(c.want) > 0 && len(q.Differences) != len(c.want) {
				t.Errorf("%s, want %d differences: %+v\n%s", q.Sentence(), len(c.want), q.Differences, c1.Text)
			}
			if lost := len(q.SearchLosses()) > 0; lost != c.lost {
				t.Errorf("search engines lose a usage: %t", lost)
			}
			for _, want := range c.want {
				words := strings.Fields(want)
				if !slices.ContainsFunc(c1.Notes, func(n robotstxt.Note) bool {
					return fmt.Sprintf("%d:", n.Line) == words[0] && !slices.ContainsFunc(words[1:], func(word string) bool { return !strings.Contains(n.Message, word) })
				}) {
					t.Errorf("no note has %q: %+v", want, c1.Notes)
				}
			}
			catalog := policy.Compile(&policy.Spec{Crawlers: policyfile.CatalogCrawlers()})
			merged, _, _ := robotsserve.Merge(catalog, "", robotstxt.Parse([]byte(c.file)), robotsserve.Options{})
			old := &Input{Name: "robots.txt", Policy: catalog, Robots: []byte(c.file)}
			differ := 0
			if c.both {
				differ = len(c.want)
			}
			if q := AskBoth(old, &Input{Name: "merged", Policy: catalog, Robots: merged.Body}, ""); len(q.Differences) != differ {
				t.Errorf("merge: %s: %+v\n%s", q.Sentence(), q.Differences, merged.Body)
			}
		})
	}
}

// A Content-Signal line has no path by its definition. If the imported file has such a line with a path nevertheless,
// the new robots.txt disallows for the whole site what the line disallows. It does not state what the line allows.
func TestImportedSignalsOfPaths(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]string{
		"/a/ ai-train=no":                           "ai-train=no",
		"/a/ ai-train=no, search=yes":               "ai-train=no",
		"/a/ search=yes":                            "",
		"ai-train=yes, search=yes; /a/ ai-train=no": "search=yes, ai-train=no",
		"/a/ ai-train=no; ai-train=yes":             "ai-train=no",
	} {
		file := "User-agent: *\nDisallow: /b/\nContent-Signal: " + strings.ReplaceAll(lines, "; ", "\nContent-Signal: ") + "\n"
		c := mustConvert(t, []byte(file))
		text, _ := c.File.Effect.Robots.Text("")
		var got []string
		for line := range strings.Lines(text) {
			if value, ok := strings.CutPrefix(strings.TrimSpace(line), "Content-Signal: "); ok {
				got = append(got, value)
			}
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%q: %q, want %q", lines, got, want)
		}
		if !slices.ContainsFunc(c.Notes, func(n robotstxt.Note) bool {
			return strings.Contains(n.Message, "a Content-Signal line cannot have a path")
		}) {
			t.Errorf("%q: no note says that such a line has no path: %v", lines, c.Notes)
		}
	}
}

// The sentence about the comparison counts preferences separately from paths.
func TestSentenceNamesWhatWasCompared(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"User-agent: *\nDisallow: /a/\n":                            ` answers to "may this crawler fetch this path\?" compared, 0 differ$`,
		"User-agent: *\nDisallow: /a/\nContent-Usage: train-ai=n\n": ` answers to "may this crawler fetch this path\?" and \d+ preferences about AI or search compared, 0 differ$`,
		"User-agent: *\nDisallow: /%7Ejoe/\n":                       ` answers to "may this crawler fetch this path\?" compared, \d+ differ, but only because some crawlers treat two spellings of a URL, such as /a:b and /a%3Ab, as different paths$`,
	} {
		if got := mustConvert(t, []byte(file)).Judge().Sentence(); !regexp.MustCompile(`^[0-9,]+` + want).MatchString(got) {
			t.Errorf("%q: %s", file, got)
		}
	}
}
