// SPDX-License-Identifier: Apache-2.0

// Package robotstag makes the header fields that tell crawlers what they may do with a response, and merges
// them with an upstream's:
//
//   - Robots-Tag (draft-illyes-repext-03, a List of product tokens with rules as parameters), in bytes that
//     are also a Dictionary of draft -02 and valid by RFC 8941;
//   - X-Robots-Tag, the form that search engines document;
//   - the fields of rights.Vocabularies, with preferences about AI and search.
//
// Draft -03 forbids new uses of the X- name, but no engine documents reading the other yet, so both are
// written and say the same. All of them only restrict, and several lines or fields add up: a line for one
// crawler has only what it adds to everyone's, and no crawler can be exempted from everyone's.
package robotstag

import (
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// The fields' names, in the form that http.Header has them in.
const (
	RobotsTagField  = "Robots-Tag"
	XRobotsTagField = "X-Robots-Tag"
)

const (
	// Limit bounds the value written for one field, in bytes, all lines of X-Robots-Tag together: readers
	// may stop there (draft-illyes-repext-03).
	Limit = 8 << 10
	// readLimit is the number of bytes of an upstream's lines of one field that are read.
	readLimit = 16 << 10
)

// Everyone is the token of the member for all crawlers.
const Everyone = "*"

// Member is the rules for one audience: a product token in any case, or Everyone.
type Member struct {
	Token string
	Rules robotsrule.Set
}

// Values are the header fields of one decision. They must not be changed. An empty field has no lines.
type Values struct {
	RobotsTag   []string                           // one line
	XRobotsTag  []string                           // everyone's first; a line for each audience, or few lines if they are many
	Preferences [len(rights.Vocabularies)][]string // one line each
	Lift        robotsrule.Lift                    // from the fields of the upstream
	Until       time.Time                          // when the values change because an unavailable_after passes, zero for never

	star    robotsrule.Set
	members []Member // sorted by token, in lowercase; without Everyone
	usage   Usage
}

// Build makes the values for members and usage at the time now: an unavailable_after that has passed is
// noindex. Members of one token are united. The problems name what could not be written.
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
		if at, ok := m.Rules.UnavailableAfter(); ok {
			if at = at.Add(time.Second); at.After(now) {
				v.Until = earlier(v.Until, at)
			}
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

// Send reports whether a response gets a field that the upstream does not send.
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

// isAgent reports whether a lower-case name is valid before the colon in X-Robots-Tag as a user agent. Valid
// are letters, hyphen and underscore (RFC 9309 §2.2.1), and characters of crawlers in use, but not a rule's
// name.
func isAgent(name string) bool {
	return len(name) <= maxToken && strings.Trim(name, letters+"0123456789-_.!+/") == "" && strings.ContainsAny(name, letters) &&
		!robotsrule.IsRule(name)
}

// isScope reports whether a lower-case name before a colon in X-Robots-Tag names an audience.
func isScope(name string) bool { return name == Everyone || isAgent(name) }

// isKey reports whether a token is also a Token and a key of RFC 8941, which fits both drafts of Robots-Tag.
func isKey(name string) bool {
	return strings.Trim(name, letters+"0123456789-_.") == "" && strings.IndexAny(name, letters) == 0
}
