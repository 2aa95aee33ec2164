// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

const kindSearch = "search"

// SearchLoss is what search engines lose by the change, those that did not fail
// verification: see [site.SearchLoss].
func (c *Change) SearchLoss() (loss site.Loss) {
	if c.Identity == "unverified" || c.Identity == "impostor" || c.Purpose != "" || c.search() == nil {
		return 0
	}
	for _, name := range c.Usages {
		u, usage := policy.ParseUsage(name)
		switch {
		case c.Effect == Edge && c.New == policy.ModeBlock.String():
			loss |= site.LossRefused
		case usage && (c.Effect == Loss && c.New == disallowed || strings.Contains(c.New, "max-length=0-") && !strings.Contains(c.Old, "max-length=0-")):
			loss |= site.LossOf(u)
		case c.Effect == Line && !slices.Contains(notRules, name):
			was, is := robotsrule.Parse(noRules(c.Old)), robotsrule.Parse(noRules(c.New))
			if is.Has("noindex") && !was.Has("noindex") {
				loss |= site.LossIndex
			}
			if is.Has("nosnippet") && !was.Has("nosnippet") {
				loss |= site.LossSnippet
			}
		}
	}
	return loss
}

// noRules is the value of a line as a change has it, "" for none.
func noRules(value string) string {
	if value == noValue {
		return ""
	}
	return value
}

// notRules are the names of lines that are no rules of engines.
var notRules = []string{"crawl-delay", "limit", "app-directives", "sitemap", "license"}

// search are the search engines that the change is for.
func (c *Change) search() []string {
	i := slices.IndexFunc(c.Kinds, func(k Kind) bool { return k.Kind == kindSearch })
	if i < 0 {
		return nil
	}
	return c.Kinds[i].Crawlers
}

// SearchLosses lists the changes by which search engines lose something.
func (d *Diff) SearchLosses() (all []Change) {
	for i := range d.Changes {
		if d.Changes[i].SearchLoss() != 0 {
			all = append(all, d.Changes[i])
		}
	}
	return all
}

// Losses are what search engines lose when one policy takes the place of another, found
// without traffic and not intended by a rule.
type Losses struct {
	Found    []Found
	Complete bool // false: the policies are too large to find all
	policy   *site.Site
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

// SearchLosses compares two policies, in every part of the site where anything changes; old
// may be nil for one that says nothing.
func SearchLosses(old, now *site.Site, o Options) *Losses {
	if old == nil {
		old, _ = site.Load("nothing", []byte("version: 1\n"))
	}
	d := Policies(old.Policy, now.Policy, o)
	l := &Losses{Complete: d.Complete, policy: now}
	seen := map[Found]bool{}
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
					if seen[f] {
						continue
					}
					seen[f] = true
					if len(seen) > maxLossQueries {
						l.Complete = false
						return l
					}
					l.ask(old, now, f, cmp.Or(o.Now, time.Now()))
				}
			}
		}
	}
	return l
}

// named are the crawlers that a change is for, those of everyone else too.
func (c *Change) named() (all []string) {
	for _, k := range c.Kinds {
		all = append(all, k.Crawlers...)
	}
	return all
}

func (l *Losses) ask(old, now *site.Site, f Found, at time.Time) {
	q := policy.Query{Host: nameOf(f.Host), Path: sample(f.Path), Identity: policy.Verified, Now: at}
	was, is := q, q
	was.Crawler, is.Crawler = old.Policy.Crawler(f.Crawler), now.Policy.Crawler(f.Crawler)
	if f.Lost = site.SearchLoss(old, now, was, is); f.Loss == 0 && now.Verification(is.Crawler).IsEmpty() {
		was.Identity, is.Identity = policy.Unknown, policy.Unknown
		f.Lost = site.SearchLoss(old, now, was, is)
	}
	if f.Loss != 0 {
		l.Found = append(l.Found, f)
	}
}

// Words says who loses what, by which rules, and what to write if it is meant to be so.
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
	if !l.Complete {
		all = append(all, "the policies are too large to compare everything that they say")
	}
	return all
}

// Any reports whether something may be lost.
func (l *Losses) Any() bool { return len(l.Found) > 0 || !l.Complete }

// Of reports whether a crawler may lose something on a host.
func (l *Losses) Of(crawler, host string) bool {
	return l.anyOf(crawler, host, func(pathpattern.Pattern) bool { return true })
}

// WithQuery reports whether a crawler may lose a path with some query.
func (l *Losses) WithQuery(crawler, host, path string) bool {
	queries, err := pathpattern.Parse(strings.NewReplacer("*", "%2A", "$", "%24").Replace(path) + "?*")
	return err != nil || l.anyOf(crawler, host, func(p pathpattern.Pattern) bool {
		return queries.Overlaps(p) || lower(queries).Overlaps(lower(p)) // the server takes them for the same
	})
}

func lower(p pathpattern.Pattern) pathpattern.Pattern {
	low, err := pathpattern.Parse(strings.ToLower(p.String()))
	if err != nil {
		return p
	}
	return low
}

// OnHosts reports whether a crawler may lose something by a rule for some hosts only.
func (l *Losses) OnHosts(crawler string) bool {
	return !l.Complete || slices.ContainsFunc(l.Found, func(f Found) bool { return f.Host != "" && strings.EqualFold(f.Crawler, crawler) })
}

// Unrequested lists the crawlers whose names no request has and that lose what no other
// one of their operators does.
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
		return f.Host == "" || string(f.Host) == host || f.Host.Wildcard() && strings.HasSuffix(host, string(f.Host[1:]))
	})
}
