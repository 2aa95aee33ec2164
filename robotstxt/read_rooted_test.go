// SPDX-License-Identifier: Apache-2.0

package robotstxt

import "testing"

func TestRooted(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"private": "/private/", "private/": "/private/", "a/b": "/a/b/",
		"a/secret.html": "/a/secret.html", "search?q=": "/search?q=", "x*": "/x*",
	} {
		if got := rooted(value); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}
