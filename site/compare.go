// SPDX-License-Identifier: Apache-2.0

package site

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// Change is one difference between two policies: what they decide about a usage
// for some crawlers.
type Change struct {
	Crawlers []string `json:"crawlers"` // product tokens, "everyone" or "everyone else"
	Host     string   `json:"host,omitempty"`
	Usage    string   `json:"usage"`
	Now      string   `json:"now"`   // allowed, disallowed, unstated; or, of the usage "edge", what is done: off, log, block
	Paths    []string `json:"paths"` // patterns that either policy names; "/" stands for the whole site
}

// Changes is what a new policy changes.
type Changes struct {
	Decisions []Change `json:"decisions"`
	RobotsTxt bool     `json:"robots_txt"` // the robots.txt of some host is another
	Complete  bool     `json:"complete"`   // false: the policies are too large to compare all that they say
}

// UsageEdge is the usage of a Change in what is done about crawlers that do not
// obey.
const UsageEdge = "edge"

// The limits of a comparison, which keep a hostile policy from making it long.
const (
	maxCompareHosts     = 50
	maxCompareDecisions = 500_000
)

// These stand in a Change for all crawlers, and for those whom neither policy
// tells apart.
const (
	everyone     = "everyone"
	everyoneElse = "everyone else"
)

// Compare says what changes when now takes the place of before. It asks both for
// their decisions about every pattern that either names: what changes only where
// patterns overlap may be missed, but a robots.txt that differs never is.
func Compare(before, now *Site) *Changes {
	c := &comparison{before: before, now: now, at: time.Now(), left: maxCompareDecisions}
	changes := &Changes{Complete: true}
	hosts := union(robotsserve.Hosts(before.Policy), robotsserve.Hosts(now.Policy))
	if len(hosts) > maxCompareHosts {
		hosts, changes.Complete = append(hosts[:maxCompareHosts-1:maxCompareHosts-1], ""), false
	}
	patterns := union(patternsOf(before.Policy), patternsOf(now.Policy))
	for _, h := range hosts {
		host := string(h)
		switch {
		case h == "":
			host = "host.invalid" // for which sitemaps are completed
		case h.Wildcard():
			host = "any" + host[1:]
		}
		old, _ := robotsserve.Render(before.Policy, host, robotsserve.Options{})
		renewed, _ := robotsserve.Render(now.Policy, host, robotsserve.Options{})
		changes.RobotsTxt = changes.RobotsTxt || !bytes.Equal(old.Body, renewed.Body)
		changes.Decisions = append(changes.Decisions, c.host(host, string(h), patterns)...)
	}
	changes.Complete = changes.Complete && c.left > 0
	changes.Decisions = sameEverywhere(changes.Decisions, hosts)
	return changes
}

type comparison struct {
	before, now *Site
	at          time.Time
	left        int // decisions that may still be asked for
}

// alike is crawlers that neither policy tells apart on a host.
type alike struct {
	tokens      []string
	before, now policy.CrawlerID // one of them
}

func (c *comparison) groups(host string) []alike {
	type pair struct{ before, now int }
	before, now := classes(c.before.Policy, host), classes(c.now.Policy, host)
	tokens := union(tokensOf(c.before.Policy), tokensOf(c.now.Policy))
	groups := []alike{{tokens: []string{everyoneElse}}}
	place := map[pair]int{{0, 0}: 0}
	for _, t := range tokens {
		b, n := c.before.Policy.Crawler(t), c.now.Policy.Crawler(t)
		at := pair{before[b], now[n]}
		i, ok := place[at]
		if !ok {
			i = len(groups)
			place[at] = i
			groups = append(groups, alike{before: b, now: n})
		}
		if i > 0 {
			groups[i].tokens = append(groups[i].tokens, t)
		}
	}
	return groups
}

// classes numbers the classes of crawlers on a host; 0 is that of everybody
// else.
func classes(p *policy.Policy, host string) map[policy.CrawlerID]int {
	of := map[policy.CrawlerID]int{}
	for i, class := range p.Classes(host) {
		for _, id := range class.Crawlers {
			of[id] = i
		}
	}
	return of
}

// host says what changes on a host. What changes in the same way for several
// groups of crawlers is one change.
func (c *comparison) host(host, name string, patterns []string) (changes []Change) {
	groups := c.groups(host)
	place, count := map[string]int{}, map[int]int{}
	for _, g := range groups {
		for _, change := range c.group(g, host, patterns) {
			key := strings.Join(append([]string{change.Usage, change.Now}, change.Paths...), "\n")
			i, ok := place[key]
			if !ok {
				i = len(changes)
				place[key] = i
				change.Host = name
				changes = append(changes, change)
			} else {
				changes[i].Crawlers = append(changes[i].Crawlers, change.Crawlers...)
			}
			count[i]++
		}
	}
	for i := range changes {
		if count[i] == len(groups) {
			changes[i].Crawlers = []string{everyone}
		}
	}
	return changes
}

