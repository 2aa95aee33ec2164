// SPDX-License-Identifier: Apache-2.0

package robotsrule

import "testing"

// FuzzIsCanonical checks that the results of Meta and String are canonical, whatever text was parsed.
func FuzzIsCanonical(f *testing.F) {
	for _, s := range []string{"noindex=false", "none: x", "max-snippet = 5", "unavailable_after: 31-Dec-26 18:59:59 EST", "a:b, :noindex", "max-snippet:05"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		IsCanonical(list)
		set := Parse(list)
		for _, text := range []string{set.Meta(), set.String()} {
			if Parse(text) == set && !IsCanonical(text) {
				t.Errorf("%q becomes %q, which is not canonical", list, text)
			}
		}
	})
}
