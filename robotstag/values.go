// SPDX-License-Identifier: Apache-2.0

// Package robotstag builds the header fields that tell crawlers what they may do with a response. It merges them
// with the same fields of an upstream. The fields are:
//
//   - Robots-Tag (draft-illyes-repext-03), a List of product tokens with rules as parameters. The package writes it
//     so that it is also a valid Dictionary of draft -02, and valid under RFC 8941.
//   - X-Robots-Tag, which search engines document.
//   - The fields of rights.Vocabularies, with preferences about AI and search.
//
// Draft -03 forbids new uses of X-Robots-Tag, but no engine documents yet that it reads Robots-Tag. So the package
// writes both with the same rules. A rule in one of these fields can only restrict. Crawlers obey the rules of all
// lines and fields that are for everyone or for them. So a line for one crawler contains only its additional rules, and
// no line can exempt a crawler from the rules for everyone.
package robotstag

import (
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// The canonical names of the fields.
const (
	RobotsTagField  = "Robots-Tag"
	XRobotsTagField = "X-Robots-Tag"
)

const (
	// Limit is the maximum number of bytes written for one field, including all lines of X-Robots-Tag. Readers may
	// ignore the rest (draft-illyes-repext-03).
	Limit = 8 << 10
	// readLimit is the maximum number of bytes that are read of an upstream's field, including all lines.
	readLimit = 16 << 10
)

// Everyone is the token of the member for all crawlers.
const Everyone = "*"

// Member holds the rules for one audience. Its token is a product token in any case, or Everyone.
type Member struct {
	Token string
	Rules robotsrule.Set
}

// Values holds the header fields for a page. They must not be changed. A field that is not sent has no lines.
type Values struct {
	RobotsTag   []string                           // one line
	XRobotsTag  []string                           // the line for everyone first; if there are many audiences, some share a line
	Preferences [len(rights.Vocabularies)][]string // one line for each vocabulary
	Lift        robotsrule.Lift                    // restrictions to remove from the upstream's fields

	star    robotsrule.Set
	members []Member // sorted by token, in lowercase; without Everyone
	usage   Usage
}

// Build returns the header fields for members and usage at the time now. An unavailable_after that has passed
// becomes noindex. Members with the same token are combined. The problems describe the parts that could not be written.
func Build(members []Member, usage Usage, now time.Time) (*Values, []Problem) {
	v := &Values{usage: usage}
	byToken := map[string]robotsrule.Set{}
	var problems []Problem
	for _, m := range members {
		token := strings.ToLower(m.Token)
		if !isScope(token) {
			problems = addProblem(problems, BadToken, "", m.Token)
			continue
		}
		byToken[token] = byToken[token].Union(m.Rules.Expired(now))
	}
	v.star = byToken[Everyone]
	delete(byToken, Everyone)
	v.members = sortedMembers(byToken)
	for i := range v.members {
		if !isKey(v.members[i].Token) && !v.members[i].Rules.Restrictive().IsEmpty() {
			problems = addProblem(problems, NoRobotsTag, RobotsTagField, v.members[i].Token)
		}
	}
	var more []Problem
	v.RobotsTag, more = robotsTag.compose(v, audiences{})
	problems = append(problems, more...)
	v.XRobotsTag, more = xRobotsTag.compose(v, audiences{})
	problems = append(problems, more...)
	for i, f := range rights.Vocabularies {
		if line := usage.text(f); line != "" {
			v.Preferences[i] = []string{line}
		}
	}
	return v, problems
}

// Send reports whether v has at least one header field.
func (v *Values) Send() bool {
	return v != nil && (v.RobotsTag != nil || v.XRobotsTag != nil || slices.ContainsFunc(v.Preferences[:], func(lines []string) bool { return lines != nil }))
}

func sortedMembers(byToken map[string]robotsrule.Set) []Member {
	members := make([]Member, 0, len(byToken))
	for token, rules := range byToken {
		members = append(members, Member{token, rules})
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Token, b.Token) })
	return members
}

const (
	maxToken = 128
	letters  = "abcdefghijklmnopqrstuvwxyz"
)

// isAgent reports whether readers of X-Robots-Tag take a name before a colon as the name of a crawler, as in
// "examplebot: noindex". The name must be in lower case. It may have letters, hyphens and underscores (RFC 9309 section
// 2.2.1), and other characters that crawlers in use have. It must not be the name of a rule.
func isAgent(name string) bool {
	return len(name) <= maxToken && strings.Trim(name, letters+"0123456789-_.!+/") == "" && strings.ContainsAny(name, letters) &&
		!robotsrule.IsRule(name)
}

// isScope reports whether a name in lower case tells who must obey the rules: it is Everyone, or the name of a crawler
// (see isAgent).
func isScope(name string) bool { return name == Everyone || isAgent(name) }

// isKey reports whether a token is also a Token and a key of RFC 8941. Only such a token can be written both in the
// List of draft -03 and in the Dictionary of draft -02.
func isKey(name string) bool {
	return strings.Trim(name, letters+"0123456789-_.") == "" && strings.IndexAny(name, letters) == 0
}
