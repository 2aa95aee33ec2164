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

// RobotsLine is a line of a group. Path is that of Allow and Disallow, or of an
// extension that has one; Value the rest.
type RobotsLine struct{ Key, Path, Value string }

// ReadRobotsTxt reads a file. Lines of a key that is in no group are left out.
func ReadRobotsTxt(body string) *RobotsTxt {
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
		switch key {
		case "user-agent":
			if ruled {
				tokens, ruled = nil, false
			}
			tokens = append(tokens, strings.ToLower(value))
			if _, ok := f.Groups[strings.ToLower(value)]; !ok {
				f.Groups[strings.ToLower(value)] = nil
			}
			continue
		case "allow", "disallow":
			ruled = true
		case "crawl-delay", "content-signal":
		case "content-usage", "app-directives":
		default:
			continue
		}
		r := RobotsLine{Key: key, Value: value}
		switch {
		case key == "allow" || key == "disallow":
			r.Path = value
		case strings.HasPrefix(value, "/") || strings.HasPrefix(value, "*/"):
			path, rest, _ := strings.Cut(value, " ")
			r.Path, r.Value = path, strings.TrimSpace(rest)
		}
		for _, t := range tokens {
			f.Groups[t] = append(f.Groups[t], r)
		}
	}
	return f
}

// Group is the rules for a token; parsers look for it without case.
func (f *RobotsTxt) Group(token string) []RobotsLine {
	if g, ok := f.Groups[strings.ToLower(token)]; ok {
		return g
	}
	return f.Groups["*"]
}

// Allowed is RFC 9309 section 2.2.2: the most octets win, a tie allows.
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

// AllowedTo is Allowed for a crawler that obeys the first of some names that has
// a group, and else the group of "*", or none.
func (f *RobotsTxt) AllowedTo(names []string, ignoresStar bool, path string) bool {
	for _, n := range names {
		if _, ok := f.Groups[strings.ToLower(n)]; ok {
			return f.Allowed(n, path)
		}
	}
	return ignoresStar || f.Allowed("*", path)
}
