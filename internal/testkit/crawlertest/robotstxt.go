// SPDX-License-Identifier: Apache-2.0

// Package crawlertest reads the files, headers and pages of a site like a crawler: according to the standards, or with
// other projects' parsers. Tests compare the results with the policy. The package shares no code with the packages that
// write such files, headers and pages.
package crawlertest

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// RobotsTxt is a robots.txt, read by the plainest implementation of RFC 9309.
type RobotsTxt struct {
	Groups map[string][]RobotsLine // by token in lower case
}

// RobotsLine is a line of a group. Path is the path that the line is about, or "" if the line has no path. Value is the
// text after the key. If an extension's line begins with a path, such as "Crawl-delay: /a 5", Value does not contain
// this path.
type RobotsLine struct{ Key, Path, Value string }

// ReadRobotsTxt reads a file. It leaves out lines whose key does not belong to groups.
func ReadRobotsTxt(body string) *RobotsTxt { return read(body, false) }

// ReadWithPurposes reads a file like a crawler that knows User-Agent-Purpose lines. Such a line begins a group, like a
// User-agent line (draft-illyes-rep-purpose-00 section 2.1). In Groups, the key of such a group is PurposeGroup,
// followed by the name of the purpose in lower case.
func ReadWithPurposes(body string) *RobotsTxt { return read(body, true) }

// PurposeGroup is the prefix of the keys of purposes in RobotsTxt.Groups. No product token begins with it.
const PurposeGroup = "purpose:"

func read(body string, purposes bool) *RobotsTxt {
	f := &RobotsTxt{Groups: map[string][]RobotsLine{}}
	var tokens []string
	ruled := true
	for _, line := range strings.FieldsFunc(body, func(r rune) bool { return r == '\r' || r == '\n' }) {
		line, _, _ = strings.Cut(line, "#")
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		if key == "user-agent" || purposes && key == "user-agent-purpose" {
			if ruled {
				tokens, ruled = nil, false
			}
			name := strings.ToLower(value)
			if key == "user-agent-purpose" {
				name = PurposeGroup + name
			}
			tokens = append(tokens, name)
			f.Groups[name] = append(f.Groups[name], nil...)
			continue
		}
		r, ok := groupLine(key, value)
		if !ok {
			continue
		}
		ruled = ruled || key == "allow" || key == "disallow"
		for _, t := range tokens {
			f.Groups[t] = append(f.Groups[t], r)
		}
	}
	return f
}

// groupLine makes a RobotsLine of a key and a value. The second result is false if lines with this key do not belong to
// a group.
func groupLine(key, value string) (RobotsLine, bool) {
	r := RobotsLine{Key: key, Value: value}
	switch key {
	case "allow", "disallow":
		r.Path = value
	case "crawl-delay", "content-signal", "content-usage", "app-directives":
		if strings.HasPrefix(value, "/") || strings.HasPrefix(value, "*/") {
			path, rest, _ := strings.Cut(value, " ")
			r.Path, r.Value = path, strings.TrimSpace(rest)
		}
	default:
		return r, false
	}
	return r, true
}

// Group returns the lines for a token, or else for "*". Parsers ignore the case of the token.
func (f *RobotsTxt) Group(token string) []RobotsLine {
	if g, ok := f.Groups[strings.ToLower(token)]; ok {
		return g
	}
	return f.Groups["*"]
}

// Allowed reports whether a crawler may fetch a path. The longest matching line wins, and an Allow wins over a
// Disallow of the same length (RFC 9309 section 2.2.2).
func (f *RobotsTxt) Allowed(token, path string) bool {
	best, allow := -1, true
	for _, r := range f.Group(token) {
		if r.Key != "allow" && r.Key != "disallow" || r.Path == "" || !MatchPath(r.Path, path) {
			continue
		}
		n := len(r.Path)
		if n > best || n == best && r.Key == "allow" {
			best, allow = n, r.Key == "allow"
		}
	}
	return allow
}

// Extension looks for the lines of an extension, such as "crawl-delay", with the longest path that matches. It returns
// the value of the first such line, or the longest crawl-delay, and the number of different values in these lines.
func (f *RobotsTxt) Extension(key, token, path string) (value string, lines int) {
	values := f.Extensions(key, token, path)
	if len(values) == 0 {
		return "", 0
	}
	if key == "crawl-delay" {
		return longestDelay(values), len(values)
	}
	return values[0], len(values)
}

// longestDelay returns the value that a client obeys if it combines groups with several crawl-delays. A value that is not a
// number is shorter than all others.
func longestDelay(values []string) string {
	seconds := func(value string) float64 {
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return -1
		}
		return n
	}
	return slices.MaxFunc(values, func(a, b string) int { return cmp.Compare(seconds(a), seconds(b)) })
}

// Extensions is like Extension, but returns the different values of all lines with the longest path. In a group that
// combines the groups of several purposes, there may be more than one value.
func (f *RobotsTxt) Extensions(key, token, path string) (values []string) {
	best := -1
	for _, r := range f.Group(token) {
		if r.Key != key || len(r.Path) < best || r.Path != "" && !MatchPath(r.Path, path) {
			continue
		}
		if len(r.Path) > best {
			best, values = len(r.Path), nil
		}
		if !slices.Contains(values, r.Value) {
			values = append(values, r.Value)
		}
	}
	return values
}

var (
	naiveMu sync.Mutex
	naiveRe = map[string]*regexp.Regexp{}
)

// MatchPath reports whether a pattern of RFC 9309 section 2.2.3 matches a path. It converts the pattern to a regular
// expression.
func MatchPath(pattern, path string) bool {
	naiveMu.Lock()
	defer naiveMu.Unlock()
	re := naiveRe[pattern]
	if re == nil {
		body, anchored := strings.CutSuffix(pattern, "$")
		text := "^(?s:" + strings.ReplaceAll(regexp.QuoteMeta(body), `\*`, ".*") + ")"
		if anchored {
			text += "$"
		}
		re = regexp.MustCompile(text)
		naiveRe[pattern] = re
	}
	return re.MatchString(path)
}

// ForPurposes returns the file as a client with the given purposes reads it (draft-illyes-rep-purpose-00 section 2.1).
// If a group names the client itself, the client obeys that group. Otherwise, it obeys the groups of all its purposes
// together or, if there are none, the group of "*". names lists the purposes whose groups apply.
func (f *RobotsTxt) ForPurposes(token string, purposes []string) (read *RobotsTxt, names []string) {
	if _, named := f.Groups[strings.ToLower(token)]; named {
		return f, nil
	}
	var all []RobotsLine
	for _, p := range purposes {
		if g, ok := f.Groups[PurposeGroup+strings.ToLower(p)]; ok {
			all, names = append(all, g...), append(names, p)
		}
	}
	if names == nil {
		return f, nil
	}
	return &RobotsTxt{Groups: map[string][]RobotsLine{strings.ToLower(token): all}}, names
}
