// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// regexpSigns are what a regular expression has and hardly any address does.
var regexpSigns = regexp.MustCompile(`\.\*|\.\+|\([^)]*\|[^)]*\)|\\[dws.]|\[[^\]]*-[^\]]*\]|^/?\^|\(\?`)

// regexps finds paths that look like regular expressions, which match the very
// characters that they are made of.
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
		fix := `"*" stands for any characters and "$" at the end for the end of the address; write a line for each alternative`
		if plain := PlainPath(text); plain != "" {
			fix = fmt.Sprintf(`"*" alone stands for any characters: write %s`, quote(plain))
		}
		l.report("looks-like-regexp", s.Pos, fmt.Sprintf("%s looks like a regular expression, and paths are not: %s is matched as it stands; %s", quote(text), quote(sign), fix))
	})
}

// IsRegexp reports whether a text looks like a regular expression.
func IsRegexp(text string) bool { return regexpSign(text) != "" }

// regexpSign is what makes a text look like one. Two dots before a "*" are those of an
// address: "/compare/*..*" is for two versions with ".." between them.
func regexpSign(text string) string {
	return regexpSigns.FindString(strings.ReplaceAll(text, "..", ""))
}

var (
	anyCharacters = regexp.MustCompile(`(?:\\[dwsS]|\[[^\]]*\]|\.)[*+]\??|\\[dwsS]`)
	escaped       = regexp.MustCompile(`\\([./?&=_-])`)
	wildcards     = regexp.MustCompile(`\*{2,}`)
)

// PlainPath is a path that matches what a regular expression is meant to match, as
// far as "*" and "$" can say it, or "".
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
