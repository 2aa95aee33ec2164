// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// rightsUse is a usage that most operators ignore, with the crawlers that collect for it.
type rightsUse struct {
	usage      policy.Usage
	kind       crawlers.Category // of which there are crawlers that mainly do something else
	categories []policy.Audience // the categories of its crawlers
	code       string            // of mayCrawl
	does       string            // what its crawlers do
	refrain    string            // what they are asked
}

var rightsUses = []rightsUse{
	{policy.TrainAI, crawlers.CategoryAITraining, []policy.Audience{{Kind: policy.ForCategory, Name: string(crawlers.CategoryAITraining)}}, "training-may-crawl", "train AI", "not to train AI"},
	{policy.AIUse, crawlers.CategoryAIInput, []policy.Audience{
		{Kind: policy.ForCategory, Name: string(crawlers.CategoryAIInput)}, {Kind: policy.ForCategory, Name: string(crawlers.CategoryAIAssistant)},
	}, "ai-may-crawl", "feed AI answers", "not to answer from it with AI"},
}

// dualUse finds rules against crawlers for AI that miss those which do the same among other things.
func (l *linter) dualUse() {
	for i := range l.rules {
		for _, use := range rightsUses {
			j := slices.Index(l.rules[i].For, use.categories[0])
			if j < 0 || indexOfWholeSite(&l.rules[i], policy.Crawl) < 0 || !l.spend(1) {
				continue
			}
			if passed := l.dualUsers(use, l.reach[i].hosts[0]); len(passed) > 0 {
				l.report("dual-use-crawler", l.Sources[i].Audiences[j], fmt.Sprintf(`%s %s too, but mainly do something else, so %s does not include them; to ask them %s, add "%s: /" to what is disallowed for everyone%s; to keep one out altogether, name it under for`,
					l.someTokens(passed), use.does, use.categories[0], use.refrain, use.usage, l.controls(use.usage, passed)))
			}
		}
	}
}

// dualUsers are crawlers that do something among other things, may fetch a host's pages, and are not asked to refrain.
func (l *linter) dualUsers(use rightsUse, host string) (passed []policy.CrawlerID) {
	for k := range l.Catalog.Len() {
		c := l.Catalog.At(k)
		id := l.Policy.Crawler(c.Token)
		dual := c.Category != use.kind && (c.Is(use.kind) || len(l.controlsOf(c.Token, use.usage, crawlers.ControlToken)) > 0)
		if !dual || c.RobotsOnly || l.isNamed(c.Token) ||
			l.decide(id, host, anyPage, policy.Crawl).Verdict == policy.Disallowed ||
			l.decide(id, host, anyPage, use.usage).Verdict == policy.Disallowed {
			continue
		}
		if slices.ContainsFunc(l.controlsOf(c.Token, use.usage, crawlers.ControlToken), func(x crawlers.Control) bool {
			return l.decide(l.Policy.Crawler(x.Value), host, anyPage, policy.Crawl).Verdict == policy.Disallowed
		}) {
			continue
		}
		passed = append(passed, id)
	}
	return passed
}

// controlsOf lists the controls of a kind that take a usage away from a crawler.
func (l *linter) controlsOf(token string, u policy.Usage, kind crawlers.ControlKind) []crawlers.Control {
	return slices.DeleteFunc(l.Catalog.ControlsOf(token), func(x crawlers.Control) bool {
		return x.Kind != kind || !slices.Contains(x.Takes, u.String())
	})
}

// controls says which controls of some crawlers' operators such a line sends, and which need more.
func (l *linter) controls(u policy.Usage, ids []policy.CrawlerID) (text string) {
	var sent, more []string
	add := func(to *[]string, text string) {
		if !slices.Contains(*to, text) {
			*to = append(*to, text)
		}
	}
	for _, id := range ids {
		token := l.Policy.CrawlerInfo(id).Token
		for _, x := range l.controlsOf(token, u, crawlers.ControlToken) {
			add(&sent, "disallows "+x.Value)
		}
		for _, x := range l.controlsOf(token, u, crawlers.ControlRule) {
			if len(x.Takes) > 1 {
				add(&more, fmt.Sprintf(`; for %s, write "controls: {%s: %s}" under publish`, token, token, x.Value))
			} else {
				add(&sent, "sends "+x.Value+" to "+token)
			}
		}
		for _, x := range l.controlsOf(token, u, crawlers.ControlForm) {
			add(&more, fmt.Sprintf(`; for %s, change %s's setting by hand (%s)`, token, x.Operator, x.Docs))
		}
	}
	if len(sent) > 0 {
		text = ", which also " + english.List(sent, "and")
	}
	return text + strings.Join(more, "")
}

