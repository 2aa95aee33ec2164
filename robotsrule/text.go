// SPDX-License-Identifier: Apache-2.0

package robotsrule

import (
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
