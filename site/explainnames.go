// SPDX-License-Identifier: Apache-2.0

package site

import (
	"net/url"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// readable is a URL with its host as it was asked for, where url.URL would write
// letters beyond ASCII as escapes. It is without a user's name and password.
func readable(u *url.URL) string {
	text := u.Scheme + "://" + u.Host + u.EscapedPath()
	if u.RawQuery != "" || u.ForceQuery {
		text += "?" + u.RawQuery
	}
	return text
}

// meant is the token of the crawler that an agent which is nobody's may be a
// misspelling of, or "". Of a whole User-Agent only words that call themselves a
// crawler are looked at: browsers are nobody's, and meant to be.
func (s *Site) meant(agent string) string {
	words := strings.FieldsFunc(agent, func(c rune) bool { return strings.ContainsRune(" \t;,()/+", c) })
	whole := strings.ContainsAny(agent, " \t;(")
	for _, word := range words {
		lower := strings.ToLower(word)
		if whole && (len(word) < 6 || !strings.Contains(lower, "bot") && !strings.Contains(lower, "crawler") && !strings.Contains(lower, "spider")) {
			continue
		}
		if name := policyfile.Nearest(word, tokensOf(s.Policy)); name != "" {
			return name
		}
		if !whole {
			break // what follows is a version
		}
	}
	return ""
}

// tokensOf lists the product tokens of a policy's crawlers.
func tokensOf(p *policy.Policy) (tokens []string) {
	for _, c := range p.Crawlers {
		tokens = append(tokens, c.Token)
	}
	return tokens
}