// group says what changes for a group.
func (c *comparison) group(g alike, host string, patterns []string) (changes []Change) {
	for _, u := range policy.Usages() {
		if u == policy.Other {
			continue
		}
		paths := map[string][]string{}
		var edge map[string][]string
		for _, pattern := range patterns {
			if c.left -= 2; c.left <= 0 {
				return changes
			}
			q := policy.Query{Host: host, Path: samplePath(pattern), Usage: u, Now: c.at}
			q.Crawler = g.before
			b := c.before.Policy.Decide(q)
			q.Crawler = g.now
			n := c.now.Policy.Decide(q)
			if b.Verdict != n.Verdict && (u != policy.Crawl || (b.Verdict == policy.Disallowed) != (n.Verdict == policy.Disallowed)) {
				paths[n.Verdict.String()] = append(paths[n.Verdict.String()], pattern)
			}
			if u != policy.Crawl || g.before == 0 && g.now == 0 {
				continue
			}
			if mb, mn := modeOf(c.before, b, g.before), modeOf(c.now, n, g.now); mb != mn {
				if edge == nil {
					edge = map[string][]string{}
				}
				edge[mn.String()] = append(edge[mn.String()], pattern)
			}
		}
		add := func(usage string, paths map[string][]string) {
			for _, verdict := range sortedKeys(paths) {
				now := verdict
				if usage == policy.Crawl.String() && verdict != policy.Disallowed.String() {
					now = policy.Allowed.String()
				}
				changes = append(changes, Change{Crawlers: slices.Clone(g.tokens), Usage: usage, Now: now, Paths: paths[verdict]})
			}
		}
		add(u.String(), paths)
		add(UsageEdge, edge)
	}
	return changes
}

// modeOf is what is done about a request that d is the decision of.
func modeOf(s *Site, d policy.Decision, id policy.CrawlerID) policy.Mode {
	if id == 0 || d.Verdict != policy.Disallowed || s.Policy.CrawlerInfo(id).RobotsOnly {
		return policy.ModeOff
	}
	return max(s.Policy.Mode(d), policy.ModeOff)
}

// sameEverywhere says once, and of no host, what changes in the same way on all
// hosts.
func sameEverywhere(changes []Change, hosts []policy.Host) []Change {
	if len(hosts) < 2 {
		return changes
	}
	count := map[string]int{}
	key := func(c Change) string {
		return strings.Join([]string{strings.Join(c.Crawlers, " "), c.Usage, c.Now, strings.Join(c.Paths, " ")}, "\n")
	}
	for _, c := range changes {
		count[key(c)]++
	}
	kept := changes[:0:0]
	for _, c := range changes {
		k := key(c)
		switch {
		case count[k] == len(hosts):
			c.Host, count[k] = "", -1
			kept = append(kept, c)
		case count[k] > 0:
			if c.Host == "" {
				c.Host = "other hosts"
			}
			kept = append(kept, c)
		}
	}
	return kept
}

// maxNames bounds what one sentence names one by one.
const maxNames = 5

// Words says in plain words what changes, a sentence an item.
func (c *Changes) Words() []string {
	words := make([]string, 0, len(c.Decisions)+2)
	for _, d := range c.Decisions {
		words = append(words, d.String())
	}
	if len(c.Decisions) == 0 {
		words = append(words, "no decision about a path that either policy names has changed")
	}
	if c.RobotsTxt {
		words = append(words, "robots.txt has changed")
	} else {
		words = append(words, "robots.txt is the same")
	}
	if !c.Complete {
		words = append(words, "the policies are too large to compare everything")
	}
	return words
}

// String is the change as a sentence.
func (c Change) String() string {
	who, where := some(c.Crawlers), some(c.Paths)
	var s string
	switch {
	case c.Usage == UsageEdge && c.Now == policy.ModeBlock.String():
		s = fmt.Sprintf("%s: requests for %s are now refused", who, where)
	case c.Usage == UsageEdge && c.Now == policy.ModeLog.String():
		s = fmt.Sprintf("%s: requests for %s are now let through and logged", who, where)
	case c.Usage == UsageEdge:
		s = fmt.Sprintf("%s: requests for %s are no longer refused or logged", who, where)
	case c.Now == policy.Unstated.String():
		s = fmt.Sprintf("%s: nothing is said any more about %s of %s", who, c.Usage, where)
	default:
		s = fmt.Sprintf("%s: newly %s: %s of %s", who, c.Now, c.Usage, where)
	}
	if c.Host != "" {
		s += " on " + c.Host
	}
	return s
}

// some names the first few.
func some(names []string) string {
	if len(names) <= maxNames+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
}

// patternsOf lists the patterns of statements, each once, "/" first.
func patternsOf(p *policy.Policy) []string {
	all := []string{"/"}
	for _, r := range p.Spec().Rules {
		for _, s := range r.Statements {
			all = append(all, s.Pattern.String())
		}
	}
	return union(all, nil)
}

func tokensOf(p *policy.Policy) (tokens []string) {
	for _, c := range p.Crawlers {
		tokens = append(tokens, c.Token)
	}
	return tokens
}

// union is the elements of both, each once, in their order.
func union[T comparable](a, b []T) []T {
	seen := map[T]bool{}
	var both []T
	for _, v := range slices.Concat(a, b) {
		if !seen[v] {
			seen[v] = true
			both = append(both, v)
		}
	}
	return both
}

func sortedKeys(m map[string][]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
