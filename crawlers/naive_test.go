// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"regexp"
	"slices"
	"strings"
)

var (
	naiveURL      = regexp.MustCompile(`://[^\s\v;),'"<>]*`)
	naiveCompared = regexp.MustCompile(`(?i)(?:^|[^0-9A-Za-z_\x{80}-\x{ff}-])(?:like|with|following)[ :/]["'<[{]*$`)
	naiveBefore   = regexp.MustCompile(`(?:^|[\s\v();,+:"'[{*]|(?:^|[\s\v();,+"'[{*])[0-9A-Za-z_\x{80}-\x{ff}-]+/)$`)
	naiveAfter    = regexp.MustCompile(`^(?:$|[\s\v();,+/"'>\]}*]|:(?:$|[^/]|/$|/[^/])|[-_][vV]?[0-9])`)
	naiveWord     = regexp.MustCompile(`^[0-9A-Za-z_\x{80}-\x{ff}-]`)
	naiveLetter   = regexp.MustCompile(`^[A-Za-z_]`)
	naiveVersion  = regexp.MustCompile(`^[0-9]+\.[0-9]`)
	naiveNamed    = regexp.MustCompile(`(?s)^(?:[0-9A-Za-z_\x{80}-\x{ff}-]{4}.*|.*[^0-9A-Za-z_\x{80}-\x{ff}-].*)[^0-9]$`)
	naiveApp      = regexp.MustCompile(`(?s) CFNetwork/.* Darwin/`)
	naiveInside   = regexp.MustCompile(`^/(?:$|[^0-9])`)
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
		derived := isDerived(p.Token)
		if derived {
			token = token[:len(token)-1]
		}
		for start := 0; start+len(token) <= len(ua); start++ {
			if inURL[start] || !slices.Equal(lowerRunes(ua[start:start+len(token)]), lowerRunes(token)) {
				continue
			}
			before, after := string(ua[:start]), string(ua[start+len(token):])
			ends := naiveAfter
			if derived {
				ends = naiveWord
			}
			ended := ends.MatchString(after) || !derived && naiveNamed.MatchString(string(token)) && naiveVersion.MatchString(after)
			if start == 0 && naiveApp.MatchString(text) {
				continue
			}
			if !naiveBefore.MatchString(before) || !ended || naiveCompared.MatchString(before) {
				continue
			}
			if strings.HasSuffix(before, "/") && !naiveLetter.MatchString(string(token)) {
				continue
			}
			if strings.HasSuffix(before, "[") && naiveInside.MatchString(after) {
				continue
			}
			hits = append(hits, naiveHit{start, len(token), pi})
		}
	}
	return hits
}

func naiveRecognize(patterns []Pattern, ua string) (int, bool) {
	hit, ok := naiveBest(patterns, ua)
	if s := plain(ua); isDressed(ua) {
		if other, found := naiveBest(patterns, s); found && (!ok || other.length > hit.length) {
			hit, ok = other, true
		}
	}
	if !ok {
		return 0, false
	}
	return patterns[hit.pattern].Index, true
}

func naiveBest(patterns []Pattern, ua string) (best naiveHit, ok bool) {
	hits := naiveHits(patterns, ua)
	if len(hits) == 0 {
		return best, false
	}
	best = slices.MinFunc(hits, func(a, b naiveHit) int {
		if a.length != b.length {
			return b.length - a.length
		}
		if a.start != b.start {
			return a.start - b.start
		}
		return a.pattern - b.pattern
	})
	return best, true
}

// naiveMany returns the set of indices, sorted.
func naiveMany(patterns []Pattern, ua string) []int {
	var found []int
	hits := naiveHits(patterns, ua)
	if isDressed(ua) {
		hits = append(hits, naiveHits(patterns, plain(ua))...)
	}
	for _, h := range hits {
		found = append(found, patterns[h.pattern].Index)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// naiveEach returns the indices of what is in no longer hit, sorted.
func naiveEach(patterns []Pattern, ua string) []int {
	found := naiveEachOf(patterns, ua)
	if s := plain(ua); isDressed(ua) {
		found = append(found, naiveEachOf(patterns, s)...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func naiveEachOf(patterns []Pattern, ua string) []int {
	var found []int
	hits := naiveHits(patterns, ua)
	for i, h := range hits {
		if !slices.ContainsFunc(hits, func(o naiveHit) bool {
			same := o.start == h.start && o.length == h.length
			return same && patterns[o.pattern].Token != "" && o.pattern < h.pattern ||
				!same && o.start <= h.start && o.start+o.length >= h.start+h.length
		}) {
			found = append(found, patterns[hits[i].pattern].Index)
		}
	}
	return found
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
