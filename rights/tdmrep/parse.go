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

// MaxFile is the largest file that Parse reads, in bytes.
const MaxFile = 512 << 10

const maxNotes = 20

// Parse reads a site's own tdmrep.json. It fails if the text is not a JSON array. Rules that are not valid get the
// stricter meaning, with a note:
//
//   - a location without a slash at its start gets one, and a URL is reduced to its path;
//   - a tdm-reservation that is neither 0 nor 1 (also as text or boolean) is 1;
//   - rules without location or tdm-reservation, and those beyond 1,000, are left out.
func Parse(data []byte) (f *File, notes []string, err error) {
	if len(data) > MaxFile {
		return nil, nil, fmt.Errorf("larger than %d KiB", MaxFile>>10)
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
			note(i, "there are %d rules, and those from here on are left out", len(items))
			// Their meaning is unknown.
			f.Rules = append(f.Rules, Rule{pathpattern.All, Declaration{Reservation: Reserved}})
			break
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal(item, &fields) != nil || fields == nil {
			note(i, "not an object; it is left out")
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
		note("there is no location; it is left out")
		return r, false
	}
	r.Location, ok = pattern(location)
	if !ok {
		note("the location %.60q is not a path; it is left out", location)
		return r, false
	}
	raw, given := fields[ReservationName]
	if !given {
		note("there is no tdm-reservation; it is left out")
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

// isURL reports whether text is a URL that a field can have.
func isURL(text string) bool {
	if len(text) > 2048 || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`"<>\`, c) }) {
		return false
	}
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}
