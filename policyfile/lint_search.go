// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// hiddenNoindex finds noindex that nobody can read, as the page may not be
// fetched.
func (l *linter) hiddenNoindex() {
	l.each(func(rule int, s *policy.Statement) {
		if s.Allow || s.Usage != policy.Index || l.told[s.Pos] || !l.spend(1) {
			return
		}
		for _, id := range l.someCrawlers(&l.rules[rule]) {
			for _, host := range l.who[rule].hosts {
				d := l.decide(id, host, sample(s.Pattern), policy.Crawl)
				if d.Verdict == policy.Disallowed && covers(d.Statement.Pattern, s.Pattern) {
					l.warn(s.Pos, "hidden-noindex", "crawl of these pages is disallowed too (line %d), so a search engine never fetches them and never sees that it may not index them, and may list their addresses; delete crawl from that line to keep the pages out of search results, or delete index here",
						d.Statement.Pos.Line)
					return
				}
			}
		}
	})
}

// searchShutOut finds rules that keep search engines or link previews away from
// the whole site.
func (l *linter) searchShutOut() {
	for i := range l.rules {
		r := &l.rules[i]
		if r.Intended {
			continue
		}
		whole := slices.IndexFunc(r.Statements, func(s policy.Statement) bool {
			return s.Usage == policy.Crawl && !s.Allow && s.Pattern.IsAll()
		})
		if whole < 0 {
			continue
		}
		at := r.Statements[whole].Pos
		var shut, unverifiable []policy.CrawlerID
		mode := policy.ModeOff
		searchers := l.searchers(i)
		for _, host := range l.allHosts(i) {
			for _, id := range searchers {
				if !l.spend(1) {
					break
				}
				d := l.decide(id, host, sample(pathpattern.All), policy.Crawl)
				if d.Verdict != policy.Disallowed {
					if d = l.ofUnverifiable(id, host); d.Rule == r {
						unverifiable = append(unverifiable, id)
					}
					continue
				}
				if d.Rule == r {
					shut = append(shut, id)
					mode = max(mode, l.policy.Mode(d))
				}
			}
		}
		names := some(l.tokens(shut), 3)
		where := ""
		if len(r.Hosts) > 0 {
			where = " on " + string(r.Hosts[0])
		}
		const cure = `allow crawl for them in a rule of their own, or write "intended: true" into this rule if that is what you want`
		switch {
		case len(shut) == 0 && len(unverifiable) > 0:
			l.warn(at, "refuses-search", `this refuses every page%s to %s, so %s: their operators publish nothing that they could be verified by, and a rule with "identity: verified" never speaks to them; allow crawl for them in a rule without "identity: verified", or write "intended: true" into this rule if that is what you want`,
				where, some(l.tokens(unverifiable), 3), l.harm(unverifiable))
		case len(shut) == 0:
		case mode == policy.ModeBlock:
			l.warn(at, "refuses-search", "this refuses every page%s to %s, so %s; %s", where, names, l.harm(shut), cure)
		default:
			l.warn(at, "shuts-out-search", "this tells %s to fetch nothing at all%s, so %s; %s", names, where, l.harm(shut), cure)
		}
	}
}

// ofUnverifiable is the decision about every page by which a crawler is refused that
// nobody can verify, or none.
func (l *linter) ofUnverifiable(id policy.CrawlerID, host string) policy.Decision {
	c, ok := l.p.catalogue.Lookup(l.policy.CrawlerInfo(id).Token)
	if !ok || !c.Verification.IsEmpty() || !l.spend(1) {
		return policy.Decision{}
	}
	d := l.policy.Decide(policy.Query{Crawler: id, Host: host, Path: sample(pathpattern.All), Usage: policy.Crawl, Now: l.now})
	if d.Verdict != policy.Disallowed || l.policy.Mode(d) != policy.ModeBlock {
		return policy.Decision{}
	}
	return d
}

// siteNotIndexed finds rules that keep every page of every host out of search
// results: what is meant for a staging host, and left without its host.
func (l *linter) siteNotIndexed() {
	for i := range l.rules {
		r := &l.rules[i]
		whole := slices.IndexFunc(r.Statements, func(s policy.Statement) bool {
			return s.Usage == policy.Index && !s.Allow && s.Pattern.IsAll()
		})
		if r.Intended || whole < 0 || len(r.Hosts) > 0 {
			continue
		}
		var hidden []policy.CrawlerID
		for _, id := range l.searchers(i) {
			if !l.spend(1) {
				break
			}
			if l.policy.CrawlerInfo(id).Kind == string(crawlers.KindSearch) && l.decide(id, "", sample(pathpattern.All), policy.Index).Rule == r {
				hidden = append(hidden, id)
			}
		}
		if names := l.tokens(hidden); len(names) > 0 {
			l.warn(r.Statements[whole].Pos, "site-not-indexed", `this keeps every page on every host out of the results of %s; name the hosts that it is meant for under hosts, or write "intended: true" into this rule if that is what you want`, some(names, 3))
		}
	}
}

