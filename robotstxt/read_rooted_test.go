// SPDX-License-Identifier: Apache-2.0

package robotstxt

import "testing"

func TestRooted(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"private": "/private/ folder", "private/": "/private/ folder", "a/b": "/a/b/ folder",
		"a/secret.html": "/a/secret.html file", "search?q=": "/search?q= file", "x*": "/x* file",
	} {
		if got := rooted(value) + " " + fileOrFolder(value); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}
