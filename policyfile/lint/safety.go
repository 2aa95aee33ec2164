// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// SafetyChecks lists the guards that "intended" can waive, by code. Waiving blocks-search waives shuts-out-search, too.
func SafetyChecks() []string {
	return []string{SafetyBlocks, SafetyDisallows, SafetyIndex, guardWWW, SafetyLimits}
}

// The guards.
const (
	SafetyBlocks    = "blocks-search"
	SafetyDisallows = "disallows-search"
	SafetyIndex     = "site-not-indexed"
	guardWWW        = "includes-www"

	// SafetyLimits exempts search engines from limits, unless it is waived.
	SafetyLimits = "limits-search"
)

type finding struct {
	guard   string
	at      policy.Pos
	message string // without what to do
	fix     string
	onHosts bool // the rule is for hosts of its own, which it may well mean to close
}

// guards protects search results and link previews from rules that close a whole site by accident.
func (l *linter) guards() {
	for i := range l.rules {
		r := &l.rules[i]
		var found []finding
		var names []string
		for _, guard := range []func(int) (finding, bool){l.searchShutOut, l.siteNotIndexed, l.includesWWW} {
			if f, ok := guard(i); ok && !waives(r, f.guard) {
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
			// Two guards may report at one place.
			delete(l.reported, f.at)
			intended := fmt.Sprintf(`write "intended: %s" in this rule`, word)
			if f.onHosts {
				if !strings.HasPrefix(f.fix, noindexInstead) {
					f.fix = "if not, " + f.fix
				}
				l.report(f.guard, f.at, fmt.Sprintf("%s; if that is what you want, %s; %s", f.message, intended, f.fix))
			} else {
				l.report(f.guard, f.at, fmt.Sprintf("%s; %s, or %s if that is what you want", f.message, f.fix, intended))
			}
		}
	}
}

func waives(r *policy.Rule, guard string) bool {
	return slices.Contains(r.IntendedChecks, guard) || guard == SafetyDisallows && slices.Contains(r.IntendedChecks, SafetyBlocks)
}

// searchShutOut finds rules that keep search engines or link previews away from the whole site, by one path or several.
func (l *linter) searchShutOut(rule int) (finding, bool) {
	r := &l.rules[rule]
	probe := slices.IndexFunc(r.Statements, func(s policy.Statement) bool {
		return s.Usage == policy.Crawl && !s.Allow && s.Pattern.Match(probes[0])
	})
	if probe < 0 {
		return finding{}, false
	}
	var shut, unverifiable []policy.CrawlerID
	mode := policy.ModeOff
	searchers := l.searchers(rule)
	for _, host := range exampleHosts(r.Hosts) {
		for _, id := range searchers {
			if !l.spend(1) {
				break
			}
			if d, closed := l.closed(r, policy.Query{Crawler: id, Identity: policy.Verified, Host: host}); closed {
				shut = append(shut, id)
				mode = max(mode, l.Policy.Mode(d))
			} else if l.isUnverifiable(id) {
				if d, closed := l.closed(r, policy.Query{Crawler: id, Host: host}); closed && l.Policy.Mode(d) == policy.ModeBlock {
					unverifiable = append(unverifiable, id)
				}
			}
		}
	}
	where := ""
	if len(r.Hosts) > 0 {
		where = " on " + string(r.Hosts[0])
	}
	f := finding{guard: SafetyDisallows, at: r.Statements[probe].Pos, onHosts: len(r.Hosts) > 0}
	f.fix = l.reopening(r, &r.Statements[probe], shut)
	if f.onHosts && mode != policy.ModeBlock && r.Statements[probe].Pattern.IsAll() {
		f.fix = noindexInstead + "; to let them in, " + f.fix
	}
	switch {
	case len(shut) == 0 && len(unverifiable) == 0:
		return f, false
	case len(shut) == 0:
		f.guard = SafetyBlocks
		f.message = fmt.Sprintf(`this blocks every page%s to %s, so %s: nothing that their operators publish can prove who they are, so a rule with "identity: verified" never applies to them`,
			where, l.someTokens(unverifiable), l.harm(unverifiable))
		f.fix = `allow crawl for them in a rule without "identity: verified"`
	case mode == policy.ModeBlock:
		f.guard = SafetyBlocks
		f.message = fmt.Sprintf("this blocks every page%s to %s, so %s", where, l.someTokens(shut), l.harm(shut))
	default:
		f.message = fmt.Sprintf("this asks %s to fetch nothing at all%s, so %s", l.someTokens(shut), where, l.harm(shut))
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
			f.fix = noindexInstead + "; to let them in, " + f.fix
		}
	}
	return f, true
}

