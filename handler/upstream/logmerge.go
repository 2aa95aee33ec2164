// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// LogMerge returns a function that logs the problems and notes found while merging with the robots.txt of a host.
func (c *Cache[T]) LogMerge(host string) func([]policy.Problem, []robotstxt.Note) {
	return func(problems []policy.Problem, notes []robotstxt.Note) {
		for _, p := range problems {
			if p.Severity == policy.Error {
				c.logger.Warn("the upstream's robots.txt cannot be merged and is left out", zap.String("host", host), zap.String("problem", p.Message))
				return
			}
		}
		for _, p := range problems {
			if robotsserve.AboutMerge(p) {
				c.logger.Warn("after the merge with the upstream's robots.txt, the robots.txt that crawlers receive differs from what both files say", zap.String("host", host), zap.String("problem", p.Message))
			}
		}
		for _, n := range notes {
			if n.Wrong && c.wrong.First(host+" "+n.Message) {
				c.logger.Warn("a line of the upstream's robots.txt has no effect", zap.String("host", host), zap.Int("line", n.Line), zap.String("problem", n.Message))
			}
		}
		if len(notes) == 0 {
			return
		}
		const maxNotes = 10
		grouped := robotstxt.Grouped(notes) // as the commands print them
		c.logger.Info("merged the upstream's robots.txt", zap.String("host", host), zap.Int("notes", len(grouped)), zap.Any("first_notes", grouped[:min(len(grouped), maxNotes)]))
	}
}
