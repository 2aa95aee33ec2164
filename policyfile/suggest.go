// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"math/bits"
	"strings"
)

// Nearest returns the name that a word is most likely a misspelling of, or "".
// Case does not count. Short words must be nearer than long ones.
func Nearest(word string, names []string) string {
	best, distance := "", tolerance(len(word))+1
	folded := strings.ToLower(word)
	for _, name := range names {
		if n := distanceWithin(folded, strings.ToLower(name), distance-1); n < distance {
			best, distance = name, n
		}
	}
	return best
}

// tolerance is how many slips a word of n bytes may have.
func tolerance(n int) int {
	switch {
	case n < 3:
		return 0
	case n < 5:
		return 1
	}
	return 2
}

// letters is the set of bytes of a word, folded into 64 bits.
func letters(s string) uint64 {
	var set uint64
	for i := range len(s) {
		set |= 1 << (s[i] & 63)
	}
	return set
}

// maxWord is the longest word that is looked at for misspellings.
const maxWord = 64

// distanceWithin is the number of insertions, deletions, substitutions and swaps
// of neighbours between two words, or limit+1 when it is greater than limit.
func distanceWithin(a, b string, limit int) int {
	if limit < 0 || len(a) > maxWord || len(b) > maxWord || len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	if a == b {
		return 0
	}
	if bits.OnesCount64(letters(a)^letters(b)) > 2*limit {
		return limit + 1
	}
	var rows [3][maxWord + 1]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			n := min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				n = min(n, before[j-1]+1)
			}
			row[j+1] = n
			least = min(least, n)
		}
		if least > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit+1)
}
