// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"regexp"
	"strings"
	"sync"
)

// naiveFile is a robots.txt as plainly as RFC 9309 can be read.
type naiveFile struct {
	groups map[string][]naiveRule // by token in lower case
}

type naiveRule struct{ key, path, value string }

// readNaively reads a file. Lines of a key that is in no group are left out.
func readNaively(body string) *naiveFile {
	f := &naiveFile{groups: map[string][]naiveRule{}}
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
			if _, ok := f.groups[strings.ToLower(value)]; !ok {
				f.groups[strings.ToLower(value)] = nil
			}
			continue
		case "allow", "disallow":
			ruled = true
		case "crawl-delay", "content-signal":
		case "content-usage", "app-directives":
		default:
			continue
		}
		r := naiveRule{key: key, path: "", value: value}
		switch {
		case key == "allow" || key == "disallow":
			r.path = value
		case strings.HasPrefix(value, "/") || strings.HasPrefix(value, "*/"):
			path, rest, _ := strings.Cut(value, " ")
			r.path, r.value = path, strings.TrimSpace(rest)
		}
		for _, t := range tokens {
			f.groups[t] = append(f.groups[t], r)
		}
	}
	return f
}

// group is the rules for a token; parsers look for it without case.
func (f *naiveFile) group(token string) []naiveRule {
	if g, ok := f.groups[strings.ToLower(token)]; ok {
		return g
	}
	return f.groups["*"]
}

// allowed is RFC 9309 section 2.2.2: the most octets win, a tie allows.
func (f *naiveFile) allowed(token, path string) bool {
	best, allow := -1, true
	for _, r := range f.group(token) {
		if r.key != "allow" && r.key != "disallow" || r.path == "" || !naiveMatch(r.path, path) {
			continue
		}
		n := len(r.path)
		if n > best || n == best && r.key == "allow" {
			best, allow = n, r.key == "allow"
		}
	}
	return allow
}

// extension is the value of the longest path of an extension's lines, and how
// many values lines of that length have.
func (f *naiveFile) extension(key, token, path string) (value string, lines int) {
	best := -1
	for _, r := range f.group(token) {
		if r.key != key || r.path != "" && !naiveMatch(r.path, path) {
			continue
		}
		switch n := len(r.path); {
		case n > best:
			best, value, lines = n, r.value, 1
		case n == best && r.value != value:
			lines++
		}
	}
	return value, lines
}

var (
	naiveMu sync.Mutex
	naiveRe = map[string]*regexp.Regexp{}
)

func naiveMatch(pattern, path string) bool {
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
