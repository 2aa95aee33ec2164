// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

const kindSearch = "search"

// Losses holds the losses of search engines when a policy replaces another. They are found by comparing the policies,
// without recorded requests. A loss is not included if a rule of the policy marks it as intended.
type Losses struct {
	Found    []Found
	AI       []Found // losses of search engines whose results are AI answers; they are reported, but not counted
	Complete bool    // false if the policies are too large to find all losses
	// Reverified lists a search engine if the new policy requires other proofs of its identity than the old policy. The
	// new policy blocks or restricts requests that do not have these proofs. It is not known how many requests that
	// will be.
	Reverified []string
	// Unread are the hosts whose own robots.txt is not known, with the search engines that may lose something because
	// of it.
	Unread []Unread
	policy *site.Site
	whole  []Found // see Whole
}

// Found is the loss of one search engine for the paths of a pattern.
type Found struct {
	effect.Lost

	Crawler string
	Host    policy.Host // "" means every host that the policies do not name
	Path    pathpattern.Pattern
}

// maxLossQueries limits the number of pages that an asker compares on both sites.
const maxLossQueries = 100_000

// Sites returns the changes when the site old is replaced with the site now. These are the changed decisions, each
// with the losses that it causes for search engines, and the changed settings. old may be nil, which means an empty
// policy.
func Sites(old, now *site.Site, o Options) *Diff {
	if old == nil {
		old, _ = site.Load("nothing", []byte("version: 1\n"))
	}
	o.Now = cmp.Or(o.Now, time.Now())
	if o.Below != nil {
		return over(old, now, o)
	}
	d := &Diff{Settings: settingsOf(old.File, now.File)}
	d.Changes, d.Complete = Decisions(old.Policy, now.Policy, o)
	d.RobotsTxt = d.rendersDifferently(old, now, hostsFor(old.Policy, now.Policy, o))
	l := &Losses{Complete: d.Complete, Reverified: reverified(old, now), policy: now}
	d.Losses = l
	a := asker{old: old, now: now, at: o.Now, losses: l, fill: filler(old.Policy, now.Policy), seen: map[page]*effect.Taken{}}
	heard := d.Changes[:0]
	for i := range d.Changes {
		if c := &d.Changes[i]; !a.isSilent(c) {
			heard = append(heard, *c)
		}
	}
	d.Changes = heard
	for i := range d.Changes {
		c := &d.Changes[i]
		a.ask(c, c.named(), lossesOf(c))
	}
	d.Changes = append(d.Changes, a.indirect(d.Changes)...)
	a.findWhole()
	d.sort()
	return d
}

// sort moves the changes that cause losses of search engines to the start.
func (d *Diff) sort() {
	slices.SortStableFunc(d.Changes, func(a, b Change) int {
		return last(b.Lost&effect.Counted != 0) - last(a.Lost&effect.Counted != 0)
	})
}

// page is a page that a search engine is asked about.
type page struct {
	crawler string
	host    policy.Host
	path    pathpattern.Pattern
}

// asker finds the losses of search engines by asking both sites about an example page for each pattern of a change.
type asker struct {
	old, now *site.Site
	at       time.Time
	losses   *Losses
	fill     string
	seen     map[page]*effect.Taken
}

// ask finds out what search engines lose on the paths of the change c, and adds the losses to c. It ignores the
// crawlers in tokens that are not search engines. rows is the set of losses that may be added to c; other losses are
// only added to a.losses.
func (a *asker) ask(c *Change, tokens []string, rows effect.Loss) {
	for _, token := range tokens {
		if !a.old.Searches(a.old.Policy.Crawler(token)) && !a.now.Searches(a.now.Policy.Crawler(token)) {
			continue
		}
		for _, host := range hostsOf(c) {
			for _, path := range c.Paths {
				taken := a.taken(page{token, policy.Host(host), pathpattern.MustParse(path)})
				if taken == nil {
					a.losses.Complete = false
					return
				}
				lost := taken.Lost(rows)
				c.Lost, c.Intended = c.Lost|lost.Loss, c.Intended|lost.Intended
			}
		}
	}
}

func hostsOf(c *Change) []string {
	if c.Hosts == nil {
		return []string{""}
	}
	return c.Hosts
}

// taken returns the losses on the page p for the search engine that p names. It stores the result, so that each page is
// compared only once, and returns nil if the limit maxLossQueries is reached.
func (a *asker) taken(p page) *effect.Taken {
	if t, asked := a.seen[p]; asked || len(a.seen) >= maxLossQueries {
		return t
	}
	was, is := a.queries(p)
	t := effect.Compare(a.old.Engine, a.now.Engine, was, is, ^effect.Loss(0))
	if t.Counted().Loss == 0 && a.now.Verification(is.Crawler).IsEmpty() {
		was.Identity, is.Identity = policy.Unknown, policy.Unknown
		t = effect.Compare(a.old.Engine, a.now.Engine, was, is, ^effect.Loss(0))
	}
	a.seen[p] = t
	if lost := t.Counted(); lost.Loss != 0 {
		a.losses.Found = append(a.losses.Found, Found{lost, p.crawler, p.host, p.path})
	} else if lost := t.Lost(effect.Counted); lost.Loss != 0 {
		a.losses.AI = append(a.losses.AI, Found{lost, p.crawler, p.host, p.path})
	}
	return t
}

