// SPDX-License-Identifier: Apache-2.0

package crawlers

import "testing"

func TestNamesBrowser(t *testing.T) {
	for _, token := range []string{"Mozilla", "mozilla/5.0", "Chrome", "Safari", "Firefox", "Edg", "AppleWebKit", "Gecko/20100101", "KHTML", "compatible", "Windows NT", "Windows", "iPhone", "Android", "Linux", "Mobile", "Version", "X11", "MSIE", "Opera", "Mac OS X 10_15_*"} {
		if !NamesBrowser(token) {
			t.Errorf("%s is not recognized as the name of a browser", token)
		}
	}
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, cr := range c.All() {
		for _, p := range append(cr.Patterns(), cr.Token) {
			if NamesBrowser(p) {
				t.Errorf("%s is treated as the name of a browser", p)
			}
		}
	}
	for _, token := range []string{"", "Bot", "ChromeBot", "Mozilla-Crawler", "://"} {
		if NamesBrowser(token) {
			t.Errorf("%q is treated as the name of a browser", token)
		}
	}
}
