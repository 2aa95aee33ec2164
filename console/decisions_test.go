// SPDX-License-Identifier: Apache-2.0

package console

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// Every recorded decision and identity has a word in the console.
func TestDecisionsHaveWords(t *testing.T) {
	names := []string{activity.CategoryUnlisted}
	for _, d := range []activity.Decision{activity.Unstated, activity.Allowed, activity.Disallowed, activity.WouldBlock, activity.Blocked, activity.Limited, activity.WouldLimit} {
		names = append(names, string(d))
	}
	for _, i := range []activity.Identity{activity.Verified, activity.Unverified, activity.Impostor} {
		names = append(names, string(i))
	}
	for _, name := range names {
		if _, ok := verdicts[name]; !ok {
			t.Errorf("%s has no word", name)
		}
	}
}
