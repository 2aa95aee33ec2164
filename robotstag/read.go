// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"fmt"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// Kind identifies the kind of a Problem. It is a fixed, short word that is suitable as a metric's label.
type Kind string

// The kinds of problems. Build reports problems of the policy, and Apply reports problems of headers that an
// upstream or another handler has set.
const (
	// Malformed means that an unreadable member was dropped. Readers would have discarded the whole field because
	// of it.
	Malformed Kind = "malformed"
	// Repaired means that a malformed line was read in its most likely meaning.
	Repaired Kind = "repaired"
	// TooLong means that a member was left out completely, or without its unknown rules, because the field would have
	// become too long.
	TooLong Kind = "too-long"
	// Unread means that an upstream's field is too long, so that the end of the field was not read.
	Unread Kind = "unread"
	// BadToken means that the token of an audience cannot be written in any field.
	BadToken Kind = "bad-token"
	// NoRobotsTag means that the token of an audience can be written in X-Robots-Tag, but not in Robots-Tag.
	NoRobotsTag Kind = "no-robots-tag"
	// RuleLost means that an unknown rule cannot be written in the field.
	RuleLost Kind = "rule-lost"
)

const (
	maxProblems    = 16
	maxProblemText = 160
)

// Problem is a part of a header that could not be written or read exactly.
type Problem struct {
	Kind  Kind
	Field string // the header field, or "" for all fields
	Text  string // the shortened line, member or token with the problem
}

// String describes the problem in a sentence without a full stop.
func (p Problem) String() string {
	switch p.Kind {
	case Malformed:
		return fmt.Sprintf("%s: %q cannot be read, and was left out", p.Field, p.Text)
	case Repaired:
		return fmt.Sprintf("%s: the line %q is malformed; it was read as what it most likely means", p.Field, p.Text)
	case TooLong:
		return fmt.Sprintf("%s: %q does not fit in %d bytes and was left out", p.Field, p.Text, Limit)
	case Unread:
		return fmt.Sprintf("%s: the upstream sent more than %d bytes; the rest, which begins with %q, was left out", p.Field, readLimit, p.Text)
	case BadToken:
		return fmt.Sprintf("the crawler name %q is not valid in a header field; the rules for this crawler were left out", p.Text)
	case NoRobotsTag:
		return fmt.Sprintf("%s cannot name the crawler %q, so the rules for this crawler are only in %s", p.Field, p.Text, XRobotsTagField)
	case RuleLost:
		return fmt.Sprintf("%s cannot express the rule %q, which was left out", p.Field, p.Text)
	}
	return fmt.Sprintf("%s: %s: %q", p.Field, p.Kind, p.Text)
}

// addProblem appends a problem with shortened text, up to maxProblems, so that an upstream cannot fill a log.
func addProblem(problems []Problem, kind Kind, field, text string) []Problem {
	if len(problems) >= maxProblems {
		return problems
	}
	if len(text) > maxProblemText {
		text = strings.ToValidUTF8(text[:maxProblemText], "") + "…"
	}
	return append(problems, Problem{kind, field, strings.Clone(text)})
}

// readXRobotsTag reads an upstream's lines of X-Robots-Tag. At the start of a line the rules are for everyone;
// after a user agent and a colon they are for that agent. All rules for one audience are read as one list, because
// one author may have spread them over several lines. No line is malformed, because unknown rules are kept. A line
// in the syntax of Robots-Tag is read in that syntax (draft-illyes-repext section 2.1.1).
func readXRobotsTag(lines []string) (audiences, []Problem) {
	lists := map[string]*strings.Builder{}
	add := func(agent, rule string) {
		b := lists[agent]
		if b == nil {
			b = &strings.Builder{}
			lists[agent] = b
		}
		b.WriteString(rule)
		b.WriteByte(',')
	}
	problems := eachLine(lines, XRobotsTagField, lastComma, func(line string, p []Problem) []Problem {
		members := newSyntax(line)
		for _, m := range members {
			add(m.Token, m.Rules.String())
		}
		if members == nil {
			splitScopes(line, add)
		}
		return p
	})
	found := audiences{}
	for agent, list := range lists {
		found[agent] = robotsrule.Parse(list.String())
	}
	return found, problems
}

// newSyntax reads a line of X-Robots-Tag that has the syntax of Robots-Tag, such as *;noindex. It returns the members
// of the line. If the line does not have this syntax, or has no known rules, it returns nil.
func newSyntax(line string) []Member {
	if !strings.Contains(line, ";") {
		return nil
	}
	members, odd, how := readRobotsTagLine(strings.Trim(line, " \t"))
	known := false
	for _, m := range members {
		if m.Token != Everyone && (!isKey(m.Token) || robotsrule.IsRule(m.Token)) {
			return nil
		}
		known = known || !m.Rules.WithoutUnknown().IsEmpty()
	}
	if how != asWritten || len(odd) > 0 || !known {
		return nil
	}
	return members
}

// splitScopes calls yield with each rule of a line of X-Robots-Tag and the user agent that it applies to.
func splitScopes(line string, yield func(agent, rule string)) {
	agent := Everyone
	for line != "" {
		rule, rest := robotsrule.Cut(line)
		if name, _, ok := strings.Cut(rule, ":"); ok {
			token := strings.ToLower(strings.Trim(name, " \t"))
			if isScope(token) {
				agent = token
				line = line[len(name)+1:]
				continue
			}
		}
		if strings.Trim(rule, " \t") != "" {
			yield(agent, rule)
		}
		line = rest
	}
}

// readsBack reports whether readers of text, a line of X-Robots-Tag, find exactly the given rules for everyone.
func readsBack(text string, rules robotsrule.Set) bool {
	found, _ := readXRobotsTag([]string{text})
	return len(found) == 1 && found[Everyone] == rules
}

func lastComma(line string) int { return strings.LastIndexByte(line, ',') }

// eachLine calls read with each line, until the lines together exceed readLimit bytes. It cuts the line that exceeds
// this limit, calls read with its beginning, and reports the rest as a problem. The function cut returns the index
// where a line can be cut.
func eachLine(lines []string, field string, cut func(string) int, read func(string, []Problem) []Problem) (problems []Problem) {
	left := readLimit
	for _, line := range lines {
		if len(line) > left {
			end := max(cut(line[:left]), 0)
			problems = addProblem(problems, Unread, field, strings.TrimLeft(line[end:], ", "))
			if end > 0 {
				problems = read(line[:end], problems)
			}
			return problems
		}
		left -= len(line)
		problems = read(line, problems)
	}
	return problems
}
