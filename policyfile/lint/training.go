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

// rightsUse is a usage that most operators ignore in policies, with the categories of crawlers that collect pages for
// it.
type rightsUse struct {
	usage      policy.Usage
	categories []policy.Audience
	code       string // the code that mayCrawl reports
	refrain    string // the request to the crawlers, as a phrase
}

func ofCategory(k crawlers.Category) policy.Audience {
	return policy.ParseAudience("category:" + string(k))
}

var rightsUses = []rightsUse{
	{policy.TrainAI, []policy.Audience{ofCategory(crawlers.CategoryAITraining)}, "training-may-crawl", "not to train AI"},
	{policy.AIUse, []policy.Audience{ofCategory(crawlers.CategoryAIInput), ofCategory(crawlers.CategoryAIAssistant)}, "ai-may-crawl", "not to use the pages in AI answers"},
}

// aiCategories lists the categories of crawlers for AI, with the usage of pages that is the purpose of each category.
// Crawlers of other categories, such as search engines, may also use pages in this way. A policy can disallow the usage
// to ask them not to do so.
var aiCategories = []struct {
	category crawlers.Category
	usage    policy.Usage
}{
	{crawlers.CategoryAITraining, policy.TrainAI},
	{crawlers.CategoryAIInput, policy.AIUse},
	{crawlers.CategoryAIAssistant, policy.AIUse},
	{crawlers.CategoryAIAgent, policy.AIUse},
}

// leftOpen examines rules that disallow something for categories of crawlers for AI. Other crawlers also serve AI, but
// it is not their main purpose, so the categories do not include them. leftOpen reports the rules that leave out such
// crawlers.
func (l *linter) leftOpen() {
	for i := range l.rules {
		r := &l.rules[i]
		j := slices.IndexFunc(r.For, isForAI)
		if s := firstDisallowed(r); j >= 0 && s != nil && l.spend(1) {
			l.leftOpenBy(l.Sources[i].Audiences[j], s, l.reach[i].hosts[0])
		}
	}
}

func isForAI(a policy.Audience) bool {
	return a.Kind == policy.ForAI || a.Kind == policy.ForCategory && a.NarrowsAI()
}

// firstDisallowed returns the first disallow entry about crawling or, if there is none, the first one about any usage.
func firstDisallowed(r *policy.Rule) (first *policy.Statement) {
	for j := range r.Statements {
		if s := &r.Statements[j]; !s.Allow && (first == nil || s.Usage == policy.Crawl && first.Usage != policy.Crawl) {
			first = s
		}
	}
	return first
}

func (l *linter) leftOpenBy(at policy.Pos, s *policy.Statement, host string) {
	of, path := l.audiencesOf(s, host), anyPage
	if !s.Pattern.IsAll() {
		path = s.Pattern.Example()
	}
	var include, web []policy.CrawlerID
	var asks []policy.Usage
	for k := range l.Catalog.Len() {
		c := l.Catalog.At(k)
		id := l.Policy.Crawler(c.Token)
		open := l.leftOpenTo(c, id, of, s, host, path)
		switch {
		case len(open) == 0:
		case c.IsAI():
			include = append(include, id)
		default:
			web = append(web, id)
			asks = append(asks, open...)
		}
	}
	var parts []string
	if len(include) > 0 {
		parts = append(parts, "these crawlers also serve AI, but the categories of this rule do not include them: "+english.Some(l.tokens(include), 2*shown)+`. Name them under "for", or write "category:ai" for all crawlers for AI`)
	}
	if len(web) > 0 {
		these := "these"
		if len(include) > 0 {
			these = "These"
		}
		slices.Sort(asks)
		lines := make([]string, 0, len(asks))
		for _, u := range slices.Compact(asks) {
			lines = append(lines, fmt.Sprintf("%s: %s", u, AsWritten(s.Pattern.String())))
		}
		parts = append(parts, fmt.Sprintf(`%s crawlers of search engines also serve AI, but no category for AI includes them: %s. To ask them not to use the pages for AI, disallow "%s" for everyone%s`,
			these, l.someTokens(web), strings.Join(lines, ", "), l.controls(slices.Compact(asks), web)))
	}
	if len(parts) > 0 {
		l.report("dual-use-crawler", at, strings.Join(parts, ". "))
	}
}

// audiencesOf looks for rules that disallow as much as the statement s, or more: the same usage, and all paths of s. It
// lists the audiences of those rules that apply to the host.
func (l *linter) audiencesOf(s *policy.Statement, host string) (all []policy.Audience) {
	for i := range l.rules {
		r := &l.rules[i]
		if onHost := len(r.Hosts) == 0 || hostRank(r, host) > 0; onHost && slices.ContainsFunc(r.Statements, func(x policy.Statement) bool {
			return !x.Allow && x.Usage == s.Usage && x.Pattern.Covers(s.Pattern)
		}) {
			all = append(all, r.For...)
		}
	}
	return all
}

