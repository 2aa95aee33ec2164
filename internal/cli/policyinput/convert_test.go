// SPDX-License-Identifier: Apache-2.0

package policyinput

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/rfc9309"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// Each case occurs in real files.
func TestConvert(t *testing.T) {
	t.Parallel()
	type ask struct {
		agent, path string
		open        bool
	}
	for _, c := range []struct {
		name, robots string
		asks         []ask
		has, notes   []string // expected in the text and in the notes
		hasNot       []string
	}{
		{
			name:   "Googlebot keeps its family, and * does not reach crawlers that ignore it",
			robots: "User-agent: *\nDisallow: /a/\n\nUser-agent: Googlebot\nDisallow: /b/\n",
			asks: []ask{
				{"Googlebot", "/a/", true},
				{"Googlebot", "/b/", false},
				{"Googlebot-Image", "/a/", true},
				{"Googlebot-Image", "/b/", false},
				{"Applebot", "/b/", false},
				{"Applebot", "/a/", true},
				{"AdsBot-Google", "/a/", true},
				{"Bingbot", "/a/", false},
				{"nobody", "/b/", true},
			},
			has: []string{"# yaml-language-server: $schema=", "- Googlebot may crawl /\n", "- Bingbot may crawl /\n", "- for: everyone-else\n", "- for: [Googlebot, Applebot",
				"  # everyone-else stands for the group of * in robots.txt.", "  # The group of Googlebot also applies to these crawlers, which have no group in this robots.txt: Applebot, ImagesiftBot and Kagibot.\n",
				"# content-usage is off, because this robots.txt has no Content-Usage lines.\n# controls is off: import"},
		},
		{
			name:   "names as Google's parser cuts them",
			robots: "User-agent: Mediapartners-Google*\nDisallow: /m/\n\nUser-agent: ltx71 - (http://ltx71.com/)\nDisallow: /l/\n\nUser-agent: * # all\nDisallow: /x/\n",
			asks:   []ask{{"Mediapartners-Google", "/m/", false}, {"ltx71", "/l/", false}, {"ltx71", "/x/", true}, {"nobody", "/x/", false}},
			notes:  []string{`"Mediapartners-Google*" is read as "Mediapartners-Google"`, `is read as "ltx71"`},
		},
		{
			name:   "mistakes that Google's parser takes",
			robots: "User agent: *\nDisallow; /x\nDisalow: /y\nDisallow /z\nAllowed: /x/open\n",
			asks:   []ask{{"nobody", "/x", false}, {"nobody", "/y", false}, {"nobody", "/z", false}, {"nobody", "/x/open", true}},
			notes:  []string{`"Disallow; /x" is read as "disallow: /x"`},
		},
		{
			name:   "paths that match nothing",
			robots: "User-agent: *\nDisallow: /a /b /c /d\nDisallow: wp-admin\nDisallow: https://other.example/\nDisallow: /e\n",
			asks:   []ask{{"nobody", "/a", true}, {"nobody", "/wp-admin", true}, {"nobody", "/", true}, {"nobody", "/e", false}},
			notes:  []string{"Write each path on its own line", `"wp-admin" does not start with /`, `"https://other.example/" is a URL`},
		},
		{
			name:   "comments stay with their lines",
			robots: "# The file of Example.\n# Do not edit.\n\n# For all\nUser-agent: *\n# the back office\nDisallow: /admin/\nDisallow: /tmp/ # temporary\n\n# No training\nUser-agent: GPTBot\nDisallow: /\n# the end\n",
			has: []string{
				"  preamble: |\n    The file of Example.\n    Do not edit.\n\n    the end\n", "  # For all\n  - for: everyone-else\n", "        # the back office\n        - /admin/\n",
				"        # temporary\n        - /tmp/\n", "  # No training\n  - for: GPTBot\n",
			},
		},
		{
			name:   "identical groups are one rule with one path per line",
			robots: "User-agent: GPTBot\nDisallow: /a/\nDisallow: /b/\n\nUser-agent: *\nDisallow: /c/\n\nUser-agent: CCBot\nDisallow: /a/\nDisallow: /b/\n",
			has:    []string{"  - for: [GPTBot, CCBot]\n    disallow:\n      crawl:\n        - /a/\n        - /b/\n"},
			hasNot: []string{"- for: CCBot"},
			asks:   []ask{{"CCBot", "/a/", false}, {"CCBot", "/c/", true}},
		},
		{
			name:   "unknown names are listed",
			robots: "User-agent: HouseOfExampleBot\nUser-agent: Gogglebot\nUser-agent: BotNumber9\nDisallow: /\n",
			has:    []string{"crawlers:\n  HouseOfExampleBot: {}\n  Gogglebot: {}\n  BotNumber9: {}\n"},
			asks:   []ask{{"HouseOfExampleBot", "/", false}, {"Gogglebot", "/", false}, {"Googlebot", "/", true}},
		},
		{
			name:   "a name that browsers have",
			robots: "User-agent: Mozilla\nDisallow: /\n",
			has:    []string{"  Mozilla:\n    robots-only: true\n"},
			asks:   []ask{{"Mozilla", "/", false}},
		},
		{
			name:   "an empty group opens everything",
			robots: "User-agent: *\nDisallow: /\n\nUser-agent: Bingbot\nDisallow:\n",
			asks:   []ask{{"Bingbot", "/x", true}, {"nobody", "/x", false}},
			has:    []string{"- Bingbot may crawl /\n", "- Googlebot may not crawl /\n", "intended: [disallows-search]"},
		},
		{
			name:   "search engines that may do what most may not are in the tests",
			robots: "User-agent: *\nDisallow: /\n\nUser-agent: DuckDuckBot\nDisallow:\n",
			asks:   []ask{{"DuckDuckBot", "/x", true}},
			has:    []string{"- DuckDuckBot may crawl /\n", "- Googlebot may not crawl /\n"},
			hasNot: []string{"Qwantbot may"},
		},
		{
			name:   "so are those that the file names, beside another one of the operator",
			robots: "User-agent: *\nDisallow: /y/\n\nUser-agent: YandexBot\nDisallow: /\n",
			asks:   []ask{{"YandexBot", "/x", false}, {"YandexImages", "/x", true}},
			has:    []string{"- YandexBot may not crawl /\n", "- Googlebot may crawl /\n"},
			hasNot: []string{"YandexImages may"},
		},
		{
			name:   "an index page and its directory",
			robots: "User-agent: *\nDisallow: /docs/\nAllow: /docs/index.html\n",
			asks:   []ask{{"nobody", "/docs/", true}, {"nobody", "/docs/index.html", true}, {"nobody", "/docs/x", false}},
		},
		{
			name:   "lengths as they are written",
			robots: "User-agent: *\nDisallow: *.pdf\nAllow: /docs*\nAllow: /long\nDisallow: /lon****\nAllow: *.b\nDisallow: /a.b\n",
			asks:   []ask{{"nobody", "/docs/x.pdf", true}, {"nobody", "/long", false}, {"nobody", "/a.b", false}},
		},
		{
			name:   "purposes (draft-illyes-rep-purpose-00)",
			robots: "User-agent: *\nDisallow: /a/\n\nUser-agent: purpose-ai-train\nUser-Agent-Purpose: AI-TRAIN\nDisallow: /\n",
			asks:   []ask{{"nobody", "/b/", true}, {"nobody", "/a/", false}},
			has:    []string{"- for: purpose:AI-TRAIN\n    disallow:\n      crawl: /\n"},
			hasNot: []string{"purpose-ai-train"},
		},
		{
			name:   "an ACAP prohibition counts rather than an Allow of the same pattern (ACAP 1.0 section 2.9.2)",
			robots: "User-agent: *\nDisallow: /a/\nAllow: /b/\n\nUser-agent: GPTBot\nAllow: /\n\nACAP-crawler: *\nACAP-disallow-crawl: /b/\n\nACAP-crawler: GPTBot\nACAP-disallow-crawl: /\n",
			asks:   []ask{{"nobody", "/b/", false}, {"nobody", "/a/", false}, {"GPTBot", "/x", false}},
		},
		{
			name:   "an ACAP permission does not open what a Disallow closes to others",
			robots: "User-agent: *\nDisallow: /a/\n\nACAP-crawler: *\nACAP-allow-crawl: /a/\n",
			asks:   []ask{{"nobody", "/a/", false}},
			notes:  []string{"disallows it for all others; in the policy, it remains disallowed"},
		},
		{
			name:   "a rule stays that says what ACAP prohibits too",
			robots: "User-agent: *\nDisallow:\n\n# the engine\nUser-agent: Googlebot\nDisallow: /a/\n\n# training\nUser-agent: GPTBot\nDisallow: /\n\nACAP-crawler: *\nACAP-disallow-crawl: /a/\n",
			asks:   []ask{{"Googlebot", "/a/", false}, {"GPTBot", "/x", false}, {"nobody", "/a/", false}},
			has:    []string{"  # the engine\n  - for: [Googlebot,", "  # training\n  - for: GPTBot\n"},
		},
		{
			name:   "a crawler that is shut out beside * stays shut out of what is allowed to *",
			robots: "User-agent: *\nAllow: /job/\nDisallow: /\n\nUser-agent: GPTBot\nDisallow: /\n",
			asks:   []ask{{"GPTBot", "/job/1", false}, {"GPTBot", "/", false}, {"nobody", "/job/1", true}, {"nobody", "/", false}},
			has:    []string{"- GPTBot may not crawl /\n"},
		},
		{
			name:   "a crawler that ignores * is shut out by its own group",
			robots: "User-agent: *\nDisallow: /\n\nUser-agent: AdsBot-Google\nDisallow: /\n",
			asks:   []ask{{"AdsBot-Google", "/", false}, {"AdsBot-Google-Mobile", "/", true}, {"nobody", "/", false}},
			has:    []string{"- AdsBot-Google may not crawl /\n"},
		},
		{
			name:   "a block that repeats that of * is a test all the same",
			robots: "User-agent: *\nDisallow: /\n\nUser-agent: CCBot\nUser-agent: HouseOfExampleBot\nDisallow: /\nAllow: /press/\n",
			asks:   []ask{{"CCBot", "/", false}, {"HouseOfExampleBot", "/press/", true}},
			has:    []string{"- CCBot may not crawl /\n", "- HouseOfExampleBot may not crawl /\n"},
		},
		{
			name:   "commas in paths",
			robots: "User-agent: *\nDisallow: /*,*\nDisallow: /a,/b\nDisallow: /c,*/d\nDisallow: ,/\nAllow: /x,/y\nDisallow: */e,/\n",
			asks: []ask{
				{"nobody", "/1,2", false}, {"nobody", "/a,/b", false}, {"nobody", "/c,z/d", false}, {"nobody", "/x,/y", true}, {"nobody", "/e,/", false}, {"nobody", "/b", true},
			},
			notes: []string{`",/" does not start with /`},
		},
		{
			name:   "ACAP-ignore-conventional-records (ACAP 1.0 section 2.9.1)",
			robots: "ACAP-ignore-conventional-records\n\nUser-agent: *\nAllow: /b/\n\nACAP-crawler: *\nACAP-disallow-crawl: /b/\n",
			asks:   []ask{{"nobody", "/b/", false}},
			notes:  []string{"ignores letter case"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Convert("robots.txt", []byte(c.robots))
			if err != nil {
				t.Fatal(err)
			}
			for _, has := range c.has {
				if !strings.Contains(string(got.Text), has) {
					t.Errorf("no %q in\n%s", has, got.Text)
				}
			}
			for _, has := range c.hasNot {
				if strings.Contains(string(got.Text), has) {
					t.Errorf("%q is in\n%s", has, got.Text)
				}
			}
			for _, a := range c.asks {
				d := got.File.Policy.Decide(policy.Query{Crawler: got.File.Policy.Crawler(a.agent), Path: a.path})
				if (d.Verdict != policy.Disallowed) != a.open {
					t.Errorf("%s of %s: %s\n%s", a.agent, a.path, d.Verdict, got.Text)
				}
			}
			for _, has := range c.notes {
				n := 0
				for _, note := range got.Notes {
					n += strings.Count(note.Message, has)
				}
				if n != 1 {
					t.Errorf("%d notes with %q among %+v", n, has, got.Notes)
				}
			}
			checkSilent(t, got.Text)
		})
	}
}

