// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/rfc9309"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Google's parser skips a byte order mark in UTF-8, even if the mark is incomplete. It does not skip other bytes at the
// start. The expected results come from its C++ code.
func TestByteOrderMarks(t *testing.T) {
	for mark, skipped := range map[string]bool{
		"": true, "\xef": true, "\xef\xbb": true, "\xef\xbb\xbf": true,
		"\xbb": false, "\xbb\xbf": false, "\xbf": false, "\xef\xef": false, "\xef\xbf": false, "\xef\xbb\xbf\xef": false,
	} {
		data := []byte(mark + "User-agent: *\nDisallow: /\n")
		f := Parse(data)
		if allowed := f.Agent(policy.Crawler{Token: "Googlebot"}).Allowed("/a"); allowed == skipped {
			t.Errorf("%q before the file: Googlebot may fetch /a: %v", mark, allowed)
		}
		if a := rfc9309.Parse(data, nil).Ask(rfc9309.Crawler{Names: []string{"Googlebot"}}, "/a"); a.Allowed == skipped {
			t.Errorf("%q before the file: rfc9309 answers %v", mark, a)
		}
		for _, n := range f.Notes() {
			if strings.Contains(n.Message, "UTF-16") {
				t.Errorf("%q: %s", mark, n.Message)
			}
		}
	}
}