// leftOpenTo returns the usages for AI, such as train-ai, that the policy leaves open to the crawler c. It considers
// only usages that belong to the categories in the audiences "of" (see aiCategories), and only if c also collects pages
// for them. It returns nil if a rule names or allows the crawler. It also returns nil if the policy disallows crawling,
// or the usage of s, for the crawler.
func (l *linter) leftOpenTo(c *crawlers.Crawler, id policy.CrawlerID, of []policy.Audience, s *policy.Statement, host, path string) (open []policy.Usage) {
	if c.RobotsOnly || c.FromPolicy || l.isNamed(c.Token) {
		return nil
	}
	for _, k := range aiCategories {
		token := func(x crawlers.Control) bool {
			return l.decide(l.Policy.Crawler(x.Value), host, path, policy.Crawl).Verdict == policy.Disallowed
		}
		tokens := l.controlsOf(c.Token, k.usage, crawlers.ControlToken)
		does := c.Is(k.category) || k.category == crawlers.CategoryAITraining && len(tokens) > 0
		wanted := slices.ContainsFunc(of, func(a policy.Audience) bool { return a.Kind == policy.ForAI || a == ofCategory(k.category) })
		if does && wanted && !slices.Contains(open, k.usage) && !slices.ContainsFunc(tokens, token) &&
			l.decide(id, host, path, k.usage).Verdict != policy.Disallowed {
			open = append(open, k.usage)
		}
	}
	if len(open) == 0 || l.decide(id, host, path, policy.Crawl).Verdict == policy.Disallowed {
		return nil
	}
	switch d := l.decide(id, host, path, s.Usage); d.Verdict {
	case policy.Disallowed:
		return nil
	case policy.Allowed:
		if by, _ := l.Policy.NamedBy(d.Rule, id); by < policy.TierEveryone {
			return nil
		}
	case policy.Unstated:
	}
	return open
}

// controlsOf lists the controls of the given kind that a site can use to disallow the usage u. It asks the catalog for
// the controls of the crawler with this token.
func (l *linter) controlsOf(token string, u policy.Usage, kind crawlers.ControlKind) []crawlers.Control {
	return slices.DeleteFunc(l.Catalog.ControlsOf(token), func(x crawlers.Control) bool {
		return x.Kind != kind || !slices.Contains(x.Takes, u.String())
	})
}

// controls returns a text about the controls that the operators of the given crawlers offer against the given usages.
// Such a control is, for example, a token in robots.txt or a setting on the operator's website. The server sends some
// of these controls if the policy disallows the usages. For the others, the text tells the author what to do.
func (l *linter) controls(usages []policy.Usage, ids []policy.CrawlerID) (text string) {
	var tokens, sent, more []string
	add := func(to *[]string, text string) {
		if !slices.Contains(*to, text) {
			*to = append(*to, text)
		}
	}
	for _, id := range ids {
		token := l.Policy.CrawlerInfo(id).Token
		for _, x := range l.Catalog.ControlsOf(token) {
			if !slices.ContainsFunc(usages, func(u policy.Usage) bool { return slices.Contains(x.Takes, u.String()) }) {
				continue
			}
			switch publish := &l.Policy.Spec().Publish; {
			case x.Kind == crawlers.ControlForm:
				add(&more, fmt.Sprintf(`; for %s, change %s's setting by hand (%s)`, token, x.Operator, x.Docs))
			case x.Kind == crawlers.ControlToken && publish.SendsControl(x.Value):
				add(&tokens, x.Value)
			case x.Kind == crawlers.ControlToken && publish.Controls == policy.Off:
				add(&more, `; delete "controls: off", so that Caddy publishes the controls against AI that the operators of crawlers offer`)
			case x.Kind == crawlers.ControlToken:
				add(&more, fmt.Sprintf(`; to disallow %s, delete "%s: off" under "controls"`, x.Value, x.Value))
			case !publish.SendsControl(token), len(x.Takes) > 1 && publish.ControlChoice(token) == "":
				add(&more, fmt.Sprintf(`; for %s, write "controls: {%s: %s}" under publish`, token, token, x.Value))
			default:
				add(&sent, "sends "+x.Value+" to "+token)
			}
		}
	}
	if len(tokens) > 0 {
		sent = append([]string{"disallows " + english.List(tokens, "and")}, sent...)
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

// mayCrawl reports disallow entries for AI training or AI answers if the crawlers for these usages may still crawl the
// pages.
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
	l.report(use.code, first.Pos, fmt.Sprintf(`this only asks crawlers %s, and %s may still fetch %s. Few crawlers evaluate preferences such as %s, but nearly all obey Disallow lines in robots.txt. To keep these crawlers out, add a rule "for: %s" that %s%s`,
		use.refrain, l.someTokens(may), what, use.usage, yamlList(Audiences(&policy.Rule{For: use.categories})), crawl, hosts))
}

// isSettled reports whether the author has already decided whether crawlers of the categories may crawl the paths of p.
// That is the case if a rule for one of the categories has a crawl entry for these paths. It is also the case if a test
// of the policy file expects that such crawlers may crawl one of the paths.
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
