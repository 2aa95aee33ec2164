// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
)

// extensions returns the lines of a client's group that extend RFC 9309.
func extensions(c *rights.Client) (lines []Line, problems []policy.Problem) {
	for _, ch := range channels.Groups() {
		if !ch.On(&c.Policy.Spec().Publish) {
			continue
		}
		said, found := ch.Group.Lines(c)
		problems = append(problems, found...)
		for _, l := range said {
			line := Line{Text: l.Text, Rule: l.Rule, Pos: l.Pos}
			if ch.Group.ByPath {
				line.key, line.pattern = ch.Group.Field, l.Pattern
			}
			lines = append(lines, line)
		}
	}
	return lines, problems
}
