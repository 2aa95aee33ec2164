// SPDX-License-Identifier: Apache-2.0

package robotstag

import "github.com/robotspolicy/caddy-robots-policy/robotsrule"

// maxToken is the longest product token, in bytes, that is taken for one.
const maxToken = 128

// isAgent reports whether name, in lowercase, can stand before the colon in
// X-Robots-Tag and be understood there as a user agent: RFC 9309 §2.2.1 allows
// letters, hyphen and underscore; crawlers in use have digits and a few other
// characters too. A rule's own name is none.
func isAgent(name string) bool {
	if name == "" || len(name) > maxToken {
		return false
	}
	letter := false
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z':
			letter = true
		case '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == '!', c == '+', c == '/':
		default:
			return false
		}
	}
	return letter && !robotsrule.IsRule(name)
}

// isScope reports whether name, in lowercase, turns what follows it and a colon in
// X-Robots-Tag to an audience.
func isScope(name string) bool { return name == Everyone || isAgent(name) }

// isKey reports whether a token that isAgent accepts is also a Token and a key of
// RFC 8941, which makes one Robots-Tag member fit both drafts.
func isKey(name string) bool {
	if name == "" || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}
