// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"fmt"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// Kind is a fixed, short word for a Problem, fit for a metric's label.
type Kind string

// Kinds of problems: Build's are about the policy, Apply's about what an upstream or another handler set.
const (
	// Malformed: an unreadable member was dropped; it would have made readers discard the whole field.
	Malformed Kind = "malformed"
	// Repaired: a line was read as what its author must have meant.
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

type Problem struct {
	Kind  Kind
	Field string // the header field; empty for all of them
	Text  string // the line, member or token in question, shortened
}

// String says what the problem is in a sentence without a full stop.
func (p Problem) String() string {
	switch p.Kind {
	case Malformed:
		return fmt.Sprintf("%s: %q cannot be understood and was left out", p.Field, p.Text)
	case Repaired:
		return fmt.Sprintf("%s: the line %q is malformed; it was read as what it most likely means", p.Field, p.Text)
	case TooLong:
		return fmt.Sprintf("%s: %q does not fit in %d bytes and was left out", p.Field, p.Text, Limit)
	case Unread:
		return fmt.Sprintf("%s: the upstream sent more than %d bytes; the rest, from %q on, was left out", p.Field, readLimit, p.Text)
	case BadToken:
		return fmt.Sprintf("the name %q is not valid in a header field; its rules were left out", p.Text)
	case NoRobotsTag:
		return fmt.Sprintf("%s cannot name %q; its rules are in %s only", p.Field, p.Text, XRobotsTagField)
	case RuleLost:
		return fmt.Sprintf("%s has no spelling for the rule %q", p.Field, p.Text)
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

// readXRobotsTag reads an upstream's lines of X-Robots-Tag. Each line starts with rules for everyone; a user
// agent and a colon turn to that agent. All rules for one audience are one list, because one author may have
// spread it over lines. Nothing is malformed: what is unknown stays. A line in the syntax of Robots-Tag is read as one
// (draft-illyes-repext section 2.1.1).
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

// newSyntax returns the members of a line that is a List as in Robots-Tag and has known rules, such as *;noindex, else nil.
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

// splitScopes calls yield with the rules of a line of X-Robots-Tag and the user agents they are for.
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

// readsBack reports whether a line of X-Robots-Tag is exactly these rules for everyone.
func readsBack(text string, rules robotsrule.Set) bool {
	found, _ := readXRobotsTag([]string{text})
	return len(found) == 1 && found[Everyone] == rules
}

func lastComma(line string) int { return strings.LastIndexByte(line, ',') }

// eachLine calls read with each line up to readLimit bytes. A longer line is cut where cut says, which is reported.
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
