// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"os"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// TestImportedGroupsHaveTheirLines renders imported groups. No group gets lines from the group of "*", no Allow line is
// left out, and no line is added.
func TestImportedGroupsHaveTheirLines(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]struct{ group, lines string }{
		"search-loss-minimal": {"User-agent: GoogleBot\n", "Allow: /inet|Allow: /auto|Allow: /foreign|Allow: /1|Allow: /2|Allow: /3|Allow: /4|Allow: /5|Allow: /6|Allow: /7|Allow: /8|Allow: /9|" +
			"Allow: /structure|Allow: /help|Allow: /sitemap|Disallow: /*?*oid_|Disallow: /"},
		"inherit-redundant": {"User-agent: Googlebot\n", "Allow: /help|Allow: /sitemap|Disallow: /"},
		"explosion-minimal": {"User-agent: *\n", "Allow: /core/*.css$|Allow: /core/*.js?|Disallow: /core/|Disallow: /*/media/oembed|Disallow: /*?[args]|Disallow: /*?%5Bargs%5D|Disallow: /*?%5bargs%5d"},
	} {
		data, err := os.ReadFile("testdata/imported/" + file + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		im, err := robotstxt.Import(data, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := render(t, compile(t, im.Spec), "")
		_, group, _ := strings.Cut(string(f.Body), want.group)
		group, _, _ = strings.Cut(group, "\n\n")
		for line := range strings.SplitSeq(want.lines, "|") {
			if !strings.Contains("\n"+group+"\n", "\n"+line+"\n") {
				t.Errorf("%s: %q is missing", file, line)
			}
		}
		if n := strings.Count(want.lines, "|"); strings.Count(strings.TrimSpace(group), "\n") != n {
			t.Errorf("%s: more than %d lines\n%s", file, n+1, group)
		}
		for _, l := range f.Losses {
			if !l.spelling {
				t.Errorf("%s: loss %+v", file, l)
			}
		}
	}
}
