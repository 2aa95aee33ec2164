// SPDX-License-Identifier: Apache-2.0

package robotsrule

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// headerDate is RFC 822's date without the weekday, which holds no comma, with a
// four-digit year (RFC 5322).
const headerDate = "2 Jan 2006 15:04:05 GMT"

// String gives the rules as X-Robots-Tag and meta content spell them: bare rules
// first, then rules with a value, then the date, as
// "noindex, nofollow, max-snippet:20, unavailable_after: 31 Dec 2026 23:59:59 GMT".
// Rules with a value that are unknown here come last, because a reader may take
// such a name for a user agent that all that follows is meant for. The order is
// always the same, and parsing the text gives the same set.
func (s Set) String() string { return s.text(headerDate) }

// Meta gives the rules as String does, with the date in ISO 8601 form:
// "unavailable_after: 2026-12-31T23:59:59Z". It is not escaped for HTML.
func (s Set) Meta() string { return s.text(time.RFC3339) }

func (s Set) text(dateLayout string) string {
	var out []string
	if s.index >= noindexEmbedded {
		out = append(out, "noindex")
	}
	if s.Has("indexifembedded") {
		out = append(out, "indexifembedded")
	}
	for i, n := range flagNames {
		if s.flags&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	var valued []string
	for _, w := range s.words() {
		if _, v := wordName(w); v {
			valued = append(valued, strings.ReplaceAll(w, ",", " "))
		} else {
			out = append(out, w)
		}
	}
	if s.snippet != limitUnsaid {
		out = append(out, "max-snippet:"+number(s.snippet))
	}
	if s.image != imageUnsaid {
		out = append(out, "max-image-preview:"+imageNames[s.image])
	}
	if s.video != limitUnsaid {
		out = append(out, "max-video-preview:"+number(s.video))
	}
	if t, ok := s.UnavailableAfter(); ok {
		out = append(out, "unavailable_after: "+t.Format(dateLayout))
	}
	return strings.Join(append(out, valued...), ", ")
}

func number(limit int64) string {
	if limit == limitUnlimited {
		return "-1"
	}
	return strconv.FormatInt(limit-limitZero, 10)
}

// A word is a rule without a field of its own in Set: a permissive word, a rule
// unknown here, or a malformed value of a known one. It is "name", "name:value"
// as in X-Robots-Tag and meta content, or "name=item" with a bare item of RFC
// 8941, as in Robots-Tag. The name is in lowercase; the value is as it came.

func wordName(w string) (name string, valued bool) {
	if i := strings.IndexAny(w, ":="); i >= 0 {
		return w[:i], true
	}
	return w, false
}

func (s Set) words() []string {
	if s.other == "" {
		return nil
	}
	return strings.Split(s.other, "\n")
}

func joinWords(words []string) string {
	slices.Sort(words)
	return strings.Join(slices.Compact(words), "\n")
}

func mergeWords(a, b string) string {
	switch {
	case b == "" || a == b:
		return a
	case a == "":
		return b
	}
	return joinWords(append(strings.Split(a, "\n"), strings.Split(b, "\n")...))
}

// permissive reports whether the bare word only allows: all, and the contrary of a
// known restriction.
func permissive(word string) bool {
	switch word {
	case "all", "index", "indexifembedded":
		return true
	}
	for _, n := range flagNames {
		if n[len("no"):] == word {
			return true
		}
	}
	return false
}

// clean makes text fit for a header field or an attribute on one line: control
// characters and runs of white space become one space.
func clean(text string) string {
	ok := true
	for i := 0; i < len(text) && ok; i++ {
		c := text[i]
		ok = c > ' ' && c != 0x7f || c == ' ' && i > 0 && i < len(text)-1 && text[i-1] != ' '
	}
	if ok {
		return text
	}
	return strings.Join(strings.FieldsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }), " ")
}

// lower puts ASCII letters in lowercase and leaves other bytes alone, so that
// text in an unknown charset stays what it is.
func lower(s string) string {
	for i := 0; i < len(s); i++ {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if 'A' <= b[i] && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
