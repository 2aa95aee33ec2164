// SPDX-License-Identifier: Apache-2.0

// Package english writes numbers of things in messages.
package english

import "fmt"

// Count is a number of things: "no errors", "1 error", "2 errors".
func Count(n int, word string) string {
	switch n {
	case 0:
		return "no " + word + "s"
	case 1:
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