func (a *asker) queries(p page) (was, is policy.Query) {
	was = policy.Query{Host: nameOf(p.host), Path: sample(p.path, a.fill), Identity: policy.Verified, Now: a.at, Crawler: a.old.Policy.Crawler(p.crawler)}
	is = was
	is.Crawler = a.now.Policy.Crawler(p.crawler)
	return was, is
}

// indirect returns the changes that affect search engines indirectly, through a change for another crawler. This
// happens if the search engine follows the other crawler's group in robots.txt, or if the server recognizes the search
// engine's requests as requests of the other crawler.
func (a *asker) indirect(changes []Change) (all []Change) {
	for id, info := range a.now.Policy.Crawlers {
		if !a.now.Searches(id) || len(info.Follows)+len(a.now.Caught(id)) == 0 {
			continue
		}
		for _, c := range a.changesBehind(id, info, changes) {
			c.Lost, c.Intended = 0, 0
			a.ask(&c, []string{info.Token}, effect.LossBlocked|effect.LossCrawl)
			if c.Lost|c.Intended == 0 {
				continue
			}
			all = append(all, Change{
				Effect: Loss, Usages: []string{policy.Crawl.String()}, Old: policy.Allowed.String(), New: disallowed, Hosts: c.Hosts, Paths: c.Paths,
				Crawlers: []string{info.Token}, Kinds: []Kind{{kindSearch, []string{info.Token}, false}}, Lost: c.Lost, Intended: c.Intended,
			})
		}
	}
	return merged(all, func(c *Change) string { return fmt.Sprint(c.Hosts, c.Paths, c.Lost, c.Intended) }, func(to, from *Change) {
		for _, token := range from.Crawlers {
			if !slices.Contains(to.Crawlers, token) { // several changes can have the same effect on an engine
				to.Crawlers = append(to.Crawlers, token)
			}
		}
		to.Kinds[0].Crawlers = to.Crawlers
	})
}

// changesBehind lists the changes that affect the search engine id without naming it. They name another crawler, whose
// group the engine follows in robots.txt, or whose requests the server cannot tell from the engine's requests. If the
// server could still tell them apart with the old policy, the result also includes all hosts and paths where rules may
// disallow crawling for the other crawler.
func (a *asker) changesBehind(id policy.CrawlerID, info policy.Crawler, changes []Change) (all []Change) {
	behind := func(token string, effect Effect) {
		for i := range changes {
			c := &changes[i]
			named := c.named()
			if c.Effect == effect && slices.Contains(c.Usages, policy.Crawl.String()) && slices.Contains(named, token) && !slices.Contains(named, info.Token) {
				all = append(all, *c)
			}
		}
	}
	for _, token := range info.Follows {
		behind(token, Loss)
	}
	for _, by := range a.now.Caught(id) {
		token := a.now.Policy.CrawlerInfo(by).Token
		behind(token, Edge)
		if was := a.old.Policy.Crawler(token); was == 0 || !a.old.Catches(was, a.old.Policy.Crawler(info.Token)) {
			all = append(all, a.closings(by)...)
		}
	}
	return all
}

// closings returns the hosts and paths where rules of the new policy may disallow crawling for a crawler.
func (a *asker) closings(id policy.CrawlerID) (all []Change) {
	for _, h := range robotsserve.Hosts(a.now.Policy) {
		class := a.now.Policy.ClassOf(id, nameOf(h))
		var paths []pathpattern.Pattern
		for _, s := range a.now.Policy.Statements(&class, policy.Crawl, "") {
			if !s.Statement.Allow || s.Statement.Qualifiers != nil {
				paths = append(paths, s.Statement.Pattern)
			}
		}
		if len(paths) > 0 {
			all = append(all, Change{Hosts: []string{string(h)}, Paths: texts(widest(paths))})
		}
	}
	return all
}

// isSilent reports whether c is a change about crawling that none of the crawlers of c notices. For example, a crawler
// that ignores the group of "*" notices the change only if robots.txt has a group for it, or if the server blocks it.
func (a *asker) isSilent(c *Change) bool {
	if c.Effect != Loss && c.Effect != Gain || !slices.Equal(c.Usages, []string{policy.Crawl.String()}) || slices.ContainsFunc(c.Crawlers, isElse) {
		return false
	}
	hears := func(token string) bool {
		info := a.now.Policy.CrawlerInfo(a.now.Policy.Crawler(token))
		if !info.IgnoresStar && !info.Signer && !info.NoToken {
			return true
		}
		return slices.ContainsFunc(hostsOf(c), func(host string) bool {
			return slices.ContainsFunc(c.Paths, func(path string) bool {
				was, is := a.queries(page{token, policy.Host(host), pathpattern.MustParse(path)})
				return a.old.MayCrawl(was) != a.now.MayCrawl(is)
			})
		})
	}
	return !slices.ContainsFunc(c.Crawlers, hears)
}