// checkSilent checks that a converted policy does not have warnings. It ignores warnings about problems of the
// robots.txt itself: a delay for a crawler that ignores delays, and search engines that only ACAP records disallow.
func checkSilent(t *testing.T, text []byte) {
	t.Helper()
	_, ds := policyfile.Load("converted.yaml", text)
	for _, d := range ds {
		acap := bytes.Contains(text, []byte("acap: full")) && slices.Contains(guards, d.Code)
		if d.Severity != policy.Hint && d.Code != "crawl-delay-ignored" && !acap {
			t.Errorf("%v\n%s", d, text)
		}
	}
}

func TestConvertRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"a web page":     {"<!doctype html><title>Not found</title>", robotstxt.ErrPage},
		"a policy":       {"version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n", errPolicy},
		"another format": {"{\"a\": 1}", robotstxt.ErrNoLines},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Convert("robots.txt", []byte(c.text))
			if got != nil || !errors.Is(err, c.want) || !errors.Is(err, ErrInvalid) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Crawlers may fetch everything if a robots.txt is empty, or only has comments. So it becomes a policy without rules.
func TestConvertEmptyFile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\ufeff", "# nothing\n\n"} {
		c := mustConvert(t, []byte(text))
		if len(c.Imported.Spec.Rules) > 0 || len(c.Notes) != 1 || !strings.HasPrefix(c.Notes[0].Message, "crawlers find no lines in this file, so they may fetch everything") {
			t.Errorf("%q: %+v", text, c.Notes)
		}
	}
}

