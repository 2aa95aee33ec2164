// SPDX-License-Identifier: Apache-2.0

package crawlertest

import "strings"

// TemotoException explains an answer of temoto/robotstxt that is wrong according to RFC 9309. got is this answer:
// whether the crawler may fetch the path. For a pattern with "*" or "$", temoto/robotstxt compares the length of the
// corresponding regular expression, without a "*" at the end. It also finds such a pattern anywhere in the path, and
// every "$" means the end of the path. Among patterns of equal length, the first one in the file wins. TemotoException
// returns the difference that leads to got, or "" if these differences do not lead to it.
func TemotoException(f *RobotsTxt, token, path string, got bool) string {
	best, allow, anywhere := 0, true, false
	for _, r := range f.Group(token) {
		p := strings.TrimRight(r.Path, "*")
		if r.Key != "allow" && r.Key != "disallow" || p == "" {
			continue
		}
		n, match := len(p), strings.HasPrefix(path, p)
		if strings.ContainsAny(p, "*$") {
			n = len(strings.NewReplacer("*", "xx", ".", "xx", "?", "xx", "+", "xx", "(", "xx", ")", "xx", "[", "xx", "]", "xx").Replace(p))
			match = matchTemoto(p, path)
			anywhere = anywhere || match && !MatchPath(p, path)
		}
		if match && n > best {
			best, allow = n, r.Key == "allow"
		}
	}
	switch {
	case allow != got:
		return ""
	case anywhere:
		return "patterns with wildcards match anywhere in the path"
	}
	return "lengths of patterns with wildcards"
}

// matchTemoto matches a pattern with "*" or "$" as temoto/robotstxt does.
func matchTemoto(pattern, path string) bool {
	start, atEnd := strings.TrimRight(pattern, "$"), strings.HasSuffix(pattern, "$")
	if strings.Contains(start, "$") {
		return false // something would have to follow the end of the path
	}
	if atEnd {
		start += "$"
	}
	return MatchPath("*"+start, path)
}
