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

var (
	weekdays = []string{"SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY"}
	months   = []string{"JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE", "JULY", "AUGUST", "SEPTEMBER", "OCTOBER", "NOVEMBER", "DECEMBER"}
)

// date is what a date text said: exact is false when the time of day or the
// zone was left out, and then the start of the day, and UTC, are taken.
type date struct {
	unix  int64
	exact bool
}

// parseDate reads a date in one of the forms that Google documents, RFC 822, RFC
// 850 and ISO 8601, with years of four digits (RFC 5322), the month in full or
// first, or the order of C's asctime. A date without a time is read as the start
// of that day, because an engine may read it so. A zone name with no known
// meaning makes the text no date.
//
// time.Parse with one layout after the other would do, but allocates an error
// for each, and a header may hold hundreds of dates.
func parseDate(text string) (date, bool) {
	text = clean(text)
	if len(text) < len("1Jan70") || len(text) > maxDateText {
		return date{}, false
	}
	p := dateText{rest: strings.ToUpper(text)}
	ok := p.weekday() && (p.iso() || p.dayFirst() || p.monthFirst())
	if !ok || p.rest != "" || p.zoned && !p.timed {
		return date{}, false
	}
	t := time.Date(p.year, time.Month(p.month), p.day, p.hour, p.minute, p.second, 0, time.UTC)
	if t.Day() != p.day {
		return date{}, false
	}
	return date{clampDate(t.Unix() - int64(p.offset)), p.zoned}, true
}

func clampDate(unix int64) int64 { return min(max(unix, 0), maxDate) }

// dateText is a date being read. The methods take a part off the front of rest
// and tell whether it was there; rest is left alone where it was not.
type dateText struct {
	rest                                   string
	year, month, day, hour, minute, second int
	timed, zoned                           bool
	offset                                 int // seconds east of UTC
}

func (p *dateText) skip(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// number takes a run of digits of one of the lengths low to high.
func (p *dateText) number(low, high int, to *int) bool {
	n := 0
	for *to = 0; n < len(p.rest) && '0' <= p.rest[n] && p.rest[n] <= '9' && n <= high; n++ {
		*to = *to*10 + int(p.rest[n]-'0')
	}
	if n < low || n > high {
		return false
	}
	p.rest = p.rest[n:]
	return true
}

// name gives the run of letters at the front.
func (p *dateText) name() string {
	n := 0
	for n < len(p.rest) && 'A' <= p.rest[n] && p.rest[n] <= 'Z' {
		n++
	}
	return p.rest[:n]
}

// weekday skips the name of a weekday. It need not be there, nor be the right one.
func (p *dateText) weekday() bool {
	name := p.name()
	for _, d := range weekdays {
		if len(name) >= 3 && strings.HasPrefix(d, name) {
			p.rest = strings.TrimLeft(p.rest[len(name):], "., ")
			break
		}
	}
	return true
}

func (p *dateText) monthName() bool {
	name := p.name()
	for i, m := range months {
		if len(name) == 3 && m[:3] == name || m == name {
			p.month, p.rest = i+1, p.rest[len(name):]
			return true
		}
	}
	return false
}

// iso reads 2026-12-31 and 20261231, with "T" or a space before the time.
func (p *dateText) iso() bool {
	q := *p
	whole := 0
	switch {
	case q.number(8, 8, &whole):
		q.year, q.month, q.day = whole/10000, whole/100%100, whole%100
	case !q.number(4, 4, &q.year) || !q.skip('-') || !q.number(2, 2, &q.month) || !q.skip('-') || !q.number(2, 2, &q.day):
		return false
	}
	if q.month < 1 || q.month > 12 || q.day < 1 {
		return false
	}
	*p = q
	return p.rest == "" || (p.skip('T') || p.skip(' ')) && p.clock() && p.zone()
}

// dayFirst reads RFC 822's "31 Dec 2026" and RFC 850's "31-Dec-26".
func (p *dateText) dayFirst() bool {
	q := *p
	if !q.number(1, 2, &q.day) || q.day < 1 {
		return false
	}
	sep := byte(' ')
	if q.skip('-') {
		sep = '-'
	} else if !q.skip(' ') {
		return false
	}
	if !q.monthName() || !q.skip(sep) || !q.anyYear() {
		return false
	}
	*p = q
	return p.rest == "" || (p.skip(' ') || p.skip('T')) && p.clock() && p.zone()
}

// anyYear reads a year of four digits, or of two, which RFC 850 leaves to the
// reader: from 69 on it is in the 20th century.
func (p *dateText) anyYear() bool {
	if p.number(4, 4, &p.year) {
		return true
	}
	if !p.number(2, 2, &p.year) {
		return false
	}
	if p.year += 1900; p.year < 1969 {
		p.year += 100
	}
	return true
}

// monthFirst reads "December 31, 2026 23:59" and asctime's "Dec 31 23:59:59 2026".
func (p *dateText) monthFirst() bool {
	q := *p
	if !q.monthName() || !q.skip(' ') {
		return false
	}
	q.rest = strings.TrimLeft(q.rest, " ")
	if !q.number(1, 2, &q.day) || q.day < 1 {
		return false
	}
	q.skip(',')
	if !q.skip(' ') {
		return false
	}
	*p = q
	if p.number(4, 4, &p.year) {
		return p.rest == "" || p.skip(' ') && p.clock() && p.zone()
	}
	return p.clock() && p.skip(' ') && p.number(4, 4, &p.year)
}

// clock reads 23:59, 23:59:59, 23:59:59.5, 2359 and 235959. A leap second is the
// second before it.
func (p *dateText) clock() bool {
	colon := len(p.rest) > 2 && p.rest[2] == ':'
	if !p.digits2(&p.hour) || p.skip(':') != colon || !p.digits2(&p.minute) {
		return false
	}
	if colon && p.skip(':') || !colon && p.rest != "" && '0' <= p.rest[0] && p.rest[0] <= '9' {
		if !p.digits2(&p.second) {
			return false
		}
		if p.skip('.') {
			p.rest = strings.TrimLeft(p.rest, "0123456789")
		}
	}
	if p.second == 60 {
		p.second = 59
	}
	p.timed = p.hour < 24 && p.minute < 60 && p.second < 60
	return p.timed
}

// digits2 takes two digits, whatever follows.
func (p *dateText) digits2(to *int) bool {
	if len(p.rest) < 2 || p.rest[0] < '0' || p.rest[0] > '9' || p.rest[1] < '0' || p.rest[1] > '9' {
		return false
	}
	*to, p.rest = int(p.rest[0]-'0')*10+int(p.rest[1]-'0'), p.rest[2:]
	return true
}

// zone reads a zone at the end: a name, +02:00, +0200 or +02. It may be missing.
func (p *dateText) zone() bool {
	if p.rest == "" {
		return true
	}
	p.skip(' ')
	if name := p.name(); name != "" {
		p.offset, p.zoned = zones[name]
		p.rest = p.rest[len(name):]
		return p.zoned
	}
	sign := 1
	if p.skip('-') {
		sign = -1
	} else if !p.skip('+') {
		return false
	}
	var hours, minutes int
	if !p.digits2(&hours) {
		return false
	}
	if p.rest != "" {
		p.skip(':')
		if !p.digits2(&minutes) {
			return false
		}
	}
	if hours > 23 || minutes > 59 {
		return false
	}
	p.offset, p.zoned = sign*(hours*3600+minutes*60), true
	return true
}
