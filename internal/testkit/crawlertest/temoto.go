// SPDX-License-Identifier: Apache-2.0

package crawlertest

import "strings"

// TemotoException names the difference between temoto/robotstxt and RFC 9309 that explains its
// answer about a path. In a pattern with "*" or "$" it counts the bytes of a regular
// expression, none for "*" at the end, and finds it anywhere in the path. Among equal lengths
// the first in the file wins.
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
			match = MatchPath("*"+p, path)
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
