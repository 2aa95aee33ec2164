// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

func (l *linter) emptyRules() {
	for i := range l.rules {
		if r := &l.rules[i]; r.IsEmpty() {
			l.report("empty-rule", r.Pos, fmt.Sprintf("this rule for %s neither allows nor disallows anything; add allow or disallow with paths, or delete it", audienceText(r)))
		}
	}
}

// enforcement reports keys "enforce" and "enforcement" that do not make the server block any request.
func (l *linter) enforcement() {
	nothing := func(at policy.Pos, why string) { l.report("nothing-to-enforce", at, why) }
	refused := false
	for i := range l.rules {
		r, source := &l.rules[i], &l.Sources[i]
		limits := !r.Limit.IsZero() || r.CrawlDelay > 0 && r.Enforce >= policy.ModeLog
		refused = refused || disallowsCrawl(r) || limits
		if r.Enforce < policy.ModeLog || r.IsEmpty() || limits && !disallowsCrawl(r) {
			continue
		}
		if !disallowsCrawl(r) {
			nothing(source.Enforce, "only crawl can be blocked, and this rule does not disallow it, so enforce has no effect; disallow crawl for some paths, or delete enforce")
			continue
		}
		if len(r.UsagePurposes) > 0 && !slices.ContainsFunc(r.UsagePurposes, func(u string) bool { return !strings.Contains(u, "*") }) {
			nothing(source.Enforce, `a purpose with "*" works only in robots.txt. A request names its purpose as a plain word, so enforce has no effect; name the purposes one by one, or delete enforce`)
		}
		for j, a := range r.For {
			if c, ok := l.Catalog.Lookup(a.Name); ok && a.Kind == policy.ForToken && c.RobotsOnly && !crawlers.NamesBrowser(a.Name) {
				l.report("control-token-enforced", source.Audiences[j], fmt.Sprintf("%s is a name that is used only in robots.txt. The rule works in robots.txt, but no client sends this name, so enforce has no effect; delete enforce", c.Token))
			}
		}
	}
	if e := l.Policy.Spec().Enforcement; e.Mode >= policy.ModeLog && !refused {
		nothing(l.Enforcement, fmt.Sprintf(`"enforcement: %s" has no effect, because no rule disallows crawl, and no other usage can be blocked; disallow crawl in a rule, or delete enforcement`, e.Mode))
	}
}

// ignoreDelay lists the operators that document that their crawlers ignore Crawl-delay.
var ignoreDelay = []string{"Google", "Yandex", "Apple"}

func (l *linter) crawlDelay() {
	for i := range l.rules {
		r := &l.rules[i]
		if r.CrawlDelay == 0 {
			continue
		}
		var names []string
		for _, a := range r.For {
			c, ok := l.Catalog.Lookup(a.Name)
			switch {
			case a.Kind == policy.ForToken && ok && slices.Contains(ignoreDelay, c.Operator):
				names = append(names, c.Token)
			case a.Kind == policy.ForOperator && slices.ContainsFunc(ignoreDelay, func(o string) bool { return strings.EqualFold(o, a.Name) }):
				names = append(names, a.Name)
			}
		}
		if len(names) > 0 {
			ignores, it := "ignores", "it"
			if len(names) > 1 {
				ignores, it = "ignore", "them"
			}
			l.report("crawl-delay-ignored", r.CrawlDelayPos, fmt.Sprintf("%s %s crawl-delay; slow %s down in the operator's own tools for website owners, or write \"limit\" in this rule (search engines also need \"intended: [limits-search]\")",
				english.Some(names, shown), ignores, it))
		}
	}
}

// searchLimits reports rate limits in rules for search engines. The server applies a rate limit to search engines only
// if the rule has the key "intended". So without this key, the limit has no effect on them.
func (l *linter) searchLimits() {
	for i := range l.rules {
		r := &l.rules[i]
		at := r.LimitPos
		if r.Limit.IsZero() {
			if at = r.CrawlDelayPos; r.CrawlDelay == 0 || r.Enforce < policy.ModeLog {
				continue
			}
		}
		if slices.Contains(r.IntendedChecks, effect.SafetyLimits) {
			continue
		}
		var names []string
		for _, a := range r.For {
			c, ok := l.Catalog.Lookup(a.Name)
			switch {
			case a.Kind == policy.ForToken && ok && c.Category == crawlers.CategorySearch:
				names = append(names, c.Token)
			case a.Kind == policy.ForCategory && strings.EqualFold(a.Name, string(crawlers.CategorySearch)):
				names = append(names, a.String())
			}
		}
		if len(names) > 0 {
			l.report(effect.SafetyLimits, at, fmt.Sprintf(`this line does not limit %s, because search engines that get 429 drop pages from their results after a while. To limit them anyway, write "intended: [%s]" in this rule`, english.Some(names, shown), effect.SafetyLimits))
		}
	}
}

// purposes reports, for each rule for a purpose, the crawlers that the rule applies to. These are the crawlers that
// declare the purpose according to the catalog or the policy file. If User-Agent-Purpose lines are published, the rule
// also applies to other crawlers that read these lines in robots.txt (draft-illyes-rep-purpose-00). purposes also
// reports rules that do not apply to any crawler.
func (l *linter) purposes() {
	published := l.Policy.Spec().Publish.UserAgentPurpose == policy.On
	for i := range l.rules {
		for j, a := range l.rules[i].For {
			if a.Kind != policy.ForPurpose || !l.spend(1) {
				continue
			}
			known, at := l.crawlersOf(a), l.Sources[i].Audiences[j]
			if len(known) == 0 && !published {
				l.report("unknown-purpose", at, fmt.Sprintf(`no known crawler declares the purpose %s, and robots.txt does not name this purpose, so the rule has no effect. List crawlers with "purposes: %s" under "crawlers", or write "user-agent-purpose: on" under publish`, quote(a.Name), a.Name))
				continue
			}
			who, others := "no crawler", "find this rule only in robots.txt"
			if len(known) > 0 {
				who = "only " + l.someTokens(known)
			}
			if !published {
				others = `do not get this rule, unless you write "user-agent-purpose: on" under publish`
			}
			l.report("purpose-of-known-crawlers", at, fmt.Sprintf(`among the crawlers that the server knows, %s declares the purpose %s. Other crawlers with this purpose %s; if the server should recognize them, list them with "purposes: %s" under "crawlers"`, who, quote(a.Name), others, a.Name))
		}
	}
}
