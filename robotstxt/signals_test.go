// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// By its definition, a Content-Signal line has no path. If a line has one anyway and disallows a usage, merge and import
// disallow this usage for the whole site, and add a note.
func TestContentSignalsWithPaths(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]string{
		"Content-Signal: /a/ ai-train=no":                                             "ai-train=no",
		"Content-Signal: /a/ ai-train=no, search=yes":                                 "ai-train=no",
		"Content-Signal: /a/ search=yes":                                              "",
		"Content-Signal: ai-train=yes, search=yes\nContent-Signal: /a/ Ai-Train = No": "ai-train=no, search=yes",
		"Content-Signal: /a/ ai-train=no\nContent-Signal: ai-train=yes":               "ai-train=no",
		"Content-Signal: / ai-train=no":                                               "/ ai-train=no",
	} {
		text := "User-agent: *\nDisallow: /b/\n" + lines + "\n"
		b := Parse([]byte(text)).Below(policy.Compile(&policy.Spec{}))
		var got []string
		for _, l := range b.File.Group("*").Extensions(Stated{}) {
			got = append(got, strings.TrimPrefix(l.Text, "Content-Signal: "))
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%q: %q, want %q", lines, got, want)
		}
		im, err := Import([]byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		about := func(n Note) bool { return strings.Contains(n.Message, "a Content-Signal line cannot have a path") }
		if pathed := strings.Contains(lines, "/a/"); slices.ContainsFunc(b.Notes(), about) != pathed || slices.ContainsFunc(im.Notes, about) != pathed {
			t.Errorf("%q: notes %v of merge, %v of import", lines, b.Notes(), im.Notes)
		}
	}
}
