// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"fmt"
	"strings"
)

// Kind says what a Problem is. It is a fixed, short word, fit for a metric's
// label.
type Kind string

// The kinds of problem. Those of Build concern the policy, those of Apply what
// an upstream or another handler has set.
const (
	// Malformed: a line that nobody can read was dropped; left in, it would have
	// made readers discard the whole field.
	Malformed Kind = "malformed"
	// Repaired: a line was read as what its author must have meant, such as
	// X-Robots-Tag syntax in Robots-Tag, where it means nothing.
	Repaired Kind = "repaired"
	// TooLong: a member, or its unknown rules, did not fit in the field's limit.
	TooLong Kind = "too-long"
	// Unread: an upstream's field is longer than what is read of it.
	Unread Kind = "unread"
	// BadToken: the audience's token cannot be written in any field.
	BadToken Kind = "bad-token"
	// NoRobotsTag: the token has no spelling in Robots-Tag; X-Robots-Tag has it.
	NoRobotsTag Kind = "no-robots-tag"
	// RuleLost: an unknown rule has no spelling in the field.
	RuleLost Kind = "rule-lost"
)

const (
	maxProblems    = 16
	maxProblemText = 160
)

// Problem tells of something that could not be written or understood.
type Problem struct {
	Kind  Kind
	Field string // the header field; empty for all of them
	Text  string // the line, member or token in question, shortened
}

// String says what the problem is in a sentence without a full stop.
func (p Problem) String() string {
	switch p.Kind {
	case Malformed:
		return fmt.Sprintf("%s: the line %q cannot be understood and was left out", p.Field, p.Text)
	case Repaired:
		return fmt.Sprintf("%s: the line %q is malformed; it was read as what it most likely means", p.Field, p.Text)
	case TooLong:
		return fmt.Sprintf("%s: %q does not fit in %d bytes and was left out", p.Field, p.Text, Limit)
	case Unread:
		return fmt.Sprintf("%s: the upstream sent more than %d bytes; the rest, from %q on, was left out", p.Field, readLimit, p.Text)
	case BadToken:
		return fmt.Sprintf("the name %q cannot stand in a header field; its rules were left out", p.Text)
	case NoRobotsTag:
		return fmt.Sprintf("%s cannot name %q; its rules stand in %s only", p.Field, p.Text, XRobotsTagField)
	case RuleLost:
		return fmt.Sprintf("%s has no spelling for the rule %q", p.Field, p.Text)
	}
	return fmt.Sprintf("%s: %s: %q", p.Field, p.Kind, p.Text)
}

// addProblem appends a problem unless there are enough of them already, and
// shortens its text, so that a hostile upstream cannot fill a log.
func addProblem(problems []Problem, kind Kind, field, text string) []Problem {
	if len(problems) >= maxProblems {
		return problems
	}
	if len(text) > maxProblemText {
		text = strings.ToValidUTF8(text[:maxProblemText], "") + "…"
	}
	return append(problems, Problem{kind, field, strings.Clone(text)})
}
