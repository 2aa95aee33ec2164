// SPDX-License-Identifier: Apache-2.0

package tdmrep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// MaxFile is the size in bytes of the largest file that Parse accepts.
const MaxFile = 512 << 10

const maxNotes = 20

// Parse reads a site's own tdmrep.json. It returns an error if data is not a JSON array. For an invalid rule,
// Parse uses the stricter meaning and returns a note:
//
//   - A slash is added to a location without a leading slash. A URL is replaced with its path.
//   - A tdm-reservation other than 0 or 1 is treated as 1. Strings and booleans that mean 0 or 1 are accepted.
//   - Rules without a location or tdm-reservation are left out. If there are more than 1,000 rules, the further rules
//     are left out, and the file reserves every path.
func Parse(data []byte) (f *File, notes []string, err error) {
	if len(data) > MaxFile {
		return nil, nil, fmt.Errorf("the file is larger than %d KiB", MaxFile>>10)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var items []json.RawMessage
	if err := json.Unmarshal(data, &items); err != nil {
		return nil, nil, fmt.Errorf("reading the JSON array: %w", err)
	}
	if items == nil {
		return nil, nil, errors.New("the file is null, not a JSON array")
	}
	f = &File{}
	note := func(i int, format string, args ...any) {
		if len(notes) < maxNotes {
			notes = append(notes, fmt.Sprintf("rule %d: ", i+1)+fmt.Sprintf(format, args...))
		}
	}
	for i, item := range items {
		if i == maxRules {
			note(i, "this rule and all following rules are left out, because the file has too many rules (%d)", len(items))
			// The omitted rules may have reserved any path.
			f.Rules = append(f.Rules, Rule{pathpattern.All, Declaration{Reservation: Reserved}})
			break
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal(item, &fields) != nil || fields == nil {
			note(i, "the rule is not an object; it is left out")
			continue
		}
		r, ok := rule(fields, func(format string, args ...any) { note(i, format, args...) })
		if ok {
			f.Rules = append(f.Rules, r)
		}
	}
	return f, notes, nil
}

func rule(fields map[string]json.RawMessage, note func(string, ...any)) (r Rule, ok bool) {
	var location string
	if json.Unmarshal(fields["location"], &location) != nil {
		note("the rule has no location; it is left out")
		return r, false
	}
	r.Location, ok = pattern(location)
	if !ok {
		note("the location %.60q is not a path; the rule is left out", location)
		return r, false
	}
	raw, given := fields[ReservationName]
	if !given {
		note("the rule has no tdm-reservation; it is left out")
		return r, false
	}
	switch text := strings.Trim(string(raw), `"`); text {
	case "0", "false":
		r.Reservation = NotReserved
	default:
		r.Reservation = Reserved
		if text != "1" && text != "true" {
			note("the tdm-reservation %.60q is neither 0 nor 1; it is read as 1", text)
		}
	}
	var policyURL string
	if json.Unmarshal(fields[PolicyName], &policyURL) == nil && r.Reservation == Reserved && isURL(policyURL) {
		r.Policy = policyURL
	}
	return r, true
}

func pattern(location string) (pathpattern.Pattern, bool) {
	location = strings.TrimSpace(location)
	if u, err := url.Parse(location); err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") {
		location = pathpattern.Target(u)
	}
	if location == "" {
		return pathpattern.Pattern{}, false
	}
	if location[0] != '/' && location[0] != '*' {
		location = "/" + location
	}
	p, err := pathpattern.Parse(location)
	return p, err == nil
}

// isURL reports whether text is a URL that a header field can contain.
func isURL(text string) bool {
	if len(text) > 2048 || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`"<>\`, c) }) {
		return false
	}
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}