// The policy's robots.txt can contain entries that the original file does not contain. If a note is about such an
// entry, it names the line where the group of this entry begins.
func TestNotesHavePlaces(t *testing.T) {
	c := mustConvert(t, []byte("User-agent: *\nDisallow: /admin/\n\nUser-agent-purpose: A\nDisallow: /admin/\n\nUser-agent-purpose: B\nDisallow: /x\n"))
	if len(c.Notes) != 1 || !strings.HasPrefix(c.Notes[0].Message, "robots.txt has no Allow line for \"/admin/\", because") || c.Notes[0].Line != 8 {
		t.Errorf("%+v", c.Notes)
	}
}

// A crawl-delay is converted even for a crawler that is documented to ignore it, and for the other crawlers of the same
// rule.
func TestConvertCrawlDelays(t *testing.T) {
	c := mustConvert(t, []byte("User-agent: *\nCrawl-delay: 10\nDisallow: /a/\n\nUser-agent: Googlebot\nCrawl-delay: 5\nDisallow: /b/\n\n"+
		"User-agent: Bingbot\nDisallow: /c/\n\nUser-agent: Yandex\nUser-agent: Slurp\nCrawl-delay: 2.5\nDisallow: /d/\n"))
	p := c.File.Policy
	for token, want := range map[string]float64{
		"Googlebot": 5, "Googlebot-News": 5, "Bingbot": 0, "AdsBot-Google": 0, "": 10, "Yandex": 2.5, "YandexBot": 2.5, "Slurp": 2.5,
	} {
		got := 0.0
		if r := p.CrawlDelay(policy.Query{Crawler: p.Crawler(token), Path: "/"}); r != nil {
			got = r.CrawlDelay.Seconds()
		}
		if got != want {
			t.Errorf("%s waits for %v s, want %v\n%s", token, got, want, c.Text)
		}
	}
	checkSilent(t, c.Text)
}

