// SPDX-License-Identifier: Apache-2.0

package english

import "testing"

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "no errors", 1: "1 error", 2: "2 errors"} {
		if got := Count(n, "error"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -999: "-999", -1000: "-1,000", -123456: "-123,456"} {
		if got := Number(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestLists(t *testing.T) {
	words := []string{"a", "b", "c", "d", "e"}
	for n, want := range []string{"", "a", "a or b", "a, b or c"} {
		if got := List(words[:n], "or"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for n, want := range []string{"", "a", "a and b", "a, b and c", "a, b and 2 more", "a, b and 3 more"} {
		if got := Some(words[:n], 3); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
