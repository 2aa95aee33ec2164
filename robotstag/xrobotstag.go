// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// readXRobotsTag reads an upstream's lines of X-Robots-Tag. Each line starts
// speaking to everyone; a user agent and a colon turn what follows in the line
// to that agent. All that is said to one audience is taken as one list, because
// one author may have spread it over lines. Nothing in this field is malformed:
// what is unknown is kept.
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

// splitScopes cuts one line of X-Robots-Tag into its rules and calls yield with
// each and the user agent it is for.
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

// readsBack reports whether text, as a line of X-Robots-Tag, says rules to
// everyone and nothing else.
func readsBack(text string, rules robotsrule.Set) bool {
	found, _ := readXRobotsTag([]string{text})
	return len(found) == 1 && found[Everyone] == rules
}

// lastComma gives the place of the last comma of an unfinished line.
func lastComma(line string) int { return strings.LastIndexByte(line, ',') }

// eachLine calls read with each line until readLimit bytes are used up. A line
// that goes beyond is cut where cut says; the rest is not read, which is reported.
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
