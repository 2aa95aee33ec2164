// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// A file with thousands of lines of one mistake is not reported in thousands of lines.
func TestGrouped(t *testing.T) {
	im, err := robotstxt.Import([]byte("User-agent: *\n"+strings.Repeat("Disallow: x\n", 413)+"Noindex: /a\nNoindex: /b\nDisallow: /c\nSitemap: s\n"), robotstxt.ImportOptions{})
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

// The note about a name that means several crawlers in a policy says so.
func TestNamesOfSeveralCrawlers(t *testing.T) {
	im, err := robotstxt.Import([]byte("User-agent: everyone\nDisallow: /a\n\nUser-agent: Strange/Bot~\nDisallow: /b\n"), robotstxt.ImportOptions{Name: newNames(t).Check})
	if err != nil {
		t.Fatal(err)
	}
	if len(im.Notes) == 0 || im.Notes[0].Message != `"everyone" cannot be the name of a crawler in a policy, where it means several crawlers; its group is left out` {
		t.Errorf("%+v", im.Notes)
	}
}