func isElse(token string) bool { return token == Everyone || token == EveryoneElse }

func reverified(old, now *site.Site) (tokens []string) {
	if now.Policy.Spec().Enforcement.Impostors != policy.ModeBlock && !now.Policy.DemandsIdentity() {
		return nil
	}
	for id, c := range now.Policy.Crawlers {
		was := old.Policy.Crawler(c.Token)
		if was != 0 && now.Searches(id) && !reflect.DeepEqual(old.Verification(was), now.Verification(id)) {
			tokens = append(tokens, c.Token)
		}
	}
	return tokens
}

// lossesOf returns the losses that a change can cause.
func lossesOf(c *Change) (rows effect.Loss) {
	if c.Effect == Gain {
		return 0
	}
	for _, name := range c.Usages {
		rows |= effect.LossesFrom(name)
	}
	return rows
}

// named returns the crawlers of a change, including the crawlers that everyone-else stands for.
func (c *Change) named() (all []string) {
	for _, k := range c.Kinds {
		all = append(all, k.Crawlers...)
	}
	return all
}

// Words describes the losses of each search engine, the rules that cause them, and the line to write if they are
// intended.
func (l *Losses) Words() []string {
	all := append(l.WordsOf(l.Found), l.unproven()...)
	for _, u := range l.Unread {
		all = append(all, u.gap().What)
	}
	if !l.Complete {
		all = append(all, tooLarge)
	}
	return all
}

const tooLarge = "the policies are too large to compare completely"

// WordsOf describes the losses in found like Words, but without the gaps in the comparison.
func (l *Losses) WordsOf(found []Found) (all []string) {
	type kind struct {
		loss effect.Loss
		path pathpattern.Pattern
		host policy.Host
		rule *policy.Rule
	}
	var kinds []kind
	who := map[kind][]string{}
	for _, f := range found {
		k := kind{f.Loss, f.Path, f.Host, f.Rule}
		if who[k] == nil {
			kinds = append(kinds, k)
		}
		who[k] = append(who[k], f.Crawler)
	}
	for _, k := range kinds {
		crawlers.SortWellKnown(who[k])
		where := k.path.String()
		if k.path.IsAll() {
			where = "the whole site"
		}
		if k.host != "" {
			where += " on " + string(k.host)
		}
		words := fmt.Sprintf("%s is now %s for %s", where, k.loss, crawlerNames(who[k], maxNames))
		switch {
		case k.rule != nil && k.rule.Fallback:
			words += fmt.Sprintf(" by %s, because the new policy no longer allows it", policy.PlaceInFallback(k.rule.FallbackFile, k.rule.Pos.Line))
		case k.rule != nil:
			words += fmt.Sprintf(" by %s; if this is intended, write %q into this rule", l.policy.Place(k.rule.Pos), k.loss.Intended())
		}
		all = append(all, words)
	}
	return all
}

func (l *Losses) unproven() (all []string) {
	for _, token := range l.Reverified {
		all = append(all, token+" is now verified in a different way, so its requests may fail verification; delete the entry for this crawler under \"crawlers\"")
	}
	return all
}

// Names returns the names that an operator has to accept before the new policy is published. These are the search
// engines that lose something, and the gaps in the comparison that may hide further losses.
func (l *Losses) Names() (names []string) {
	_, c := l.Known().Get()
	for _, g := range c.Gaps {
		names = append(names, g.Name)
	}
	for i := range l.Found {
		names = append(names, l.Found[i].Crawler)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Any reports whether search engines may lose something.
func (l *Losses) Any() bool { return len(l.Found)+len(l.Reverified)+len(l.Unread) > 0 || !l.Complete }

// Of reports whether a crawler may lose something on a host.
func (l *Losses) Of(crawler, host string) bool {
	return l.anyOf(crawler, host, func(pathpattern.Pattern) bool { return true })
}

// WithQuery reports whether a crawler may lose the path when some query string is appended to it.
func (l *Losses) WithQuery(crawler, host, path string) bool {
	queries, err := pathpattern.Parse(strings.NewReplacer("*", "%2A", "$", "%24").Replace(path) + "?*")
	return err != nil || l.anyOf(crawler, host, func(p pathpattern.Pattern) bool {
		// The server treats paths that only differ in letter case as the same.
		return queries.Overlaps(p) || queries.Folded().Overlaps(p.Folded())
	})
}

// OnHosts reports whether a crawler may lose something because of a rule that only applies to some hosts.
func (l *Losses) OnHosts(crawler string) bool {
	return !l.Complete || slices.ContainsFunc(l.Found, func(f Found) bool { return f.Host != "" && strings.EqualFold(f.Crawler, crawler) })
}

func (l *Losses) anyOf(crawler, host string, fits func(pathpattern.Pattern) bool) bool {
	host = policy.NormalizeHost(host)
	return !l.Complete || slices.ContainsFunc(l.Found, func(f Found) bool {
		if !strings.EqualFold(f.Crawler, crawler) || !fits(f.Path) {
			return false
		}
		return f.Host == "" || f.Host.Covers(host)
	})
}