// reopening says how to let crawlers in again.
func (l *linter) reopening(r *policy.Rule, s *policy.Statement, shut []policy.CrawlerID) string {
	by := notNamed
	for _, id := range shut {
		n, _ := l.namedBy(r, id)
		by = min(by, n)
	}
	var names []string
	switch {
	case !s.Pattern.IsAll():
		return "delete some of these paths, which together disallow the whole site"
	case by == policy.TierToken:
		return "delete this line"
	case by == policy.TierGroup:
		if names = l.tokens(shut); len(names) > 3 {
			return "name the crawlers that you mean to keep out one by one"
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

// probes stand for a whole site: who may fetch none of them may fetch nothing.
var probes = func() []string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	paths := make([]string, 0, len(letters))
	for _, c := range letters {
		paths = append(paths, "/"+strings.Repeat(string(c), 3))
	}
	return paths
}()

// closed reports whether a rule closes the whole site to a client.
func (l *linter) closed(r *policy.Rule, q policy.Query) (policy.Decision, bool) {
	q.Usage, q.Now = policy.Crawl, l.Now
	if len(r.UsagePurposes) > 0 {
		q.Purposes = []string{strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(r.UsagePurposes[0], "$"), "*", "x"))}
	}
	var first policy.Decision
	for i, path := range probes {
		q.Path = path
		d := l.Policy.Decide(q)
		if d.Verdict != policy.Disallowed || i == 0 && d.Rule != r {
			return policy.Decision{}, false
		}
		if i == 0 {
			first = d
			if first.Statement.Pattern.IsAll() && l.nothingOpen(q) {
				break
			}
		}
	}
	l.spend(l.cost)
	return first, true
}

// nothingOpen reports whether a page that no rule mentions is closed.
func (l *linter) nothingOpen(q policy.Query) bool {
	q.Path = anyPage
	l.budget -= l.cost
	return l.Policy.Decide(q).Verdict == policy.Disallowed
}

func (l *linter) isUnverifiable(id policy.CrawlerID) bool {
	c, ok := l.Catalog.Lookup(l.Policy.CrawlerInfo(id).Token)
	return ok && c.Verification.IsEmpty()
}

// siteNotIndexed finds rules that keep every host out of search results, perhaps meant for a staging host.
func (l *linter) siteNotIndexed(rule int) (finding, bool) {
	r := &l.rules[rule]
	whole := indexOfWholeSite(r, policy.Index)
	if whole < 0 || len(r.Hosts) > 0 {
		return finding{}, false
	}
	hidden := l.hiddenFrom(rule, "")
	if len(hidden) == 0 {
		return finding{}, false
	}
	return finding{
		guard: SafetyIndex, at: r.Statements[whole].Pos,
		message: "this keeps every page on every host out of the results of " + l.someTokens(hidden),
		fix:     "name the hosts that it is meant for under hosts",
	}, true
}

// includesWWW finds rules for subdomains that close the site's own www host to search engines.
func (l *linter) includesWWW(rule int) (finding, bool) {
	r := &l.rules[rule]
	whole := indexOfWholeSite(r, policy.Index)
	if whole < 0 {
		return finding{}, false
	}
	for _, h := range r.Hosts {
		if !h.Wildcard() {
			continue
		}
		domain := string(h[2:])
		if site, err := publicsuffix.EffectiveTLDPlusOne(domain); err != nil || site != domain {
			continue
		}
		www := "www." + domain
		if hidden := l.hiddenFrom(rule, www); len(hidden) > 0 {
			return finding{
				guard: guardWWW, at: r.Statements[whole].Pos,
				message: fmt.Sprintf("%s includes %s, so this keeps the main site out of the results of %s", h, www, l.someTokens(hidden)),
				fix:     fmt.Sprintf(`name the hosts that it is meant for under hosts, allow "index: /" in a rule with "hosts: %s"`, www),
			}, true
		}
	}
	return finding{}, false
}

func (l *linter) hiddenFrom(rule int, host string) (hidden []policy.CrawlerID) {
	for _, id := range l.searchers(rule) {
		if !l.spend(1) {
			break
		}
		if IsOfKind(l.Policy, id, crawlers.CategorySearch) && l.decide(id, host, anyPage, policy.Index).Rule == &l.rules[rule] {
			hidden = append(hidden, id)
		}
	}
	return hidden
}

// indexOfWholeSite is the place of the statement that disallows a usage of the whole site, or -1.
func indexOfWholeSite(r *policy.Rule, u policy.Usage) int {
	return slices.IndexFunc(r.Statements, func(s policy.Statement) bool { return s.Usage == u && !s.Allow && s.Pattern.IsAll() })
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
	return english.List(all, "and")
}

// IsOfKind reports whether a crawler is of a kind by the policy's catalog or the built-in one: a policy only removes a
// search engine from the guards by saying that this is intended.
func IsOfKind(p *policy.Policy, id policy.CrawlerID, kind crawlers.Category) bool {
	c := p.CrawlerInfo(id)
	if id == 0 || c.Category == string(kind) {
		return id != 0
	}
	builtIn, _ := crawlers.Default() // what is built in is valid
	known, ok := builtIn.Lookup(c.Token)
	return ok && known.Category == kind && !slices.Contains(c.IntendedChecks, SafetyBlocks)
}

func (l *linter) searchers(rule int) (ids []policy.CrawlerID) {
	if l.searching == nil {
		l.searching = map[policy.CrawlerID]bool{}
		for id, c := range l.Policy.Crawlers {
			if !c.RobotsOnly && l.guarded([]policy.CrawlerID{id}) != nil {
				l.searching[id] = true
				l.allSearchers = append(l.allSearchers, id)
			}
		}
	}
	if l.reach[rule].everyone {
		return l.allSearchers
	}
	for _, a := range l.rules[rule].For {
		for _, id := range l.crawlersOf(a) {
			if l.searching[id] {
				ids = append(ids, id)
			}
		}
	}
	return ids
}
