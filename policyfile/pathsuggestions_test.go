// SPDX-License-Identifier: Apache-2.0

package policyfile

import "testing"

func TestNearPath(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"news": "/news", "news/": "/news/", `\admin\`: "/admin/", "a b": "/a%20b", "~me": "/~me",
		"^/news/": "/news/", "^news/": "/news/", ".*": "/", "^.*$": "/", `.*\.pdf$`: "/*.pdf$", `\.pdf$`: "/*.pdf$",
		".pdf": "/*.pdf", ".html$": "/*.html$", "?id=": "/*?id=", "&sort=": "/*&sort=", "$": "/$",
		`^/item/\d+/edit$`: "/item/*/edit$", `^/[a-z]+/feed`: "/*/feed", `^/search\?q=.*`: "/search?q=*",
		`^/(a|b)/`: "", `^/a/?$`: "", `C:\inetpub`: "", "/a, /b": "", "#top": "", "all": "/", "Everything": "/", "allow": "/allow", "a, b": "",
	} {
		if got := nearPath(text); got != want {
			t.Errorf("%q: suggests %q, want %q", text, got, want)
		}
	}
}
