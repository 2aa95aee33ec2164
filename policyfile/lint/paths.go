// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// AsWritten returns a path or a word as a YAML value within braces: in quotation marks if YAML needs them.
func AsWritten(s string) string {
	if strings.ContainsAny(s, "*, #{}[]&!|>'\"%@`") {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return s
}

var regexpSigns = regexp.MustCompile(`\.\*|\.\+|\([^)]*\|[^)]*\)|\\[dws.]|\[[^\]]*-[^\]]*\]|^/?\^|\(\?|\{[^{}]*,[^{}]*\}`)

// regexps reports paths that look like regular expressions, because in a path, only "*" and a final "$" are special.
func (l *linter) regexps() {
	l.each(func(_ int, s *policy.Statement) {
		text, err := url.PathUnescape(s.Pattern.String())
		if err != nil {
			return
		}
		sign := regexpSign(text)
		if sign == "" {
			return
		}
		kind := "regular expression"
		if sign[0] == '{' {
			kind = "pattern of a shell"
		}
		fix := "write a line for each alternative"
		if plain := PlainPath(text); plain != "" {
			fix = "write " + quote(plain)
		}
		l.report("looks-like-regexp", s.Pos, fmt.Sprintf(`%s looks like a %s. In a path, only "*" (any characters) and a "$" at the end (the end of the address) are special; %s`, quote(text), kind, fix))
	})
}

// IsRegexp reports whether a text looks like a regular expression.
func IsRegexp(text string) bool { return regexpSign(text) != "" }

// regexpSign returns a part of the text that looks like a regular expression, or "". A text with two dots before a "*",
// such as "/compare/*..*", is not a regular expression.
func regexpSign(text string) string {
	return regexpSigns.FindString(strings.ReplaceAll(text, "..", ""))
}

var (
	anyCharacters = regexp.MustCompile(`(?:\\[dwsS]|\[[^\]]*\]|\.)[*+]\??|\\[dwsS]`)
	escaped       = regexp.MustCompile(`\\([./?&=_-])`)
	wildcards     = regexp.MustCompile(`\*{2,}`)
)

// PlainPath returns the path that a regular expression probably means, or "".
func PlainPath(text string) string {
	anchored := strings.HasPrefix(text, "^") || strings.HasPrefix(text, "/")
	path := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(text, "(?i)"), "/^"), "^")
	path = wildcards.ReplaceAllString(anyCharacters.ReplaceAllString(path, "*"), "*")
	if strings.ContainsAny(escaped.ReplaceAllString(path, ""), `\^()|[]{}+?`) {
		return ""
	}
	path = strings.TrimSuffix(escaped.ReplaceAllString(path, "$1"), "*$")
	switch {
	case strings.HasPrefix(path, "/"):
	case anchored || strings.HasPrefix(path, "*"):
		path = "/" + path
	default:
		path = "/*" + path
	}
	if path == "/*" {
		path = "/"
	}
	if _, err := pathpattern.Parse(path); err != nil || IsRegexp(path) {
		return ""
	}
	return path
}

// enforcedEnds reports patterns such as /a.pdf$ in rules that the server enforces. The "$" means that only this exact
// address is blocked. Some servers also serve the file at other addresses, such as /a.pdf?x, which the pattern does not
// match.
func (l *linter) enforcedEnds() {
	for i := range l.rules {
		r := &l.rules[i]
		if l.modeOf(r) <= policy.ModeOff {
			continue
		}
		var at *policy.Statement
		n := 0
		for j := range r.Statements {
			if s := &r.Statements[j]; l.endsFile(r, s) {
				if n++; at == nil {
					at = s
				}
			}
		}
		if at == nil {
			continue
		}
		more := ""
		if n > 1 {
			more = fmt.Sprintf(", and do the same for %d more of this rule's paths", n-1)
		}
		text := at.Pattern.String()
		l.report("enforced-end", at.Pos, fmt.Sprintf(`because of the "$", this line blocks %[1]s, but not %[1]s?x, %[1]s%%20 and %[1]s%%00, where some servers serve the same file; write %[1]s without "$"%[2]s`,
			strings.TrimSuffix(text, "$"), more))
	}
}

// endsFile reports whether the statement s disallows a single file with a pattern such as /a.pdf$. It returns false if
// another statement of the rule r disallows the longer addresses too, such as /a.pdf?x.
func (l *linter) endsFile(r *policy.Rule, s *policy.Statement) bool {
	text := s.Pattern.String()
	if s.Allow || s.Usage != policy.Crawl || !s.Pattern.Anchored() || !strings.Contains(text[strings.LastIndexByte(text, '/')+1:], ".") {
		return false
	}
	return !slices.ContainsFunc(r.Statements, func(o policy.Statement) bool {
		return !o.Allow && o.Usage == policy.Crawl && !o.Pattern.Anchored() && o.Pattern.Covers(s.Pattern)
	})
}
