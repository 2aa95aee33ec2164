// SPDX-License-Identifier: Apache-2.0

package robotsrule

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxDateText limits the length of a date. "Wednesday, 31 December 2026 23:59:59.000 +0000" has about 45 bytes.
const maxDateText = 64

// zones maps zone names to hours east of UTC. It has only names with one usual meaning (RFC 822 section 5.1 and
// others).
var zones = map[string]int{
	"GMT": 0, "UTC": 0, "WET": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
	"WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11,
}

var weekday = regexp.MustCompile(`^(?:SUN|MON|TUES?|WED(?:NES)?|THU(?:RS)?|FRI|SAT(?:UR)?)(?:DAY)?[., ]+`)

// monthFirst matches the beginning of a date such as "DEC. 26, 2026", whose full stop and comma are then removed.
var monthFirst = regexp.MustCompile(`^([A-Z]{3,9})\.? ([0-9]{1,2}),`)

type layout struct {
	form        string
	zone, named bool
}

// layouts maps the results of the function beginning to the possible forms of dates.
var layouts = func() map[int][]layout {
	all := map[int][]layout{}
	add := func(form string, zone, named bool) {
		begins := beginning(form)
		all[begins] = append(all[begins], layout{form, zone, named})
	}
	timed := func(form string) {
		add(form, false, false)
		add(form+" MST", true, true)
		for _, zone := range []string{"Z07:00", " Z07:00", "Z0700", " Z0700", "Z07", " Z07"} {
			add(form+zone, true, false)
		}
	}
	for _, day := range []string{"2006-01-02", "2 Jan 2006", "2 January 2006", "2 Jan 06", "2-Jan-2006", "2-Jan-06", "Jan 2 2006", "January 2 2006"} {
		add(day, false, false)
		for _, clock := range []string{" 15:04:05", " 15:04", "T15:04:05", "T15:04"} {
			timed(day + clock)
		}
	}
	add("20060102", false, false)
	timed("20060102T150405")
	timed("20060102T1504")
	for _, zone := range []string{"", "MST ", "Z0700 "} { // asctime, and date(1)
		add("Jan 2 15:04:05 "+zone+"2006", zone != "", zone == "MST ")
	}
	return all
}()

// beginning returns the key of layouts that has the possible forms of a date. The key is the number of digits at the
// beginning of the date. For a day of one or two digits, it is 1. Looking up the forms saves time, because trying all
// forms is slow.
func beginning(text string) int {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	if digits == 2 {
		return 1
	}
	return min(digits, len("20060102"))
}

// date is a parsed date. exact is false if the time or the zone was missing in the text.
type date struct {
	unix      int64
	exact     bool
	localZone bool // the zone is a name such as EST, which readers may not know
}

// parseDate parses a date in the forms that Google documents (RFC 822, RFC 850, ISO 8601), with a two-digit or
// four-digit year and full or short names of months. It also parses dates that begin with the month. A date without
// a time is the start of that day. Unknown zones are errors. Text with only digits is an error, unless it can only
// be a date.
func parseDate(text string) (date, bool) {
	if text = clean(text[:min(len(text), 2*maxDateText)]); len(text) < len("2 Jan 06") || len(text) > maxDateText {
		return date{}, false
	}
	text = strings.ToUpper(text)
	text = text[len(weekday.FindString(text)):]
	text = monthFirst.ReplaceAllString(text, "$1 $2")
	if strings.HasSuffix(text, " UT") { // package time parses only zone names of at least three letters
		text += "C"
	}
	for _, l := range layouts[beginning(text)] {
		t, err := time.Parse(l.form, text)
		if err != nil {
			continue
		}
		d := date{unix: t.Unix(), exact: l.zone}
		name, east := t.Zone()
		if l.named {
			hours, ok := zones[name]
			if !ok {
				continue
			}
			d.unix += int64(east - hours*3600)
			d.localZone, east = name != "GMT" && name != "UTC", 0
		}
		d.unix = clampDate(d.unix)
		return d, -24*3600 < east && east < 24*3600
	}
	return date{}, false
}

func clampDate(unix int64) int64 { return min(max(unix, 0), maxDate) }

// headerDate is the date of RFC 822 with a four-digit year (RFC 5322), without the weekday and its comma.
const headerDate = "2 Jan 2006 15:04:05 GMT"

// String returns the rules in the spelling of X-Robots-Tag and robots meta tags: "noindex, nofollow,
// max-snippet:20, unavailable_after: 31 Dec 2026 23:59:59 GMT". Unknown rules with a value come last, because a
// reader may mistake their name for a user agent. The order is always the same. Parsing the result gives the same
// set.
func (s Set) String() string { return s.text(headerDate) }

// Meta is like String, but with the date in ISO 8601 form. The result is not escaped for HTML.
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
			if !strings.HasPrefix(w, "unavailable_after:") {
				w = strings.ReplaceAll(w, ",", " ")
			}
			valued = append(valued, w)
		} else {
			out = append(out, w)
		}
	}
	for i, size := range s.sizes {
		switch {
		case size == limitUnsaid:
		case i == image:
			out = append(out, sizeNames[i]+":"+imageNames[size])
		default:
			out = append(out, sizeNames[i]+":"+strconv.FormatInt(numberOf(size), 10))
		}
	}
	if t, ok := s.UnavailableAfter(); ok {
		out = append(out, "unavailable_after: "+t.Format(dateLayout))
	}
	return strings.Join(append(out, valued...), ", ")
}

// numberOf returns the number of a limit. It is the opposite of the function limit.
func numberOf(size int64) int64 {
	if size == limitUnlimited {
		return -1
	}
	return size - limitZero
}

// A word is a permissive word, an unknown rule, or a malformed value of a known one. It is spelled "name",
// "name:value" as in X-Robots-Tag, or "name=item" with a bare item of RFC 8941, in lowercase except for the
// value.

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

// permissive reports whether a word without value only allows something. Such words are all, and the opposites of known
// restrictions.
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

// clean converts text to a single line: it replaces control characters and runs of white space by one space.
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
