// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"fmt"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// reading is how a line of Robots-Tag was understood, from the best to the worst.
type reading int

const (
	asWritten reading = iota
	repaired
	unreadable
)

// readRobotsTag reads an upstream's lines of Robots-Tag, each by itself, because one malformed line voids all.
// Besides the List of draft -03 it reads the Dictionary of -02, as its text (*=(noindex nosnippet)) and as its
// examples have it, and X-Robots-Tag syntax, which is a List of product tokens without rules.
func readRobotsTag(lines []string) (audiences, []Problem) {
	found := audiences{}
	problems := eachLine(lines, RobotsTagField, lastMemberEnd, func(line string, p []Problem) []Problem {
		line = strings.Trim(line, " \t")
		members, how := readRobotsTagLine(line)
		switch how {
		case unreadable:
			return addProblem(p, Malformed, RobotsTagField, line)
		case repaired:
			p = addProblem(p, Repaired, RobotsTagField, line)
		case asWritten:
		}
		for _, m := range members {
			if m.Token != Everyone && !isKey(m.Token) {
				p = addProblem(p, BadToken, RobotsTagField, m.Token)
				continue
			}
			found[m.Token] = found[m.Token].Union(m.Rules)
		}
		return p
	})
	return found, problems
}

func readRobotsTagLine(line string) ([]Member, reading) {
	if line == "" {
		return nil, asWritten
	}
	if !strings.ContainsAny(line, ";=") {
		if members, ok := legacyLine(line); ok {
			return members, repaired
		}
	}
	members, how := readMembers(line)
	if how == unreadable && !strings.Contains(line, ";") {
		if members, ok := legacyLine(line); ok {
			return members, repaired
		}
	}
	return members, how
}

func readMembers(line string) ([]Member, reading) {
	if members, how := readList(line); how != unreadable {
		return members, how
	}
	var members []Member
	for _, text := range splitMembers(line) {
		found, how := readList(text)
		if how == unreadable {
			found, how = readEntry(text)
		}
		if how == unreadable && !strings.Contains(text, `"`) {
			found, how = readList(respell(text))
		}
		if how == unreadable {
			return nil, unreadable
		}
		members = append(members, found...)
	}
	return members, repaired
}

// legacyLine reads a line as X-Robots-Tag, if it contains a known rule.
func legacyLine(line string) ([]Member, bool) {
	known := false
	splitScopes(line, func(_, rule string) {
		name, _, _ := strings.Cut(strings.ReplaceAll(rule, "=", ":"), ":")
		known = known || robotsrule.IsRule(strings.Trim(name, " \t"))
	})
	if !known {
		return nil, false
	}
	found, _ := readXRobotsTag([]string{line})
	return sortedMembers(found), true
}

// respell corrects what draft -02 has in its own examples (capitals, a trailing semicolon or equals sign, a
// missing "*"), and a colon for an equals sign.
func respell(text string) string {
	text = strings.TrimRight(strings.ToLower(strings.Trim(text, " \t")), ";= ")
	if strings.HasPrefix(text, ";") {
		text = Everyone + text
	}
	token, params, ok := strings.Cut(text, ";")
	if !ok {
		return text
	}
	return token + ";" + strings.ReplaceAll(params, ":", "=")
}

// readList reads draft -03's List.
func readList(text string) ([]Member, reading) {
	list, err := httpsfv.UnmarshalList([]string{strings.Trim(text, " \t")})
	if err != nil {
		return nil, unreadable
	}
	members := make([]Member, 0, len(list))
	worst := asWritten
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		if !ok {
			return nil, unreadable
		}
		rules := robotsrule.FromParams(item.Params)
		var m Member
		how := repaired
		switch value := item.Value.(type) {
		case httpsfv.Token:
			m, how = readToken(strings.ToLower(string(value)), rules)
		case string:
			// A token of RFC 9309 that is no Token could be a String.
			m, _ = readToken(strings.ToLower(value), rules)
		default:
			return nil, unreadable
		}
		worst = max(worst, how)
		members = append(members, m)
	}
	return members, worst
}

// readToken takes apart a token that contains a rule: "noindex", "googlebot:noindex", "max-snippet:250".
func readToken(token string, rules robotsrule.Set) (Member, reading) {
	agent, rule, scoped := strings.Cut(token, ":")
	switch {
	case robotsrule.IsRule(agent):
		return Member{Everyone, rules.Union(robotsrule.Parse(token))}, repaired
	case scoped:
		return Member{agent, rules.Union(robotsrule.Parse(rule))}, repaired
	}
	return Member{token, rules}, asWritten
}

// readEntry reads a member of draft -02's Dictionary: a list of rules, or one rule, behind an equals sign.
func readEntry(text string) ([]Member, reading) {
	d, err := httpsfv.UnmarshalDictionary([]string{strings.Trim(text, " \t")})
	if err != nil || len(d.Names()) != 1 {
		return nil, unreadable
	}
	name := d.Names()[0]
	value, _ := d.Get(name)
	var rules robotsrule.Set
	var bare any = true
	switch value := value.(type) {
	case httpsfv.InnerList:
		rules = robotsrule.FromParams(value.Params)
		for _, item := range value.Items {
			rules = rules.Union(bareRule(item.Value)).Union(robotsrule.FromParams(item.Params))
		}
	case httpsfv.Item:
		rules = robotsrule.FromParams(value.Params).Union(bareRule(value.Value))
		bare = value.Value
	}
	if !robotsrule.IsRule(name) {
		return []Member{{name, rules}}, repaired
	}
	p := httpsfv.NewParams()
	p.Add(name, bare)
	return []Member{{Everyone, rules.Union(robotsrule.FromParams(p))}}, repaired
}

func bareRule(value any) robotsrule.Set {
	switch value := value.(type) {
	case httpsfv.Token:
		return robotsrule.Parse(string(value))
	case string:
		return robotsrule.Parse(value)
	}
	return robotsrule.Set{}
}

// Kind is a fixed, short word for a Problem, fit for a metric's label.
type Kind string

// Kinds of problems: Build's are about the policy, Apply's about what an upstream or another handler set.
const (
	// Malformed: an unreadable line was dropped; it would have made readers discard the whole field.
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
// spread it over lines. Nothing is malformed: what is unknown stays.
func readXRobotsTag(lines []string) (audiences, []Problem) {
	lists := map[string]*strings.Builder{}
	problems := eachLine(lines, XRobotsTagField, lastComma, func(line string, p []Problem) []Problem {
		splitScopes(line, func(agent, rule string) {
			b := lists[agent]
			if b == nil {
				b = &strings.Builder{}
				lists[agent] = b
			}
			b.WriteString(rule)
			b.WriteByte(',')
		})
		return p
	})
	found := audiences{}
	for agent, list := range lists {
		found[agent] = robotsrule.Parse(list.String())
	}
	return found, problems
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
