// SPDX-License-Identifier: Apache-2.0

package crawlertest

import (
	"testing"

	"github.com/temoto/robotstxt"
)

func TestTemotoException(t *testing.T) {
	for _, c := range []struct{ body, path string }{
		{"Disallow: /a*b", "/x/ab"},                           // temoto finds the pattern anywhere in the path
		{"Allow: /*.gif\nDisallow: /images", "/images/x.gif"}, // temoto counts 8 bytes instead of 6
		{"Disallow: /a***\nAllow: /*ab", "/ab"},               // temoto counts 2 bytes instead of 5
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
