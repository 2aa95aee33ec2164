// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"regexp"
	"slices"
	"strings"
)

var (
	naiveURL      = regexp.MustCompile(`://[^\s\v;),'"<>]*`)
	naiveCompared = regexp.MustCompile(`(?i)(?:^|[^0-9A-Za-z_\x{80}-\x{ff}-])(?:like|with|following) $`)
)

// naiveHit is one place where a token stands.
type naiveHit struct{ start, length, pattern int }

// naiveHits finds every token at every position, one by one, as the comment of
// Recognizer describes it. Bytes are turned into Latin-1 so that the regular
// expressions see each of them as one character.
func naiveHits(patterns []Pattern, header string) []naiveHit {
	ua := []rune(latin1(header))
	inURL := make([]bool, len(ua))
	text := string(ua)
	for _, m := range naiveURL.FindAllStringIndex(text, -1) {
		from, to := len([]rune(text[:m[0]])), len([]rune(text[:m[1]]))
		for i := from + len("://"); i < to; i++ {
			inURL[i] = true
		}
	}
	var hits []naiveHit
	for pi, p := range patterns {
		token := []rune(latin1(p.Token))
		if len(token) == 0 || CheckPattern(p.Token) != nil {
			continue
		}
		for start := 0; start+len(token) <= len(ua); start++ {
			if inURL[start] || !slices.Equal(lowerRunes(ua[start:start+len(token)]), lowerRunes(token)) {
				continue
			}
			if start > 0 && !strings.ContainsRune(" \t\n\v\f\r();,+", ua[start-1]) {
				continue
			}
			if end := start + len(token); end < len(ua) && !strings.ContainsRune(" \t\n\v\f\r();,+/", ua[end]) {
				continue
			}
			if naiveCompared.MatchString(string(ua[:start])) {
				continue
			}
			hits = append(hits, naiveHit{start, len(token), pi})
		}
	}
	return hits
}

func naiveRecognize(patterns []Pattern, ua string) (int, bool) {
	hits := naiveHits(patterns, ua)
	if len(hits) == 0 {
		return 0, false
	}
	best := slices.MinFunc(hits, func(a, b naiveHit) int {
		if a.length != b.length {
			return b.length - a.length
		}
		if a.start != b.start {
			return a.start - b.start
		}
		return a.pattern - b.pattern
	})
	return patterns[best.pattern].Index, true
}

// naiveMany returns the set of indices, sorted.
func naiveMany(patterns []Pattern, ua string) []int {
	var found []int
	for _, h := range naiveHits(patterns, ua) {
		found = append(found, patterns[h.pattern].Index)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func latin1(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

func lowerRunes(r []rune) []rune {
	out := make([]rune, len(r))
	for i, c := range r {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		out[i] = c
	}
	return out
}
