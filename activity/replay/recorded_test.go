// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// A record of an unverified client does not say whether the server was able to verify the crawler's clients. Replay
// assumes that it was not able, and marks the identity as unproven, so that the loss of such a request is counted.
func TestRecordedIdentities(t *testing.T) {
	for text, want := range map[string]identity{
		"unverified": {Identity: policy.Unknown, unproven: true},
		"verified":   {Identity: policy.Verified},
		"impostor":   {Identity: policy.Impostor},
	} {
		if got, ok := recorded(text); !ok || got != want {
			t.Errorf("%s: %+v, %t; want %+v", text, got, ok, want)
		}
	}
	if got, ok := recorded("audit"); ok || !got.unproven {
		t.Errorf("audit: %+v, %t", got, ok)
	}
}
