// SPDX-License-Identifier: Apache-2.0

// Package testkit holds what tests of all packages share.
package testkit

import "os"

// Long reports whether ROBOTSPOLICY_LONG is set, as it is every night: random tests then
// do many more rounds, and tests of many combinations try all of them.
func Long() bool { return os.Getenv("ROBOTSPOLICY_LONG") != "" }
