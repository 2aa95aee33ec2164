// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

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

// eachLine calls read with each line up to readLimit bytes. A longer line is cut where cut says, which is
// reported.
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
