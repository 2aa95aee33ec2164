// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"net/url"
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

// A target such as "x:a/b" reaches an upstream as "a/b".
func TestTargetOfOpaqueURL(t *testing.T) {
	for text, want := range map[string]string{"x:a/b?c": "/a/b?c", "x:%2Fa": "/%2Fa", "x:/a": "/a", "x://h": "/"} {
		u, err := url.ParseRequestURI(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Target(u); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
