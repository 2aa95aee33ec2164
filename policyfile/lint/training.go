// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// dualUse finds rules against AI training that leave out crawlers which train
// among other things.
func (l *linter) dualUse() {
	for i := range l.rules {
		r := &l.rules[i]
		if !l.reach[i].training || indexOfWholeSite(r, policy.Crawl) < 0 || !l.spend(1) {
			continue
		}
		j, host := slices.Index(r.For, training), l.reach[i].hosts[0]
		var passed []policy.CrawlerID
		for k := range l.Catalogue.Len() {
			c := l.Catalogue.At(k)
			id := l.Policy.Crawler(c.Token)
			if !c.DualUse() || c.RobotsOnly || l.isNamed(c.Token) ||
				l.decide(id, host, anyPage, policy.Crawl).Verdict == policy.Disallowed ||
				l.decide(id, host, anyPage, policy.TrainAI).Verdict == policy.Disallowed {
				continue
			}
			if control := l.Policy.Crawler(c.TrainingControl); control != 0 && l.decide(control, host, anyPage, policy.Crawl).Verdict == policy.Disallowed {
				continue
			}
			passed = append(passed, id)
		}
		if len(passed) > 0 {
			l.report("dual-use-crawler", l.Sources[i].Audiences[j], fmt.Sprintf(`%s train AI too, but mainly do something else, so category:ai-training does not include them; to ask them not to train, add "train-ai: /" to what is disallowed for everyone%s; to keep one out altogether, name it under for`,
				l.someTokens(passed), l.controls(passed)))
		}
	}
}

// controls names the tokens that switch training off for crawlers.
func (l *linter) controls(ids []policy.CrawlerID) string {
	var names []string
	for _, id := range ids {
		if c, ok := l.Catalogue.Lookup(l.Policy.CrawlerInfo(id).Token); ok && c.TrainingControl != "" && !slices.Contains(names, c.TrainingControl) {
			names = append(names, c.TrainingControl)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", and disallow crawl for " + english.List(names, "and") + ", which stands for their training alone"
}

// isNamed reports whether a rule names a crawler, so that its author knows of it.
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

// trainingMayCrawl finds policies that ask for no training and let the crawlers
// that train fetch everything.
func (l *linter) trainingMayCrawl() {
	var asks *policy.Statement
	for i := range l.rules {
		r := &l.rules[i]
		for j := range r.Statements {
			s := &r.Statements[j]
			if s.Usage == policy.Crawl && l.reach[i].training {
				return // the author has thought of it
			}
			if asks == nil && s.Usage == policy.TrainAI && !s.Allow && s.Pattern.IsAll() && l.reach[i].everyone && len(r.Hosts) == 0 {
				asks = s
			}
		}
	}
	if asks == nil {
		return
	}
	var may []policy.CrawlerID
	for _, id := range l.crawlersOf(training) {
		if !l.Policy.CrawlerInfo(id).RobotsOnly && l.decide(id, "", anyPage, policy.Crawl).Verdict != policy.Disallowed {
			may = append(may, id)
		}
	}
	if len(may) > 0 {
		l.report("training-may-crawl", asks.Pos, fmt.Sprintf(`this asks not to train AI, but %s, which collect for training, may still fetch every page; to keep them out, add a rule "for: category:ai-training" that disallows "crawl: /"`, l.someTokens(may)))
	}
}
