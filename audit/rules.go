// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// rules maps the names of robots control rules to their values. A rule without a value has "". Only audits use this
// parser. It does not share code with package robotsrule, because the audit tests the output of that package.
type rules map[string]string

// expires is a rule with a date. After that date, the rule has the same effect as noindex.
const expires = "unavailable_after"

// plain lists rules without a value. Some of these rules only repeat the default.
var plain = []string{
	"noindex", "nofollow", "nosnippet", "noarchive", "nocache", "noimageindex", "notranslate", "noodp", "noydir", "noyaca", "noai", "noimageai", "indexifembedded",
	"nositelinkssearchbox", "nopagereadaloud", "none", "all", "index", "follow", "snippet", "archive", "cache", "imageindex", "translate", "odp",
}

// previews are the values of max-image-preview. The strictest value is first.
var previews = []string{"none", "standard", "large"}

func isRule(name string) bool {
	return name == expires || strings.HasPrefix(name, "max-") || slices.Contains(plain, name)
}

// cutRule splits a list into its first rule and the rest. It takes into account that dates may contain a comma after
// the weekday.
func cutRule(list string) (name, value, rest string) {
	item, rest, _ := strings.Cut(list, ",")
	name, value = nameOf(item)
	if name == expires {
		if _, ok := parseDate(value); !ok {
			second, after, _ := strings.Cut(rest, ",")
			if _, ok := parseDate(value + "," + second); ok {
				return name, value + "," + second, after
			}
		}
	}
	return name, value, rest
}

func nameOf(item string) (name, value string) {
	name, value, _ = strings.Cut(item, ":")
	if n, v, ok := strings.Cut(name, "="); ok {
		name, value = n, v
	}
	return strings.ToLower(strings.TrimSpace(name)), strings.Trim(value, " \t\"'")
}

func parseRules(list string, now time.Time) rules {
	r := rules{}
	r.parse(list, now)
	return r
}

// parse adds the rules in a list.
func (r rules) parse(list string, now time.Time) {
	for list != "" {
		var name, value string
		if name, value, list = cutRule(list); name != "" {
			r.add(name, value, now)
		}
	}
}

// add adds a rule. If the rule is already present with another value, the stricter value is kept. An expiration date in
// the past is stored as noindex.
func (r rules) add(name, value string, now time.Time) {
	switch {
	case name == "none":
		r.add("noindex", "", now)
		name, value = "nofollow", ""
	case name == "max-snippet" && value == "0":
		name, value = "nosnippet", ""
	case name == expires:
		at, ok := parseDate(value)
		if ok && !at.After(now) {
			name, value = "noindex", ""
		} else if ok {
			value = at.UTC().Format(time.RFC3339)
		}
	case slices.Contains(plain, name):
		value = ""
	case name == "max-image-preview":
		value = strings.ToLower(value)
	}
	if have, ok := r[name]; !ok || stricter(name, value, have) {
		r[name] = value
	}
}

// stricter compares two values of the rule name. It reports whether value is the stricter one.
func stricter(name, value, than string) bool {
	switch name {
	case "max-image-preview":
		a, b := slices.Index(previews, value), slices.Index(previews, than)
		return a >= 0 && (b < 0 || a < b)
	case expires:
		return value < than
	}
	a, err := strconv.ParseInt(value, 10, 64)
	b, _ := strconv.ParseInt(than, 10, 64)
	return err == nil && a >= 0 && (b < 0 || a < b)
}

func (r rules) union(o rules) rules {
	all := maps.Clone(r)
	if all == nil {
		all = rules{}
	}
	for name, value := range o {
		all.add(name, value, time.Time{})
	}
	return all
}

func (r rules) has(name string) bool { _, ok := r[name]; return ok }

// covered maps each rule to a stronger rule that includes it.
var covered = map[string]string{"max-snippet": "nosnippet", "nocache": "noarchive"}

// beyond returns the rules in r that restrict more than the rules in o.
func (r rules) beyond(o rules) rules {
	more := rules{}
	for name, value := range r {
		have, ok := o[name]
		if !ok && o.has(covered[name]) || ok && !stricter(name, value, have) || !restricts(name) {
			continue
		}
		more[name] = value
	}
	return more
}

// restricts reports whether a rule does more than repeat the default.
func restricts(name string) bool {
	return name == expires || strings.HasPrefix(name, "max-") || strings.HasPrefix(name, "no")
}

// String returns the list of rules. Rules without a value are first.
func (r rules) String() string {
	names := slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		order := func(name string) int {
			if i := slices.Index(plain, name); i >= 0 {
				return i
			}
			return len(plain)
		}
		return cmp.Or(order(a)-order(b), strings.Compare(a, b))
	})
	for i, name := range names {
		if r[name] != "" {
			names[i] += ":" + r[name]
		}
	}
	return strings.Join(names, ", ")
}

// parameters adds the rules in the parameters of a Robots-Tag member.
func (r rules) parameters(p *httpsfv.Params, now time.Time) {
	for _, name := range p.Names() {
		switch v, _ := p.Get(name); v := v.(type) {
		case int64:
			if name == expires {
				r.add(name, time.Unix(v, 0).UTC().Format(time.RFC3339), now)
			} else {
				r.add(name, strconv.FormatInt(v, 10), now)
			}
		case time.Time:
			r.add(name, v.UTC().Format(time.RFC3339), now)
		case string:
			r.add(name, v, now)
		case httpsfv.Token:
			r.add(name, string(v), now)
		default:
			r.add(name, "", now)
		}
	}
}

// dates are the layouts for the date formats that Google reads: RFC 822, RFC 850, and ISO 8601.
var dates = []string{
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05", "2006-01-02",
	time.RFC1123, time.RFC1123Z, "Mon, 2 Jan 2006 15:04:05 MST", "Mon, 2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04:05 MST", "2 Jan 2006 15:04:05 -0700",
	"2 Jan 2006 15:04:05", "2 Jan 2006", time.RFC822, time.RFC822Z, time.RFC850, "02-Jan-2006 15:04:05 MST", "02-Jan-06 15:04:05 MST",
}

// zones maps time zone names to offsets from UTC. Package time does not know these names.
var zones = map[string]string{"EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500", "MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700", "CET": "+0100", "CEST": "+0200"}

// maxDate limits the length of a date, in bytes.
const maxDate = 64

// parseDate parses a date. If the date has no time of day, parseDate returns the start of the day. If it has no time
// zone, parseDate assumes UTC.
func parseDate(text string) (time.Time, bool) {
	if len(text) > maxDate {
		return time.Time{}, false
	}
	text = strings.Join(strings.Fields(text), " ")
	if i := strings.LastIndexByte(text, ' '); i >= 0 && zones[strings.ToUpper(text[i+1:])] != "" {
		text = text[:i+1] + zones[strings.ToUpper(text[i+1:])]
	}
	for _, layout := range dates {
		for _, zone := range []string{"MST", "-0700"} {
			if t, err := time.Parse(strings.Replace(layout, "MST", zone, 1), text); err == nil {
				return t, true
			}
		}
	}
	return time.Time{}, false
}
