// SPDX-License-Identifier: Apache-2.0

// Package crawlertest reads what a site publishes the way the documents, or
// other people's parsers, tell a crawler to. Tests hold the answers to the
// policy: nothing here shares code with the packages that write.
package crawlertest

import (
	"regexp"
	"strings"
	"sync"
)

// RobotsTxt is a file as plainly as RFC 9309 can be read.
type RobotsTxt struct {
	Groups map[string][]RobotsLine // by token in lower case
}

// RobotsLine is a line of a group. Path is the path of Allow and Disallow, or of an extension
// that has one. Value is the rest.
type RobotsLine struct{ Key, Path, Value string }

// ReadRobotsTxt reads a file. Lines of a key that is in no group are left out.
func ReadRobotsTxt(body string) *RobotsTxt { return read(body, false) }

// ReadWithPurposes reads a file as crawlers do that know User-Agent-Purpose lines,
// which begin a group as User-agent lines do (draft-illyes-rep-purpose-00 section
// 2.1). The group of a purpose has its name in lower case behind PurposeGroup.
func ReadWithPurposes(body string) *RobotsTxt { return read(body, true) }

// PurposeGroup comes before the name of a purpose in RobotsTxt.Groups. No token
// begins with it.
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

// groupLine is a line that belongs to a group.
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

// Group is the rules for a token; parsers look for it without case.
func (f *RobotsTxt) Group(token string) []RobotsLine {
	if g, ok := f.Groups[strings.ToLower(token)]; ok {
		return g
	}
	return f.Groups["*"]
}

// Allowed is RFC 9309 section 2.2.2: the most bytes win, a tie allows.
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

// Extension is the value of the longest path of an extension's lines, and how
// many values lines of that length have.
func (f *RobotsTxt) Extension(key, token, path string) (value string, lines int) {
	best := -1
	for _, r := range f.Group(token) {
		if r.Key != key || r.Path != "" && !MatchPath(r.Path, path) {
			continue
		}
		switch n := len(r.Path); {
		case n > best:
			best, value, lines = n, r.Value, 1
		case n == best && r.Value != value:
			lines++
		}
	}
	return value, lines
}

var (
	naiveMu sync.Mutex
	naiveRe = map[string]*regexp.Regexp{}
)

// MatchPath tries a pattern of RFC 9309 section 2.2.3 as a regular expression.
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

// ForPurposes returns the file for a client with these purposes that no group names. The groups
// of all its purposes are combined. If there are none, it obeys the group of "*". The names
// tell which purposes have a group. A client that a group names obeys that group
// (draft-illyes-rep-purpose-00 section 2.1).
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