// harm is what becomes of a site that crawlers are shut out of.
func (l *linter) harm(ids []policy.CrawlerID) string {
	of := func(kind crawlers.Kind) bool {
		return slices.ContainsFunc(ids, func(id policy.CrawlerID) bool { return l.policy.CrawlerInfo(id).Kind == string(kind) })
	}
	var harms []string
	if of(crawlers.KindSearch) {
		harms = append(harms, "the pages drop out of search results")
	}
	if of(crawlers.KindPreview) {
		harms = append(harms, "links that people share lose their title and image")
	}
	return list(harms, "and")
}

// searchers are the crawlers of search engines and link previews that a rule is
// for.
func (l *linter) searchers(rule int) (ids []policy.CrawlerID) {
	wanted := func(id policy.CrawlerID) bool {
		c := l.policy.CrawlerInfo(id)
		return !c.RobotsOnly && (c.Kind == string(crawlers.KindSearch) || c.Kind == string(crawlers.KindPreview))
	}
	if l.who[rule].everyone {
		for id := range l.policy.Crawlers {
			if wanted(id) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	for _, a := range l.rules[rule].For {
		for _, id := range l.crawlersOf(a) {
			if wanted(id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// allHosts are hosts for every one that a rule names.
func (l *linter) allHosts(rule int) []string {
	r := &l.rules[rule]
	if len(r.Hosts) <= maxHosts {
		return l.who[rule].hosts
	}
	hosts := make([]string, len(r.Hosts))
	for i, h := range r.Hosts {
		hosts[i] = hostFor(h)
	}
	return hosts
}

// dualUse finds rules against AI training that pass by crawlers which train among
// other things.
func (l *linter) dualUse() {
	somewhere := sample(pathpattern.All)
	for i := range l.rules {
		r := &l.rules[i]
		if !l.who[i].training || !disallowsSite(r) || !l.spend(1) {
			continue
		}
		j, host := slices.Index(r.For, training), l.who[i].hosts[0]
		var passed []policy.CrawlerID
		for k := range l.p.catalogue.Len() {
			c := l.p.catalogue.At(k)
			id := l.policy.Crawler(c.Token)
			if !c.DualUse() || c.RobotsOnly || l.isNamed(c.Token) ||
				l.decide(id, host, somewhere, policy.Crawl).Verdict == policy.Disallowed ||
				l.decide(id, host, somewhere, policy.TrainAI).Verdict == policy.Disallowed {
				continue
			}
			if control := l.policy.Crawler(c.TrainingControl); control != 0 && l.decide(control, host, somewhere, policy.Crawl).Verdict == policy.Disallowed {
				continue
			}
			passed = append(passed, id)
		}
		if names := l.tokens(passed); len(names) > 0 {
			l.warn(l.p.sources[i].audiences[j], "dual-use-crawler", `%s train AI too, but mainly do something else, so category:ai-training does not speak to them; to say that they must not train, add "train-ai: /" to what is disallowed for everyone%s; to keep one out altogether, name it under for`,
				some(names, 3), l.controls(passed))
		}
	}
}

// controls names the tokens that switch training off for crawlers.
func (l *linter) controls(ids []policy.CrawlerID) string {
	var names []string
	for _, id := range ids {
		if c, ok := l.p.catalogue.Lookup(l.policy.CrawlerInfo(id).Token); ok && c.TrainingControl != "" && !slices.Contains(names, c.TrainingControl) {
			names = append(names, c.TrainingControl)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", and disallow crawl for " + list(names, "and") + ", which stands for their training alone"
}

func disallowsSite(r *policy.Rule) bool {
	return slices.ContainsFunc(r.Statements, func(s policy.Statement) bool {
		return s.Usage == policy.Crawl && !s.Allow && s.Pattern.IsAll()
	})
}

// isNamed reports whether a rule names a crawler, so that its author knows of it.
func (l *linter) isNamed(token string) bool {
	for i := range l.rules {
		if slices.ContainsFunc(l.rules[i].For, func(a policy.Audience) bool {
			return a.Kind == policy.ForToken && len(a.Name) == len(token) && containsFold([]string{a.Name}, token)
		}) {
			return true
		}
	}
	return false
}

// trainingMayCrawl finds policies that ask for no training and let the crawlers
// that train fetch everything.
func (l *linter) trainingMayCrawl() {
	somewhere := sample(pathpattern.All)
	var asks *policy.Statement
	for i := range l.rules {
		r := &l.rules[i]
		for j := range r.Statements {
			s := &r.Statements[j]
			if s.Usage == policy.Crawl && l.who[i].training {
				return // the author has thought of it
			}
			if asks == nil && s.Usage == policy.TrainAI && !s.Allow && s.Pattern.IsAll() && l.who[i].everyone && len(r.Hosts) == 0 {
				asks = s
			}
		}
	}
	if asks == nil {
		return
	}
	var may []policy.CrawlerID
	for _, id := range l.crawlersOf(training) {
		if !l.policy.CrawlerInfo(id).RobotsOnly && l.decide(id, "", somewhere, policy.Crawl).Verdict != policy.Disallowed {
			may = append(may, id)
		}
	}
	if names := l.tokens(may); len(names) > 0 {
		l.warn(asks.Pos, "training-may-crawl", `this asks not to train AI, but %s, which collect for training, may still fetch every page; to tell them not to, add a rule "for: category:ai-training" that disallows "crawl: /"`, some(names, 3))
	}
}
