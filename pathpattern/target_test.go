// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"net/url"
	"slices"
	"testing"
)

func TestTarget(t *testing.T) {
	for _, target := range []string{"/", "/a%2Fb", "/%2F\u00e9", "/a b?c d", "/a?", "/?x=%zz", "//a//b", "/a;b=c", "/%61", `/"<>\^{}|`} {
		u, err := url.Parse("http://www.example.com" + target)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := NormalizePath(Target(u)), NormalizePath(target); got != want {
			t.Errorf("%q: %q, which is %q and not %q", target, Target(u), got, want)
		}
	}
	for want, u := range map[string]*url.URL{"/": {}, "/?": {ForceQuery: true}, "/b": {Path: "/b", RawPath: "/a"}} {
		if got := Target(u); got != want {
			t.Errorf("%+v: %q, want %q", u, got, want)
		}
	}
}

// For a target in absolute form, a server uses only the path and the query.
func TestTargetInAbsoluteForm(t *testing.T) {
	for text, want := range map[string][]string{
		"x:/a":         {"/a"},
		"x://h":        {"/"},
		"x://h?%2f":    {"/?/"},
		"x://h/a:b/..": {"/a:b/..", "/"},
		"x:////h/a":    {"//h/a", "/h/a", "/a"},
		"*":            {"/%2A"},
	} {
		u, err := url.ParseRequestURI(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := Readings(nil, Target(u)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
