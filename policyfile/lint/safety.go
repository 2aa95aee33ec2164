// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// SafetyChecks lists the codes of the checks that "intended" can waive. A waiver of blocks-search also waives
// disallows-search.
func SafetyChecks() []string {
	return []string{effect.SafetyBlocks, effect.SafetyDisallows, effect.SafetyIndex, effect.SafetyWWW, effect.SafetyLimits, safetyLift}
}

type finding struct {
	guard   string
	at      policy.Pos
	message string // the problem, without the fix
	fix     string
	onHosts bool // the rule is only for some hosts, which the author may want to disallow
}

// guards runs the safety checks. They report rules that are probably accidents, such as a rule that disallows a whole
// site for search engines.
func (l *linter) guards() {
	for i := range l.rules {
		r := &l.rules[i]
		var found []finding
		var names []string
		for _, guard := range []func(int) (finding, bool){l.searchShutOut, l.siteNotIndexed, l.includesWWW, l.liftsSite} {
			if f, ok := guard(i); ok && !effect.Waives(r.IntendedChecks, f.guard) {
				found, names = append(found, f), append(names, f.guard)
			}
		}
		if r.Intended && len(found) == 1 {
			continue
		}
		for _, f := range found {
			word := "true"
			if len(found) > 1 {
				word = yamlList(names)
			}
			// Several safety checks may report problems at the same place, but report accepts only one for each place.
			delete(l.reported, f.at)
			intended := fmt.Sprintf(`write "intended: %s" in this rule`, word)
			if f.onHosts {
				if !strings.HasPrefix(f.fix, noindexInstead) {
					f.fix = "if not, " + f.fix
				}
				l.report(f.guard, f.at, fmt.Sprintf("%s. If that is what you want, %s; %s", f.message, intended, f.fix))
			} else {
				l.report(f.guard, f.at, fmt.Sprintf("%s; %s, or %s if that is what you want", f.message, f.fix, intended))
			}
		}
	}
}

// mayClose reports whether the rule r has a statement or engine rule that may restrict the usage u of the page
// effect.FirstPage. A rule without one cannot restrict a whole host, because a host has this page.
func mayClose(r *policy.Rule, u policy.Usage, engineRules ...string) bool {
	return slices.ContainsFunc(r.Statements, func(s policy.Statement) bool {
		return s.Usage.Covers(u) && (!s.Allow || s.Qualifiers != nil) && s.Pattern.Match(effect.FirstPage)
	}) || slices.ContainsFunc(r.EngineRules, func(e policy.EngineRule) bool {
		return slices.Contains(engineRules, e.Name) && e.Pattern.Match(effect.FirstPage)
	})
}

// searchShutOut reports a rule that disallows the whole site for search engines or link previews. The rule may do so
// with one path or with several.
func (l *linter) searchShutOut(rule int) (finding, bool) {
	r := &l.rules[rule]
	if !mayClose(r, policy.Crawl) {
		return finding{}, false
	}
	var shut, unverifiable, follow []policy.CrawlerID
	var cause effect.Cause
	mode := policy.ModeOff
	searchers := l.searchers(rule)
	for _, host := range exampleHosts(r.Hosts) {
		for _, id := range searchers {
			if !l.spend(1) {
				break
			}
			if by, closed := l.closed(r, effect.LossCrawl, policy.Query{Crawler: id, Identity: policy.Verified, Host: host}); closed && l.onlyFollows(r, id) {
				follow = append(follow, id)
			} else if closed {
				shut, cause = append(shut, id), by
				mode = max(mode, by.Mode)
			} else if l.isUnverifiable(id) {
				if by, closed := l.closed(r, effect.LossCrawl, policy.Query{Crawler: id, Host: host}); closed && by.Mode == policy.ModeBlock {
					unverifiable, cause = append(unverifiable, id), by
				}
			}
		}
	}
	where := ""
	if len(r.Hosts) > 0 {
		where = " on " + string(r.Hosts[0])
	}
	f := finding{guard: effect.SafetyDisallows, at: cause.Pos, onHosts: len(r.Hosts) > 0}
	f.fix = l.reopening(r, &cause, shut)
	if f.onHosts && mode != policy.ModeBlock && cause.Pattern.IsAll() {
		f.fix = noindexInstead + "; to let these crawlers in, " + f.fix
	}
	switch {
	case len(shut) == 0 && len(unverifiable) == 0:
		return f, false
	case mode == policy.ModeBlock && l.caughtBy(r, shut) != "":
		by := l.caughtBy(r, shut)
		f.guard = effect.SafetyBlocks
		f.message = fmt.Sprintf("this blocks every page%s for %s, because the user-agent that the policy states for %s also matches their requests, so %s", where, l.someTokens(shut), by, l.harm(shut))
		f.fix = fmt.Sprintf("under \"crawlers\", give %s a user-agent that %s does not send", by, l.tokens(shut)[0])
		return f, true
	case len(shut) == 0:
		f.guard = effect.SafetyBlocks
		f.message = fmt.Sprintf(`this blocks every page%s for %s, because they cannot be verified, and a rule with "identity: verified" never applies to them. So %s`,
			where, l.someTokens(unverifiable), l.harm(unverifiable))
		f.fix = `allow crawl for them in a rule without "identity: verified"`
	case mode == policy.ModeBlock:
		f.guard = effect.SafetyBlocks
		f.message = fmt.Sprintf("this blocks every page%s for %s, so %s", where, l.someTokens(shut), l.harm(shut))
	default:
		f.message = fmt.Sprintf("this disallows every page%s for %s, so %s", where, l.someTokens(shut), l.harm(shut))
	}
	if len(follow) > 0 {
		f.message += fmt.Sprintf("; robots.txt also disallows every page for %s, because these crawlers follow the group of another crawler", l.someTokens(follow))
	}
	if among := l.namedAmong(r, shut); len(among) > 0 {
		var names []string
		for _, i := range among {
			names = append(names, r.For[i].Name)
		}
		f.at = l.Sources[rule].Audiences[among[0]]
		f.message += fmt.Sprintf("; the catalog lists %s under %s", english.List(names, "and"), english.List(l.guardedCategories(shut), "and"))
		f.fix = "take " + english.List(names, "and") + " out of this rule"
		if f.onHosts && mode != policy.ModeBlock {
			f.fix = noindexInstead + "; to let these crawlers in, " + f.fix
		}
	}
	return f, true
}