// ACAP records disallow more than the other lines of the file (ACAP 1.0 section 2.9.2). The policy disallows everything
// that the records disallow. But it does not mark this as intended, because the file contradicts itself.
func TestConvertContradictoryACAP(t *testing.T) {
	for _, robots := range []string{
		"User-agent: *\nAllow: /\n\nACAP-crawler: *\nACAP-disallow-crawl: /\n",
		"User-agent: *\nDisallow: /x/\n\nUser-agent: Googlebot\nDisallow:\n\nACAP-crawler: *\nACAP-disallow-crawl: /\n",
		"ACAP-crawler: *\nACAP-disallow-crawl: /\n",
	} {
		c := mustConvert(t, []byte(robots))
		if bytes.Contains(c.Text, []byte("intended")) {
			t.Errorf("says what is intended:\n%s", c.Text)
		}
		q := c.Judge()
		if q.Differ == 0 || slices.ContainsFunc(q.Differences, func(d rfc9309.Difference) bool { return d.Laxer() }) {
			t.Errorf("what becomes stricter is not reported: %+v", q.Comparison)
		}
	}
	// If both the ACAP records and the other lines disallow the site, the policy marks this as intended.
	if c := mustConvert(t, []byte("User-agent: *\nDisallow: /\n\nACAP-crawler: *\nACAP-disallow-crawl: /\n")); !bytes.Contains(c.Text, []byte("intended: [disallows-search]")) {
		t.Errorf("%s", c.Text)
	}
}

