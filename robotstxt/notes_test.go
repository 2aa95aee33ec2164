// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// If thousands of lines have the same mistake, there is only one note.
func TestGrouped(t *testing.T) {
	im, err := robotstxt.Import([]byte("User-agent: *\n"+strings.Repeat("Disallow: x\n", 413)+"Noindex: /a\nNoindex: /b\nDisallow: /c\nSitemap: s\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := robotstxt.Grouped(im.Notes)
	want := []string{"(and 412 more like this, lines 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, …)", "(and 1 more like this, line 416)", "sitemap"}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, n := range got {
		if !strings.Contains(n.Message, want[i]) {
			t.Errorf("%+v, want %q", n, want[i])
		}
	}
}

// A group of a robots.txt may be for a crawler with the name "everyone", which means all crawlers in a policy. The rule
// that Import adds for the group must apply only to the crawler with this name.
func TestNamesOfSeveralCrawlers(t *testing.T) {
	im, err := robotstxt.Import([]byte("User-agent: everyone\nDisallow: /a\n\nUser-agent: everyone-else\nDisallow: /b\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var audiences []string
	for _, r := range im.Spec.Rules {
		audiences = append(audiences, r.For[0].String())
	}
	if want := []string{"crawler:everyone", "crawler:everyone-else"}; !slices.Equal(audiences, want) || len(im.Notes) != 2 || !strings.Contains(im.Notes[1].Message, want[1]) {
		t.Errorf("%q, want %q; %+v", audiences, want, im.Notes)
	}
}

// A rule for a crawler with the name of a category looks like a rule for the category, so there is a note.
func TestNamesOfCategories(t *testing.T) {
	for name, want := range map[string]string{
		"AI-Training": `in the policy, "AI-Training" is the name of one crawler, as in this robots.txt; crawlers of the category are called category:ai-training`,
		"ai":          "category:ai",
		"searchbot":   "",
	} {
		im, err := robotstxt.Import([]byte("User-agent: "+name+"\nDisallow: /a\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := im.Spec.Rules[0].For[0].String(); got != name {
			t.Errorf("the rule for %s is for %s", name, got)
		}
		if want == "" && len(im.Notes) > 0 || want != "" && (len(im.Notes) != 1 || !strings.HasSuffix(im.Notes[0].Message, want)) {
			t.Errorf("%s: %+v", name, im.Notes)
		}
	}
}

// Crawlers ignore a group whose name is a whole User-Agent that begins with Mozilla, so there is a note. A name with a
// version does not get a note.
func TestGroupsOfFullUserAgents(t *testing.T) {
	for value, want := range map[string]string{
		"Mozilla/5.0 (compatible; bingbot/2.0)": `Google's parser reads the name Mozilla in "Mozilla/5.0 (compatible; bingbot/2.0)", and no known crawler has this name.`,
		"mozilla":                               `Google's parser reads the name Mozilla in "mozilla"`,
		"Googlebot/2.1 (+http://www.google.com/bot.html)": "",
	} {
		notes := robotstxt.Parse([]byte("User-agent: " + value + "\nDisallow: /a\n")).Notes()
		if want == "" && len(notes) > 0 || want != "" && (len(notes) != 1 || !notes[0].Wrong || !strings.HasPrefix(notes[0].Message, want)) {
			t.Errorf("%s: %+v", value, notes)
		}
	}
}