// reopening returns advice on how to allow crawling for crawlers again.
func (l *linter) reopening(r *policy.Rule, cause *effect.Cause, shut []policy.CrawlerID) string {
	by := policy.NotNamed
	for _, id := range shut {
		n, _ := l.Policy.NamedBy(r, id)
		by = min(by, n)
	}
	var names []string
	switch {
	case !cause.Pattern.IsAll():
		return "delete some of these paths, which together disallow the whole site"
	case by <= policy.TierFamily:
		return "delete this line"
	case by == policy.TierGroup:
		if names = l.tokens(shut); len(names) > 3 {
			return "under \"for\", list only the crawlers that you want to keep out"
		}
	default:
		names = l.guardedCategories(shut)
	}
	hosts := ""
	if len(r.Hosts) > 0 {
		var texts []string
		for _, h := range r.Hosts[:min(len(r.Hosts), maxHosts)] {
			texts = append(texts, AsWritten(string(h)))
		}
		hosts = fmt.Sprintf(" and %q", "hosts: "+yamlList(texts))
	}
	return fmt.Sprintf(`allow "crawl: /" in a rule with "for: %s"%s`, yamlList(names), hosts)
}

func yamlList(texts []string) string {
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + join(texts) + "]"
}

// closed reports whether the rule r takes nearly a whole host from the client of the query q. loss is the usage that
// the client loses, such as effect.LossCrawl for crawling.
func (l *linter) closed(r *policy.Rule, loss effect.Loss, q policy.Query) (effect.Cause, bool) {
	q.Now = l.Now
	if len(r.UsagePurposes) > 0 {
		q.Purposes = []string{strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(r.UsagePurposes[0], "$"), "*", "x"))}
	}
	by, whole := l.Effect.WholeHost(loss, q)
	l.spend(l.cost)
	return by, whole && by.Rule == r
}

func (l *linter) isUnverifiable(id policy.CrawlerID) bool {
	c, ok := l.Catalog.Lookup(l.Policy.CrawlerInfo(id).Token)
	return ok && c.Verification.IsEmpty()
}

// siteNotIndexed reports a rule that removes every host from search results. The author may have meant it only for a
// staging host.
func (l *linter) siteNotIndexed(rule int) (finding, bool) {
	if len(l.rules[rule].Hosts) > 0 {
		return finding{}, false
	}
	hidden, cause := l.hiddenFrom(rule, "")
	if len(hidden) == 0 {
		return finding{}, false
	}
	return finding{
		guard: effect.SafetyIndex, at: cause.Pos,
		message: "this keeps every page on every host out of the results of " + l.someTokens(hidden),
		fix:     "write the hosts that you mean under \"hosts\"",
	}, true
}

// includesWWW reports a rule for all subdomains that removes the site's own www host from search results.
func (l *linter) includesWWW(rule int) (finding, bool) {
	for _, h := range l.rules[rule].Hosts {
		if !h.Wildcard() {
			continue
		}
		domain := string(h[2:])
		if site, err := publicsuffix.EffectiveTLDPlusOne(domain); err != nil || site != domain {
			continue
		}
		www := "www." + domain
		if hidden, cause := l.hiddenFrom(rule, www); len(hidden) > 0 {
			return finding{
				guard: effect.SafetyWWW, at: cause.Pos,
				message: fmt.Sprintf("%s includes %s, so this keeps the main site out of the results of %s", h, www, l.someTokens(hidden)),
				fix:     fmt.Sprintf(`write the hosts that you mean under "hosts", allow "index: /" in a rule with "hosts: %s"`, www),
			}, true
		}
	}
	return finding{}, false
}

