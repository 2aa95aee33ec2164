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

// Nightly skips a test that takes minutes, or that others make unlikely to fail, unless
// ROBOTSPOLICY_LONG is set. The nightly run looks for the tests that call it.
func Nightly(t testing.TB) {
	t.Helper()
	if !Long() {
		t.Skip("it runs every night; set ROBOTSPOLICY_LONG")
	}
}

// Thorough reports whether ROBOTSPOLICY_SLOW is set, as .ci/run does, or ROBOTSPOLICY_LONG.
func Thorough() bool { return os.Getenv("ROBOTSPOLICY_SLOW") != "" || Long() }

// Rounds returns the number of rounds of a random test, or of cases that a test tries: n in Thorough
// runs and with the race detector, and few otherwise. At night, random tests have four times n rounds.
func Rounds(few, n int) int {
	switch {
	case Long() && n > few:
		return 4 * n
	case Thorough() || raceEnabled:
		return n
	}
	return few
}

// Slow skips a test that takes as long as many others, unless the run is Thorough.
func Slow(t testing.TB) {
	t.Helper()
	if !Thorough() {
		t.Skip("slow; set ROBOTSPOLICY_SLOW")
	}
}
