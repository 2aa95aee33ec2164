// SPDX-License-Identifier: Apache-2.0

// Package english writes numbers of things in messages.
package english

import (
	"fmt"
	"strconv"
)

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

// Number is a number with commas: 53,234.
func Number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