// safetyLift is the code of the problems that liftsSite reports.
const safetyLift = "lifts-site"

// liftsSite reports a rule that removes the site's own restrictions from nearly all of its pages.
func (l *linter) liftsSite(rule int) (finding, bool) {
	all := l.rules[rule].Statements
	for _, s := range all {
		lifted := func(path string) bool {
			return slices.ContainsFunc(all, func(o policy.Statement) bool { return o.OverSite && o.Usage == s.Usage && o.Pattern.Match(path) })
		}
		if s.OverSite && effect.NearlyWhole(lifted) {
			return finding{
				guard: safetyLift, at: s.Pos,
				message: fmt.Sprintf("this removes the site's own restrictions on the usage %s from nearly all pages, even from pages that should have them", s.Usage),
				fix:     "name the paths where the site's restriction is a mistake",
			}, true
		}
	}
	return finding{}, false
}

// hiddenFrom lists the search engines whose results lose nearly all pages of a host because of a rule.
func (l *linter) hiddenFrom(rule int, host string) (hidden []policy.CrawlerID, cause effect.Cause) {
	r := &l.rules[rule]
	if !mayClose(r, policy.Index, "noindex", "unavailable_after") {
		return nil, cause
	}
	for _, id := range l.searchers(rule) {
		if !l.spend(1) {
			break
		}
		if !effect.SearchesWeb(l.Policy, id) {
			continue
		}
		if by, closed := l.closed(r, effect.LossIndex, policy.Query{Crawler: id, Identity: policy.Verified, Host: host}); closed {
			hidden, cause = append(hidden, id), by
		}
	}
	return hidden, cause
}

func (l *linter) harm(ids []policy.CrawlerID) string {
	harms := map[crawlers.Category]string{
		crawlers.CategorySearch:  "the pages drop out of search results",
		crawlers.CategoryPreview: "links that people share lose their title and image",
	}
	kinds := l.guarded(ids)
	all := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		all = append(all, harms[kind])
	}
	return strings.Join(all, ", and ") // each is a clause
}

// searchers lists the search engines and link previews that a rule may apply to. A rule applies to a
// crawler that it names, and to a crawler that follows the group of a named crawler. It also applies if the server
// recognizes the crawler's requests as requests by a named crawler.
func (l *linter) searchers(rule int) (ids []policy.CrawlerID) {
	if l.searching == nil {
		l.findSearchers()
	}
	if l.reach[rule].everyone {
		return l.allSearchers
	}
	for _, a := range l.rules[rule].For {
		for _, id := range l.crawlersOf(a) {
			if l.searching[id] {
				ids = append(ids, id)
			}
			ids = append(ids, l.through[id]...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (l *linter) findSearchers() {
	l.searching, l.through = map[policy.CrawlerID]bool{}, map[policy.CrawlerID][]policy.CrawlerID{}
	for id, c := range l.Policy.Crawlers {
		if c.RobotsOnly || l.guarded([]policy.CrawlerID{id}) == nil {
			continue
		}
		l.searching[id] = true
		l.allSearchers = append(l.allSearchers, id)
		heads := slices.Clone(l.Effect.Caught(id))
		for _, token := range c.Follows {
			heads = append(heads, l.Policy.Crawler(token))
		}
		for _, head := range heads {
			l.through[head] = append(l.through[head], id)
		}
	}
}

// onlyFollows reports whether a rule applies to a crawler only in robots.txt, where the crawler follows the group of
// another crawler.
func (l *linter) onlyFollows(r *policy.Rule, id policy.CrawlerID) bool {
	tier, _ := l.Policy.NamedBy(r, id)
	return tier == policy.NotNamed && l.caughtBy(r, []policy.CrawlerID{id}) == ""
}

// caughtBy explains why a rule applies to the crawlers in shut although it does not name them: the server recognizes
// their requests as requests by a crawler that the rule names. caughtBy returns the token of this crawler. If the rule
// names a crawler in shut itself, caughtBy returns "".
func (l *linter) caughtBy(r *policy.Rule, shut []policy.CrawlerID) (by string) {
	for _, id := range shut {
		if tier, _ := l.Policy.NamedBy(r, id); tier < policy.NotNamed {
			return ""
		}
		for _, catcher := range l.Effect.Caught(id) {
			if tier, _ := l.Policy.NamedBy(r, catcher); tier < policy.NotNamed {
				by = l.Policy.CrawlerInfo(catcher).Token
			}
		}
	}
	return by
}
