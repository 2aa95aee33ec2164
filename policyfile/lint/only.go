// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// onlyDisallowed finds crawlers that a rule names only to disallow them something
// that a rule for everyone-else closes anyway.
func (l *linter) onlyDisallowed() {
	named := l.allowedTokens()
	l.each(func(rule int, s *policy.Statement) {
		r := &l.rules[rule]
		if s.Allow || s.Usage != policy.Crawl || len(r.For) > maxNames || l.budget <= 0 {
			return
		}
		for _, a := range r.For {
			if a.Kind != policy.ForToken || named[strings.ToLower(a.Name)] {
				return
			}
		}
		closing, ok := l.covering(s.Pattern, policy.Crawl, false)
		if !ok {
			return
		}
		for _, e := range closing {
			other := &l.rules[e.rule]
			if !slices.ContainsFunc(other.For, func(a policy.Audience) bool { return a.Kind == policy.ForEveryoneElse }) || !coversHosts(other, r) {
				continue
			}
			l.report("only-disallowed", s.Pos, fmt.Sprintf(`%s is only disallowed here, so line %d (everyone-else) still closes %s to it. If it may crawl the rest, add "allow: {crawl: %s}" here; if not, delete this line, which changes nothing`,
				audienceText(r), e.s.Pos.Line, e.s.Pattern, flowText(e.s.Pattern)))
			return
		}
	})
}

// flowText is a path as it is written within braces.
func flowText(p pathpattern.Pattern) string {
	if text := p.String(); strings.ContainsAny(text, "*,#{}[]&!|>'\"%@` ") {
		return quote(text)
	}
	return p.String()
}

// allowedTokens lists the tokens, in lower case, that a rule allows to crawl
// something.
func (l *linter) allowedTokens() map[string]bool {
	tokens := map[string]bool{}
	for i := range l.rules {
		r := &l.rules[i]
		if !slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Allow && s.Usage == policy.Crawl }) {
			continue
		}
		for _, a := range r.For {
			if a.Kind == policy.ForToken {
				tokens[strings.ToLower(a.Name)] = true
			}
		}
	}
	return tokens
}
