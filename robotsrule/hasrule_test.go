// SPDX-License-Identifier: Apache-2.0

package robotsrule

import "testing"

func TestHasRule(t *testing.T) {
	for list, want := range map[string]bool{
		"noindex": true, "NoIndex": true, " all ": true, "x, y, none": true, "max-snippet:20": true, "max-snippet=x": true, "noindex=false": true,
		":noindex": true, "archive": true, "unavailable_after: Wed, 31 Dec 2026 23:59:59 GMT": true, "noodp": true, "noai": true,
		"": false, ",": false, "x": false, "0123456789abcdefABCDEF_-": false, "nonindex": false, "no index": false, "ACAP allow-index": false,
		"googlebot: noindex": false, "environment=production,release=all1": false, "ne": false,
	} {
		if got := HasRule(list); got != want {
			t.Errorf("%q: %v", list, got)
		}
	}
}