func (l *linter) isNamed(token string) bool {
	for i := range l.rules {
		if slices.ContainsFunc(l.rules[i].For, func(a policy.Audience) bool {
			return a.Kind == policy.ForToken && strings.EqualFold(a.Name, token)
		}) {
			return true
		}
	}
	return false
}

// mayCrawl finds requests not to train AI, or not to answer, for pages that the crawlers for that may fetch.
func (l *linter) mayCrawl() {
	for i := range l.rules {
		for _, use := range rightsUses {
			if l.reach[i].everyone && l.spend(1) {
				l.mayCrawlOf(i, use)
			}
		}
	}
}

func (l *linter) mayCrawlOf(rule int, use rightsUse) {
	r := &l.rules[rule]
	var first *policy.Statement
	var may []policy.CrawlerID
	var paths, written []string
	for j := range r.Statements {
		s := &r.Statements[j]
		if s.Usage != use.usage || s.Allow || l.budget <= 0 || l.isSettled(use.categories, s.Pattern) {
			continue
		}
		open := l.mayFetch(use.categories, l.reach[rule].hosts[0], s.Pattern.Example())
		if len(open) == 0 {
			continue
		}
		first = cmp.Or(first, s)
		may = append(may, open...)
		paths, written = append(paths, readable(s.Pattern)), append(written, AsWritten(s.Pattern.String()))
	}
	if first == nil {
		return
	}
	what := english.Some(paths, shown)
	if first.Pattern.IsAll() && len(paths) == 1 {
		what = "every page"
	}
	hosts := ""
	if len(r.Hosts) > 0 {
		hosts = " for the same hosts"
	}
	crawl := fmt.Sprintf(`disallows "crawl: %s"`, yamlList(written))
	if len(written) > maxPatterns {
		crawl = "disallows crawl of the same paths"
	}
	l.report(use.code, first.Pos, fmt.Sprintf(`this asks %s, but %s may still fetch %s; few operators read %s, and nearly all obey robots.txt. To keep them out, add a rule "for: %s" that %s%s`,
		use.refrain, l.someTokens(may), what, use.usage, yamlList(Audiences(&policy.Rule{For: use.categories})), crawl, hosts))
}

// isSettled reports whether a rule for some categories, or a test, says whether they may crawl the paths.
func (l *linter) isSettled(categories []policy.Audience, p pathpattern.Pattern) bool {
	asked := policy.Rule{For: categories}
	for i := range l.rules {
		r := &l.rules[i]
		if !slices.ContainsFunc(r.For, func(a policy.Audience) bool { return slices.Contains(categories, a) }) {
			continue
		}
		if slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Usage == policy.Crawl && s.Pattern.Covers(p) }) {
			return true
		}
	}
	return slices.ContainsFunc(l.Policy.Spec().Expect, func(e policy.Expectation) bool {
		return e.Allowed && e.Usage == policy.Crawl && p.Match(e.Path) && l.audiencesMeet(&policy.Rule{For: []policy.Audience{e.Agent}}, &asked)
	})
}

func (l *linter) mayFetch(categories []policy.Audience, host, path string) (may []policy.CrawlerID) {
	for _, category := range categories {
		for _, id := range l.crawlersOf(category) {
			if l.budget > 0 && !l.Policy.CrawlerInfo(id).RobotsOnly && l.decide(id, host, path, policy.Crawl).Verdict != policy.Disallowed {
				may = append(may, id)
			}
		}
	}
	return may
}

// indexOfWholeSite is the place of the statement that disallows a usage of the whole site, or -1.
func indexOfWholeSite(r *policy.Rule, u policy.Usage) int {
	return slices.IndexFunc(r.Statements, func(s policy.Statement) bool { return s.Usage == u && !s.Allow && s.Pattern.IsAll() })
}
