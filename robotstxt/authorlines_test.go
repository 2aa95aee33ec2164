// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

func notesOf(t *testing.T, file string) (im *robotstxt.Imported, notes string) {
	t.Helper()
	im, err := robotstxt.Import([]byte(file), newNames(t).Crawlers())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range im.Notes {
		notes += n.Message + "\n"
	}
	return im, notes
}

// A note quotes a line as its author wrote it, so that the author finds it. Only control characters are escaped.
func TestNotesQuoteTheLinesOfTheAuthor(t *testing.T) {
	for file, want := range map[string]string{
		"User-agent: *\nDisallow: /a\nRequest-Rate: 1/5\n":    `"Request-Rate: 1/5"`,
		"Content-Signal: Search=yes\nUser-agent: *\nAllow: /": `"Content-Signal: Search=yes"`,
		"User-agent: *\nFoo: \\backslash \"x\"\n":             `"Foo: \backslash "x""`,
		"User-agent: *\nFoo: a\x1b[1m\xff\n":                  `"Foo: a\x1b[1m\xff"`,
	} {
		if _, notes := notesOf(t, file); !strings.Contains(notes, want) {
			t.Errorf("%q: %s", file, notes)
		}
	}
}

// A group has lines with the key Crawl-delay and lines with a misspelled key. Import takes the delay from Crawl-delay,
// even if the misspelled line has a longer delay, because some crawlers read only the correct key.
func TestMisspelledDelaysLose(t *testing.T) {
	for lines, want := range map[string]float64{
		"Crawldelay: 7\nCrawl-delay: 2\n":  2,
		"Crawl-delay: 2\nCrawl delay: 7\n": 2,
		"Crawl delay: 7\n":                 7,
		"Crawl-delay: 2\nCrawl-delay: 7\n": 7,
		"Crawldelay: 7\nCrawl delay: 2\n":  7,
	} {
		im, notes := notesOf(t, "User-agent: *\nDisallow: /x\n"+lines)
		if got := im.Spec.Rules[0].CrawlDelay.Seconds(); got != want || strings.Contains(notes, "Google") {
			t.Errorf("%s: %v seconds, want %v\n%s", lines, got, want, notes)
		}
	}
}

// A license in a group becomes the license of the whole site, and a note says so. If the group of "*" is the only
// group, its license is already for everyone, so there is no note.
func TestLicenseOfTheOnlyGroup(t *testing.T) {
	const license = "License: https://e.example/l.xml\n"
	for file, told := range map[string]bool{
		"User-agent: *\nDisallow: /x\n" + license:                                     false,
		"User-agent: *\nDisallow: /x\n" + license + "\nUser-agent: Bingbot\nAllow: /": true,
		"User-agent: Bingbot\nDisallow: /x\n" + license:                               true,
	} {
		if _, notes := notesOf(t, file); strings.Contains(notes, "one group of crawlers") != told {
			t.Errorf("%s: %s", file, notes)
		}
	}
}

// If a merge copies only a part of a line, the note does not say that the line is left out.
func TestMergeNotesPartsOfLines(t *testing.T) {
	for value, want := range map[string]string{
		"search=yes, ai-train=no": "only the part of",
		"search=yes":              "leaves out",
	} {
		f := robotstxt.Parse([]byte("User-agent: *\nContent-Signal: " + value + "\n"))
		notes := f.LeftOut(robotstxt.Stated{Preferences: true})
		if !slices.ContainsFunc(notes, func(n robotstxt.Note) bool { return strings.Contains(n.Message, want) }) || len(notes) != 1 {
			t.Errorf("%s: %v", value, notes)
		}
	}
}
