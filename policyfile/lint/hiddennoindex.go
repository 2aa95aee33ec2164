// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

const noindexInstead = "to keep the host out of search results, disallow index and follow instead of crawl"

// hiddenNoindex reports rules that send noindex for pages that search engines may not fetch.
func (l *linter) hiddenNoindex() {
	l.each(func(rule int, s *policy.Statement) {
		if !s.Allow && s.Usage == policy.Index {
			l.hidden(rule, s.Pos, s.Pattern, "index")
		}
	})
	for i := range l.rules {
		for _, e := range l.rules[i].EngineRules {
			if e.Rule.Has("noindex") {
				l.hidden(i, e.Pos, e.Pattern, e.Name)
			}
		}
	}
}

// hidden checks a noindex for the paths of the pattern. It reports the noindex if search engines that the rule applies
// to may not crawl these paths, because they then never see the noindex. The parameter word is what the policy file has
// there: the usage "index", or the name of a robots rule such as "noindex".
func (l *linter) hidden(rule int, at policy.Pos, pattern pathpattern.Pattern, word string) {
	if l.reported[at] || !l.spend(1) {
		return
	}
	for _, id := range l.searchers(rule) {
		if !effect.IsOfCategory(l.Policy, id, crawlers.CategorySearch) || !l.isFor(rule, id) {
			continue
		}
		for _, host := range l.reach[rule].hosts {
			d := l.decide(id, host, pattern.Example(), policy.Crawl)
			if d.Verdict != policy.Disallowed || d.Statement == nil || !d.Statement.Pattern.Covers(pattern) || shutsOut(d) || l.namesOnPurpose(d.Rule, id) {
				continue
			}
			fix := "delete the entry for crawl to keep the pages out of search results, or delete " + word + " here"
			if d.Statement.Pattern.IsAll() && len(d.Rule.Hosts) > 0 {
				fix = noindexInstead
			}
			l.report("hidden-noindex", at, fmt.Sprintf("crawl is also disallowed for these pages (line %d). So search engines never fetch the pages, and never see that indexing is disallowed. They may still list the addresses of the pages; %s",
				d.Statement.Pos.Line, fix))
			return
		}
	}
}

// shutsOut reports whether another check reports the deciding rule, because that rule disallows a whole host for
// search engines.
func shutsOut(d policy.Decision) bool {
	r := d.Rule
	return d.Statement.Pattern.IsAll() && len(r.Hosts) > 0 && !r.Intended && !effect.Waives(r.IntendedChecks, effect.SafetyDisallows)
}

// namesOnPurpose reports whether a rule disallows something for a search engine on purpose. The rule must have the key
// "intended", and either name the engine or be for all crawlers for AI.
func (l *linter) namesOnPurpose(r *policy.Rule, id policy.CrawlerID) bool {
	by, _ := l.Policy.NamedBy(r, id)
	return (by <= policy.TierFamily || by == policy.TierAI) && (r.Intended || len(r.IntendedChecks) > 0)
}
