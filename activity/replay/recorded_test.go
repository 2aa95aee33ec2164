// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// A record does not say whether an unverified client could have been verified. So the replay assumes that it could not, and
// counts a loss for a crawler that has no published proof.
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
