// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"regexp"
	"slices"
	"strings"
)

var (
	naiveURL      = regexp.MustCompile(`://[^\s\v;),'"<>]*`)
	naiveCompared = regexp.MustCompile(`(?i)(?:^|[^0-9A-Za-z_\x{80}-\x{ff}-])(?:like|with|following)[ :=/]["'<[{]*$`)
	naiveBefore   = regexp.MustCompile(`(?:^|[\s\v();,+:="'[{<*]|(?:^|[\s\v();,+="'[{<*])[0-9A-Za-z_\x{80}-\x{ff}-]+/)$`)
	naiveAfter    = regexp.MustCompile(`^(?:$|[\s\v();,+/="'><\]}*]|:(?:$|[^/]|/$|/[^/])|[-_][vV]?[0-9])`)
	naiveWord     = regexp.MustCompile(`^[0-9A-Za-z_\x{80}-\x{ff}-]`)
	naiveLetter   = regexp.MustCompile(`^[A-Za-z_]`)
	naiveVersion  = regexp.MustCompile(`^[0-9]+\.[0-9]`)
	naiveNamed    = regexp.MustCompile(`(?s)^(?:[0-9A-Za-z_\x{80}-\x{ff}-]{4}.*|.*[^0-9A-Za-z_\x{80}-\x{ff}-].*)[^0-9]$`)
	naiveApp      = regexp.MustCompile(`(?s) CFNetwork/.* Darwin/`)
	naiveUnseen   = regexp.MustCompile(`[\x{AD}\x{200B}-\x{200F}\x{2060}\x{FEFF}\x{FE00}-\x{FE0F}]`)
	naiveWide     = regexp.MustCompile(`[\x{FF01}-\x{FF5E}]`)
	naiveForeign  = regexp.MustCompile(`[^\x00-\x7F]`)
	naiveInside   = regexp.MustCompile(`^/(?:$|[^0-9])`)
)

// naivePlain returns the text that a person would read in a header. In contrast to plain, it uses regular expressions.
func naivePlain(header string) string {
	text := naiveUnseen.ReplaceAllString(string([]rune(header)), "") // an invalid byte of UTF-8 becomes U+FFFD
	text = naiveWide.ReplaceAllStringFunc(text, func(c string) string { return string([]rune(c)[0] - 0xFEE0) })
	for ascii, others := range naiveLooks {
		text = regexp.MustCompile(others).ReplaceAllString(text, ascii)
	}
	return naiveForeign.ReplaceAllString(text, " ")
}

var naiveLooks = map[string]string{ // for each ASCII character, the code points that look like it
	"A": `[\x{0410}\x{0391}]`, "B": `[\x{0412}\x{0392}]`, "C": `[\x{0421}\x{03F9}]`, "E": `[\x{0415}\x{0395}]`, "H": `[\x{041D}\x{0397}]`,
	"I": `[\x{0406}\x{0399}]`, "J": `[\x{0408}]`, "K": `[\x{041A}\x{039A}]`, "M": `[\x{041C}\x{039C}]`, "N": `[\x{039D}]`, "O": `[\x{041E}\x{039F}]`,
	"P": `[\x{0420}\x{03A1}]`, "Q": `[\x{051A}]`, "S": `[\x{0405}]`, "T": `[\x{0422}\x{03A4}]`, "U": `[\x{054D}]`, "V": `[\x{0474}]`, "W": `[\x{051C}]`,
	"X": `[\x{0425}\x{03A7}]`, "Y": `[\x{04AE}\x{03A5}]`, "Z": `[\x{0396}]`, "a": `[\x{0430}\x{0251}\x{03B1}]`, "c": `[\x{0441}\x{03F2}]`,
	"d": `[\x{0501}]`, "e": `[\x{0435}]`, "g": `[\x{0261}]`, "h": `[\x{04BB}]`, "i": `[\x{0456}\x{0131}]`, "j": `[\x{0458}\x{03F3}]`, "l": `[\x{04CF}]`,
	"n": `[\x{0578}]`, "o": `[\x{043E}\x{03BF}]`, "p": `[\x{0440}\x{03C1}]`, "q": `[\x{051B}]`, "s": `[\x{0455}]`, "u": `[\x{057D}]`,
	"v": `[\x{0475}\x{03BD}]`, "w": `[\x{051D}]`, "x": `[\x{0445}]`, "y": `[\x{0443}\x{03B3}]`,
	"-": `[\x{2010}\x{2011}\x{2012}\x{2013}\x{2014}\x{2212}]`, "_": `[\x{02CD}]`,
}

// naiveReadings returns the header and, if it has characters outside ASCII, the ASCII text that it looks like.
func naiveReadings(header string) []string {
	if naiveForeign.MatchString(latin1(header)) {
		return []string{header, naivePlain(header)}
	}
	return []string{header}
}

// naiveHit is a place in a header where a token was found.
type naiveHit struct{ start, length, pattern int }

// naiveHits tries every token at every position, according to the rules in the comment of Recognizer. It converts bytes
// to Latin-1, so that each byte is one character for the regular expressions.
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
	best, ok := naiveHit{}, false
	for _, text := range naiveReadings(ua) {
		if hit, found := naiveBest(patterns, text); found && (!ok || hit.length > best.length) {
			best, ok = hit, true
		}
	}
	if !ok {
		return 0, false
	}
	return patterns[best.pattern].Index, true
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

// naiveEach returns the sorted indexes of the patterns that occur in a User-Agent according to naiveHits. It leaves out
// patterns that occur only inside longer patterns.
func naiveEach(patterns []Pattern, ua string) []int {
	var found []int
	for _, text := range naiveReadings(ua) {
		found = append(found, naiveEachOf(patterns, text)...)
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
