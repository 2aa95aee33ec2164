// SPDX-License-Identifier: Apache-2.0

package robotsrule

import (
	"regexp"
	"strings"
	"time"
)

// maxDateText bounds what is tried as a date; the longest form, "Wednesday, 31
// December 2026 23:59:59.000 +0000", has some 45 bytes.
const maxDateText = 64

// zones are names with one widely used meaning (RFC 822 section 5.1 and others), in
// hours east of UTC.
var zones = map[string]int{
	"GMT": 0, "UTC": 0, "WET": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
	"WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11,
}

var weekday = regexp.MustCompile(`^(?:SUN|MON|TUES?|WED(?:NES)?|THU(?:RS)?|FRI|SAT(?:UR)?)(?:DAY)?[., ]+`)

// layout is a form of dates, with what it says of the zone.
type layout struct {
	form        string
	zone, named bool
}

var layouts = func() (all []layout) {
	for _, day := range []string{"2006-01-02", "2 Jan 2006", "2 January 2006", "2 Jan 06", "2-Jan-2006", "2-Jan-06"} {
		all = append(all, layout{form: day})
		for _, clock := range []string{" 15:04:05", " 15:04", "T15:04:05", "T15:04"} {
			all = append(all, layout{form: day + clock}, layout{day + clock + " MST", true, true})
			for _, zone := range []string{"Z07:00", "Z0700", "Z07"} {
				all = append(all, layout{day + clock + zone, true, false}, layout{day + clock + " " + zone, true, false})
			}
		}
	}
	return all
}()

// date is a parsed date. If exact is false, the text had no time of day or no zone,
// and the start of the day, and UTC, were assumed.
type date struct {
	unix      int64
	exact     bool
	localZone bool // the zone is a name such as EST, which readers may not know
}

// parseDate reads a date in one of the forms that Google documents (RFC 822, RFC
// 850, ISO 8601), with years of four digits or two and the month in full or short.
// A date without a time is the start of that day, because an engine may read it so.
// Unknown zone names are errors.
func parseDate(text string) (date, bool) {
	if text = clean(text[:min(len(text), 2*maxDateText)]); len(text) > maxDateText || strings.Trim(text, "0123456789") == "" {
		return date{}, false
	}
	text = strings.ToUpper(text)
	text = text[len(weekday.FindString(text)):]
	for _, l := range layouts {
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
