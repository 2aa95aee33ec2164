// SPDX-License-Identifier: Apache-2.0

// Package testkit holds what tests of all packages share.
package testkit

import (
	"os"
	"testing"
)

// Long reports whether ROBOTSPOLICY_LONG is set, as it is every night: random tests then
// do many more rounds, and tests of many combinations try all of them.
func Long() bool { return os.Getenv("ROBOTSPOLICY_LONG") != "" }

// Slow skips a test that takes as long as many others, unless ROBOTSPOLICY_SLOW is set, as
// .ci/run does, or ROBOTSPOLICY_LONG.
func Slow(t testing.TB) {
	t.Helper()
	if os.Getenv("ROBOTSPOLICY_SLOW") == "" && !Long() {
		t.Skip("slow; set ROBOTSPOLICY_SLOW")
	}
}
