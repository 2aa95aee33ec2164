// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/ascii"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// yandex is a name that an engine documents and that is no crawler's
// (https://yandex.com/support/webmaster/controlling-robot/meta-robots.html).
const yandex = "yandex"

// Known implements headscan.Names: robots, the names of this set's elements, its
// tokens and yandex.
func (s *Set) Known(name []byte) string {
	var buf [maxToken]byte
	for len(name) > 0 && ascii.IsSpace(name[0]) {
		name = name[1:]
	}
	for len(name) > 0 && ascii.IsSpace(name[len(name)-1]) {
		name = name[:len(name)-1]
	}
	if len(name) == 0 || len(name) > len(buf) {
		return ""
	}
	for i, c := range name {
		if neverInToken(c) {
			return ""
		}
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		buf[i] = c
	}
	lower := buf[:len(name)]
	if string(lower) == Everyone {
		return Everyone
	}
	if _, ok := s.tokens[string(lower)]; ok {
		return string(lower)
	}
	for i := range s.elements {
		if s.elements[i].lower == string(lower) {
			return s.elements[i].lower
		}
	}
	if string(lower) == yandex {
		return yandex
	}
	return ""
}

// Speaks implements headscan.Names: an element with none of the rules that engines know
// has some other purpose, whatever it is called, such as ACAP's permissions or a key by
// which a service knows its sites.
func (s *Set) Speaks(audience, content string) bool {
	if e := s.find(audience); e != nil && e.content != "" {
		return content != ""
	}
	return robotsrule.HasRule(content)
}

// deniedTo returns the rules of other elements that the readers of an element for
// the audience obey too: everyone's, and those for the crawlers that read the name.
// A permission in the element must not contradict them, because some engines let
// permissions win (Yandex documents it).
func (s *Set) deniedTo(audience string) robotsrule.Set {
	rules := s.everyone
	for i := range s.elements {
		p := &s.elements[i]
		if audience == yandex && strings.HasPrefix(p.lower, yandex) || audience == "msnbot" && p.lower == "bingbot" ||
			audience == "googlebot-news" && p.lower == "googlebot" {
			rules = rules.Union(p.rules)
		}
	}
	return rules
}
