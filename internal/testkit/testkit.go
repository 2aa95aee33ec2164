// SPDX-License-Identifier: Apache-2.0

// Package testkit has helpers for the tests of all packages.
package testkit

import (
	"os"
	"testing"
)

// Long reports whether ROBOTSPOLICY_LONG is set, as in the nightly run. If so, random tests do many more rounds, and
// tests of many combinations try all of them.
func Long() bool { return os.Getenv("ROBOTSPOLICY_LONG") != "" }

// Nightly skips a test unless ROBOTSPOLICY_LONG is set. Use it for tests that take minutes, or that are unlikely to
// fail if all other tests pass. The nightly run searches for the tests that call Nightly.
func Nightly(t testing.TB) {
	t.Helper()
	if !Long() {
		t.Skip("it runs every night; set ROBOTSPOLICY_LONG")
	}
}

// Thorough reports whether ROBOTSPOLICY_SLOW or ROBOTSPOLICY_LONG is set. The script .ci/run sets ROBOTSPOLICY_SLOW.
func Thorough() bool { return os.Getenv("ROBOTSPOLICY_SLOW") != "" || Long() }

// Rounds returns the number of rounds of a random test, or of cases that a test tries. It returns n in Thorough runs
// and with the race detector, and otherwise the value of few. In the nightly run, it returns four times n if n is
// greater than few.
func Rounds(few, n int) int {
	switch {
	case Long() && n > few:
		return 4 * n
	case Thorough() || raceEnabled:
		return n
	}
	return few
}

// Slow skips a test unless the run is Thorough. Use it for a test that takes as long as many others together.
func Slow(t testing.TB) {
	t.Helper()
	if !Thorough() {
		t.Skip("slow; set ROBOTSPOLICY_SLOW")
	}
}

// OnlyRaces reports whether the tests run with the race detector, and without ROBOTSPOLICY_RACE, which the nightly run
// sets. If it returns true, a test may leave out work of a single goroutine, because .ci/run also runs the tests
// without the race detector.
func OnlyRaces() bool { return raceEnabled && os.Getenv("ROBOTSPOLICY_RACE") == "" }

// SkipRace skips a test if OnlyRaces. Use it for a slow test that runs in a single goroutine, or whose goroutines are
// also started by other tests of the package.
func SkipRace(t testing.TB) {
	t.Helper()
	if OnlyRaces() {
		t.Skip("slow with the race detector; set ROBOTSPOLICY_RACE")
	}
}
