// SPDX-License-Identifier: Apache-2.0

package robotsrule

import (
	"strings"
	"time"
)

// maxDateText bounds what is tried as a date; the longest form, "Wednesday, 31
// December 2026 23:59:59.000 +0000", has some 45 bytes.
const maxDateText = 64

// zones are those of RFC 822 section 5.1 and other names with one widely used
// meaning, in hours east of UTC.
var zones = map[string]int{
	"Z": 0, "UT": 0, "GMT": 0, "UTC": 0, "WET": 0,
	"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
	"WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11,
}

// The layouts of days and of times of day, as splitDate returns them.
var (
	dayLayouts   = []string{"2006-01-02", "2 Jan 2006", "2 Jan 06", "2-Jan-2006", "2-Jan-06", "Jan 2 2006", "20060102"}
	clockLayouts = []string{
		"15:04:05", "15:04", "150405", "1504",
		"15:04:05Z07:00", "15:04Z07:00", "150405Z07:00", "1504Z07:00",
		"15:04:05Z0700", "15:04Z0700", "150405Z0700", "1504Z0700",
		"15:04:05Z07", "15:04Z07", "150405Z07", "1504Z07",
	}
	weekdays    = []string{"SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY"}
	shortMonths = strings.NewReplacer("JANUARY", "JAN", "FEBRUARY", "FEB", "MARCH", "MAR", "APRIL", "APR", "JUNE", "JUN", "JULY", "JUL",
		"AUGUST", "AUG", "SEPTEMBER", "SEP", "OCTOBER", "OCT", "NOVEMBER", "NOV", "DECEMBER", "DEC", ",", "")
)

// date is a parsed date. If exact is false, the text had no time of day or no zone,
// and the start of the day, and UTC, were assumed.
type date struct {
	unix      int64
	exact     bool
	localZone bool // the zone is a name such as EST, which readers may not know
}

// parseDate reads a date in one of the forms that Google documents (RFC 822, RFC
// 850, ISO 8601), with years of four digits or two, the month in full or first,
// or in the order of C's asctime. A date without a time is the start of that day,
// because an engine may read it so. Unknown zone names are errors.
func parseDate(text string) (date, bool) {
	if len(text) > 2*maxDateText {
		return date{}, false
	}
	text = clean(text)
	if len(text) < len("1Jan70") || len(text) > maxDateText {
		return date{}, false
	}
	day, clock, zone, ok := splitDate(strings.ToUpper(text))
	if !ok {
		return date{}, false
	}
	t, ok := parseAny(dayLayouts, day)
	if !ok || clock == "" {
		return date{unix: clampDate(t.Unix())}, ok && zone == ""
	}
	c, ok := parseAny(clockLayouts, clock)
	_, east := c.Zone()
	if !ok || east <= -24*3600 || east >= 24*3600 {
		return date{}, false
	}
	seconds := c.Hour()*3600 + c.Minute()*60 + c.Second() - east - zones[zone]*3600
	return date{
		unix:      clampDate(t.Unix() + int64(seconds)),
		exact:     zone != "" || strings.ContainsAny(clock, "+-"),
		localZone: zone != "" && zone != "GMT" && zone != "UTC" && zone != "Z",
	}, true
}

func clampDate(unix int64) int64 { return min(max(unix, 0), maxDate) }

func parseAny(layouts []string, text string) (time.Time, bool) {
	for _, l := range layouts {
		if t, err := time.Parse(l, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// splitDate takes a date, in capitals, apart: the day, the time of day with its
// numeric zone, and the name of a zone. It leaves the weekday out, which need not
// be the right one.
//
//	"THURSDAY, 31-DEC-26 23:59:60 EST" → "31-DEC-26", "23:59:59", "EST"
//	"DEC 31 23:59 2026"                → "DEC 31 2026", "23:59"
//	"2026-12-31T23:59:59 +0100"        → "2026-12-31", "23:59:59+0100"
func splitDate(text string) (day, clock, zone string, ok bool) {
	if n := strings.IndexFunc(text, func(r rune) bool { return r < 'A' || r > 'Z' }); n >= 3 {
		for _, d := range weekdays {
			if strings.HasPrefix(d, text[:n]) {
				text = strings.TrimLeft(text[n:], "., ")
				break
			}
		}
	}
	if n := strings.LastIndexAny(text, "0123456789") + 1; n > 0 && n < len(text) {
		zone = strings.TrimPrefix(text[n:], " ")
		if _, ok = zones[zone]; !ok {
			return "", "", "", false
		}
		text = text[:n]
	}
	day = shortMonths.Replace(text)
	at := strings.IndexByte(day, ':') - 2
	if at < 0 {
		at = strings.LastIndexByte(day, 'T') + 1 // 20261231T2359; not the T of OCT
		if at < 2 || day[at-2] > '9' {
			return day, "", zone, true
		}
	}
	if at < 2 {
		return "", "", "", false
	}
	day, clock = day[:at], strings.Replace(day[at:], ":59:60", ":59:59", 1) // a leap second
	if day[at-1] != ' ' && day[at-1] != 'T' {
		return "", "", "", false
	}
	day = day[:at-1]
	if hour, year, ok := strings.Cut(clock, " "); ok {
		if clock = hour + year; len(year) == 4 && year[0] <= '9' && year[0] >= '0' { // asctime
			day, clock = day+" "+year, hour
		}
	}
	return day, clock, zone, true
}
