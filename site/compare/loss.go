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
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

const kindSearch = "search"

// Losses are what search engines lose when a policy takes the place of another, found without traffic
// and not intended by a rule.
type Losses struct {
	Found    []Found
	Complete bool // false: the policies are too large to find all
	// Reverified are search engines that the new policy verifies by other proof and blocks, or gives
	// less, if they fail: nobody knows how many requests do.
	Reverified []string
	policy     *site.Site
}

// Found is what one search engine loses at the paths of a pattern.
type Found struct {
	site.Lost

	Crawler string
	Host    policy.Host // "" for every host that is not named
	Path    pathpattern.Pattern
}

// maxLossQueries bounds how many pages are asked about.
const maxLossQueries = 100_000

// Sites is Policies with what search engines lose by each change; old may be nil for an empty policy.
func Sites(old, now *site.Site, o Options) *Diff {
	if old == nil {
		old, _ = site.Load("nothing", []byte("version: 1\n"))
	}
	o.Now = cmp.Or(o.Now, time.Now())
	d := Policies(old.Policy, now.Policy, o)
	l := &Losses{Complete: d.Complete, Reverified: reverified(old, now), policy: now}
	d.Losses = l
	seen, fill := map[Found]site.Lost{}, filler(old.Policy, now.Policy)
	for i := range d.Changes {
		c := &d.Changes[i]
		hosts := c.Hosts
		if hosts == nil {
			hosts = []string{""}
		}
		for _, token := range c.named() {
			if !old.Searches(old.Policy.Crawler(token)) && !now.Searches(now.Policy.Crawler(token)) {
				continue
			}
			for _, host := range hosts {
				for _, path := range c.Paths {
					f := Found{Crawler: token, Host: policy.Host(host), Path: pathpattern.MustParse(path)}
					lost, asked := seen[f]
					if !asked && len(seen) < maxLossQueries {
						lost = f.ask(old, now, fill, o.Now)
						if seen[f] = lost; lost.Loss != 0 {
							f.Lost = lost
							l.Found = append(l.Found, f)
						}
					}
					l.Complete = l.Complete && (asked || len(seen) < maxLossQueries)
					c.Lost, c.Intended = c.Lost|lost.Loss&c.may(), c.Intended|lost.Intended&c.may()
				}
			}
		}
	}
	slices.SortStableFunc(d.Changes, func(a, b Change) int { return last(b.Lost != 0) - last(a.Lost != 0) })
	return d
}

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

func (c *Change) may() (loss site.Loss) {
	if c.Effect == Gain {
		return 0
	}
	for _, name := range c.Usages {
		u, usage := policy.ParseUsage(name)
		switch {
		case u == policy.Crawl && usage:
			loss |= site.LossRefused | site.LossCrawl
		case usage:
			loss |= site.LossOf(u)
		case name == "limit" || name == "crawl-delay":
			loss |= site.LossLimit
		case !slices.Contains(notRules, name):
			loss |= site.LossIndex | site.LossSnippet
		}
	}
	return loss
}

// notRules are the names of lines that are no rules of engines.
var notRules = []string{"app-directives", "sitemap", "license", "rsl", "tdmrep"}

// named are the crawlers of a change, including those of everyone else.
func (c *Change) named() (all []string) {
	for _, k := range c.Kinds {
		all = append(all, k.Crawlers...)
	}
	return all
}

func (f *Found) ask(old, now *site.Site, fill string, at time.Time) (lost site.Lost) {
	q := policy.Query{Host: nameOf(f.Host), Path: sample(f.Path, fill), Identity: policy.Verified, Now: at}
	was, is := q, q
	was.Crawler, is.Crawler = old.Policy.Crawler(f.Crawler), now.Policy.Crawler(f.Crawler)
	if lost = site.SearchLoss(old, now, was, is); lost.Loss == 0 && now.Verification(is.Crawler).IsEmpty() {
		was.Identity, is.Identity = policy.Unknown, policy.Unknown
		lost = site.SearchLoss(old, now, was, is)
	}
	return lost
}

// Words says who loses what, by which rules, and what to write if that is intended.
func (l *Losses) Words() (all []string) {
	type kind struct {
		loss site.Loss
		path pathpattern.Pattern
		host policy.Host
		rule *policy.Rule
	}
	var kinds []kind
	who := map[kind][]string{}
	for _, f := range l.Found {
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
		words := fmt.Sprintf("%s is now %s for %s", where, k.loss, named(who[k], maxNames))
		if k.rule != nil {
			words += fmt.Sprintf(" by %s; if it is meant to be so, write %q into this rule", l.policy.Place(k.rule.Pos), k.loss.Intended())
		}
		all = append(all, words)
	}
	all = append(all, l.unproven()...)
	if !l.Complete {
		all = append(all, "the policies are too large to compare everything that they say")
	}
	return all
}

func (l *Losses) unproven() (all []string) {
	for _, token := range l.Reverified {
		all = append(all, token+" is verified otherwise than before, and it is not known which of its requests fail that; delete what the policy says about it under crawlers")
	}
	return all
}

// Undecided is among the names of losses if the policies are too large to find all.
const Undecided = "undecided"

// Names returns the search engines that may lose something, and Undecided if there may be more.
func (l *Losses) Names() []string {
	names := slices.Clone(l.Reverified)
	for i := range l.Found {
		names = append(names, l.Found[i].Crawler)
	}
	if !l.Complete {
		names = append(names, Undecided)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Any reports whether something may be lost.
func (l *Losses) Any() bool { return len(l.Found)+len(l.Reverified) > 0 || !l.Complete }

// Of reports whether a crawler may lose something on a host.
func (l *Losses) Of(crawler, host string) bool {
	return l.anyOf(crawler, host, func(pathpattern.Pattern) bool { return true })
}

// WithQuery reports whether a crawler may lose a path with some query.
func (l *Losses) WithQuery(crawler, host, path string) bool {
	queries, err := pathpattern.Parse(strings.NewReplacer("*", "%2A", "$", "%24").Replace(path) + "?*")
	return err != nil || l.anyOf(crawler, host, func(p pathpattern.Pattern) bool {
		return queries.Overlaps(p) || queries.Folded().Overlaps(p.Folded()) // the server takes them for the same
	})
}

// OnHosts reports whether a crawler may lose something by a rule for some hosts.
func (l *Losses) OnHosts(crawler string) bool {
	return !l.Complete || slices.ContainsFunc(l.Found, func(f Found) bool { return f.Host != "" && strings.EqualFold(f.Crawler, crawler) })
}

// Unrequested lists crawlers that only robots.txt names and that lose what no other crawler of their operators does.
func (l *Losses) Unrequested() (tokens []string) {
	type page struct {
		operator string
		host     policy.Host
		path     pathpattern.Pattern
	}
	info := func(f *Found) policy.Crawler { return l.policy.Policy.CrawlerInfo(l.policy.Policy.Crawler(f.Crawler)) }
	requested := map[page]bool{}
	for i := range l.Found {
		f := &l.Found[i]
		if c := info(f); !c.RobotsOnly {
			requested[page{c.Operator, f.Host, f.Path}] = true
		}
	}
	for i := range l.Found {
		f := &l.Found[i]
		if c := info(f); c.RobotsOnly && !requested[page{c.Operator, f.Host, f.Path}] && !slices.Contains(tokens, f.Crawler) {
			tokens = append(tokens, f.Crawler)
		}
	}
	return tokens
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