// If a robots.txt is converted to a policy, the policy has no warnings, and its decisions do not differ from the file.
// If the policy is rendered as a robots.txt, and this file is converted, the result is the same policy.
func TestConvertIsAFixedPoint(t *testing.T) {
	patterns := []string{"../../../robotstxt/testdata/import/*.txt", "../../../robotstxt/testdata/sites/*.txt"}
	if dir := os.Getenv("ROBOTSPOLICY_DATA"); dir != "" {
		patterns = append(patterns, filepath.Join(dir, "robots", "*.txt"))
	}
	var files []string
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil || len(found) == 0 {
			t.Fatalf("no files match %s (%v)", p, err)
		}
		files = append(files, found...)
	}
	converted := 0
	for i, name := range files {
		if i%testkit.Rounds(4, 1) != 0 {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			first, err := Convert(name, data)
			if errors.Is(err, ErrInvalid) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			converted++
			checkSilent(t, first.Text)
			// Convert removes statements to avoid warnings. This must not change any decision.
			im, err := importFile(data)
			if err != nil {
				t.Fatal(err)
			}
			raw, ds := policyfile.Load("imported.yaml", policyfile.Print(im.Spec))
			if ds.HasErrors() {
				t.Fatal(ds)
			}
			if changes, complete := compare.Decisions(raw.Policy, first.File.Policy, compare.Options{}); len(changes) > len(changesOf(changes, "crawl-delay")) || !complete {
				t.Errorf("converting changes: %+v\n%s", changes, first.Text)
			}
			in, err := Read(t.Context(), name, nil)
			if err != nil {
				t.Fatal(err)
			}
			if changes, complete := compare.Decisions(in.Policy, first.File.Policy, compare.Options{}); len(changes) > 0 || !complete {
				t.Errorf("the file and its policy differ: %+v\n%s", changes, first.Text)
			}
			// The server would render ACAP records only with publish: {acap: full}. Other tests check them.
			if bytes.Contains(bytes.ToLower(data), []byte("acap-")) {
				return
			}
			f, problems := robotsserve.Render(first.File.Policy, "", robotsserve.Options{})
			if slices.ContainsFunc(problems, func(p policy.Problem) bool { return p.Severity == policy.Error }) || len(f.Losses) > 0 {
				t.Logf("not rendered exactly: %v %v", problems, f.Losses)
				return
			}
			again, err := Convert(name, f.Body)
			if err != nil {
				t.Fatal(err)
			}
			if changes, _ := compare.Decisions(first.File.Policy, again.File.Policy, compare.Options{}); len(changesOf(changes, "crawl")) > 0 {
				t.Errorf("converted again: %+v\n%s\n%s", changes, f.Body, again.Text)
			}
			second, _ := robotsserve.Render(again.File.Policy, "", robotsserve.Options{})
			if third := mustConvert(t, second.Body); !bytes.Equal(stripped(third.Text), stripped(again.Text)) {
				t.Errorf("no fixed point:\n%s\n%s", again.Text, third.Text)
			}
		})
	}
	t.Logf("%d of %d files converted", converted, len(files))
}

// If several lines have the same problem, there is only one note about them, which lists the line numbers in the
// original file.
func TestConvertGroupsNotes(t *testing.T) {
	c := mustConvert(t, []byte("User-agent: *\nDisallow: *a$\nDisallow: *b$\nDisallow: /x\nAllow: /a$\nAllow: /b$\n"))
	notes := robotstxt.Grouped(c.Notes)
	if len(notes) != 1 || notes[0].Line != 5 || !strings.Contains(notes[0].Message, "(and 1 more like this, line 6)") {
		t.Errorf("%+v", notes)
	}
}

func mustConvert(t *testing.T, data []byte) *Converted {
	t.Helper()
	c, err := Convert("robots.txt", data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func changesOf(changes []compare.Change, usage string) (all []compare.Change) {
	for _, c := range changes {
		if slices.Contains(c.Usages, usage) {
			all = append(all, c)
		}
	}
	return all
}

// stripped returns a text without its comments.
func stripped(text []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("#")) {
			b.Write(line)
		}
	}
	return b.Bytes()
}
