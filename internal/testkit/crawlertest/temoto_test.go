// SPDX-License-Identifier: Apache-2.0

package crawlertest

import (
	"testing"

	"github.com/temoto/robotstxt"
)

func TestTemotoException(t *testing.T) {
	for _, c := range []struct{ body, path string }{
		{"Disallow: /a*b", "/x/ab"},                           // anywhere
		{"Allow: /*.gif\nDisallow: /images", "/images/x.gif"}, // 8 bytes to it, not 6
		{"Disallow: /a***\nAllow: /*ab", "/ab"},               // 2 bytes to it, not 5
	} {
		data, err := robotstxt.FromString("User-agent: *\n" + c.body + "\n")
		if err != nil {
			t.Fatal(err)
		}
		f := ReadRobotsTxt("User-agent: *\n" + c.body + "\n")
		if got := data.TestAgent(c.path, "x"); got == f.Allowed("x", c.path) || TemotoException(f, "x", c.path, got) == "" {
			t.Errorf("%q of %q: temoto says %v, as RFC 9309 does or for another reason", c.path, c.body, got)
		}
	}
}
