// SPDX-License-Identifier: Apache-2.0

package robotsrule

import (
	"strings"
	"time"
)

// maxDateText bounds the text tried as a date; the longest form, "Wednesday, 31
// December 2026 23:59:59.000 +0000", has some 45 octets.
const maxDateText = 64

// zones are those of RFC 822 §5.1 and the other names that have one meaning in
// wide use, in seconds east of UTC.
var zones = map[string]int{
	"Z": 0, "UT": 0, "GMT": 0, "UTC": 0, "WET": 0,
	"EST": -5 * 3600, "EDT": -4 * 3600, "CST": -6 * 3600, "CDT": -5 * 3600,
	"MST": -7 * 3600, "MDT": -6 * 3600, "PST": -8 * 3600, "PDT": -7 * 3600,
	"WEST": 3600, "CET": 3600, "CEST": 2 * 3600, "EET": 2 * 3600, "EEST": 3 * 3600,
	"MSK": 3 * 3600, "JST": 9 * 3600, "KST": 9 * 3600, "AEST": 10 * 3600, "AEDT": 11 * 3600,
}

// The layouts cover RFC 822, RFC 850 and ISO 8601, which Google documents, with
// four-digit years (RFC 5322), month names in full, and the date of C's asctime.
var (
	dateLayouts = []string{"2006-01-02", "2 Jan 2006", "2-Jan-06", "2-Jan-2006", "2 Jan 06", "2 January 2006", "20060102", "Jan 2 2006", "January 2 2006", "Jan 2, 2006", "January 2, 2006"}
	timeLayouts = []string{"15:04:05", "15:04"}
	wholeDates  = []string{"20060102T150405", "Jan 2 15:04:05 2006"}
	weekdays    = []string{"SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY"}
)

// date is what a date text said: exact is false when the time of day or the
// zone was left out, and then the start of the day, and UTC, are taken.
type date struct {
	unix  int64
	exact bool
}

// parseDate reads one date in any of the documented forms. A date without a time
// is read as the start of that day, because an engine may read it so. A zone
// name with no known meaning makes the text no date.
func parseDate(text string) (date, bool) {
	text = clean(text)
	if len(text) > maxDateText || !strings.ContainsAny(text, "0123456789") {
		return date{}, false
	}
	rest := strings.TrimLeft(cutWeekday(strings.ToUpper(text)), " ,")
	rest, offset, zoned, ok := cutZone(rest)
	if !ok {
		return date{}, false
	}
	for _, d := range dateLayouts {
		if t, err := time.Parse(d, rest); err == nil {
			if zoned {
				return date{}, false
			}
			return date{unix: clampDate(t.Unix())}, true
		}
		for _, sep := range []string{" ", "T"} {
			for _, c := range timeLayouts {
				if t, err := time.Parse(d+sep+c, rest); err == nil {
					return date{clampDate(t.Unix() - offset), zoned}, true
				}
			}
		}
	}
	for _, l := range wholeDates {
		if t, err := time.Parse(l, rest); err == nil {
			return date{clampDate(t.Unix() - offset), zoned}, true
		}
	}
	return date{}, false
}

func clampDate(unix int64) int64 { return min(max(unix, 0), maxDate) }

func cutWeekday(s string) string {
	end := strings.IndexAny(s, " ,")
	if end < 3 {
		return s
	}
	for _, w := range weekdays {
		if strings.HasPrefix(w, strings.TrimSuffix(s[:end], ".")) {
			return s[end:]
		}
	}
	return s
}

// cutZone takes the zone off the end of s. ok is false for a zone that cannot be
// understood.
func cutZone(s string) (rest string, offset int64, zoned, ok bool) {
	end := len(s)
	for end > 0 && 'A' <= s[end-1] && s[end-1] <= 'Z' {
		end--
	}
	if end == 0 {
		return s, 0, false, false
	}
	if name := s[end:]; name != "" {
		sec, known := zones[name]
		return strings.TrimRight(s[:end], " "), int64(sec), known, known
	}
	sign := strings.LastIndexAny(s, "+-")
	if sign < 0 || !hasTime(s[:sign]) {
		return s, 0, false, true
	}
	for _, l := range []string{"-07:00", "-0700", "-07"} {
		if t, err := time.Parse(l, s[sign:]); err == nil {
			_, sec := t.Zone()
			return strings.TrimRight(s[:sign], " "), int64(sec), true, true
		}
	}
	return s, 0, false, false
}

// hasTime tells whether s holds a time of day, so that a sign after it opens a
// zone and not a part of the date.
func hasTime(s string) bool {
	t := strings.IndexByte(s, 'T')
	return strings.Contains(s, ":") || t > 0 && '0' <= s[t-1] && s[t-1] <= '9'
}
