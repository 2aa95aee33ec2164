// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// A recorded target contains only ASCII characters, and still names the same path as the target of the request.
func TestRecordedTargetsAreASCII(t *testing.T) {
	for target, want := range map[string]string{"/a%20b?c": "/a%20b?c", "/x\u202ey": "/x%E2%80%AEy", "/\xff?\xfe": "/%FF?%FE", "": ""} {
		got := pathpattern.EncodeBeyondASCII(target)
		if got != want || pathpattern.NormalizePath(got) != pathpattern.NormalizePath(target) {
			t.Errorf("%q is recorded as %q, want %q", target, got, want)
		}
	}
}
