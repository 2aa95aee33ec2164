// SPDX-License-Identifier: Apache-2.0

// Package compare finds the changes when one policy replaces another. For each change, it lists the crawlers, the
// usages that they gain or lose, and the paths.
package compare

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Options configures a comparison.
type Options struct {
	Now time.Time // the time that end dates are compared with; the zero time means the current time
	// Hosts are the hosts to compare. "" means all hosts that neither policy names. If Hosts is nil, all hosts are
	// compared.
	Hosts []policy.Host
	// Below, if not nil, finds the site's own robots.txt, which decides where a policy does not state anything.
	Below site.Below
}

// maxHosts limits the number of compared hosts, because a hostile policy may name thousands of hosts. comparison.budget
// also limits the cost.
const maxHosts = 500

// Decisions returns the decisions that change when the policy old is replaced with the policy now. It compares every
// class of crawlers, usage, host and set of paths that a policy distinguishes. complete reports whether all of these
// were compared. Use Sites to find other changes as well.
//
//	old: disallow /a/        gain  crawl  everyone  /a/  except /a/b/
//	new: disallow /a/b/   →
func Decisions(old, now *policy.Policy, o Options) (changes []Change, complete bool) {
	c := &comparison{old: old, now: now, at: o.Now, budget: solve.NewBudget(), done: map[string][]record{}, fill: filler(old, now)}
	if c.at.IsZero() {
		c.at = time.Now()
	}
	hosts := hostsFor(old, now, o)
	complete = len(hosts) <= maxHosts
	if !complete {
		hosts = append(slices.Clone(hosts[:maxHosts-1]), "")
	}
	c.tokens, c.kinds = crawlersOf(old, now)
	c.perKind = map[string]int{}
	for _, t := range c.tokens {
		c.perKind[c.kinds[t]]++
	}
	var records []record
	for _, h := range hosts {
		found := c.host(h)
		for i := range found {
			found[i].hosts = []string{string(h)}
			records = append(records, found[i])
		}
	}
	changes = c.changes(records, len(hosts))
	return changes, complete && !c.partial && !c.budget.Exceeded()
}

// hostsFor lists the hosts to compare. By default, these are the hosts that the policies name, followed by "" for all
// other hosts.
func hostsFor(old, now *policy.Policy, o Options) []policy.Host {
	if o.Hosts != nil {
		return o.Hosts
	}
	hosts := slices.DeleteFunc(union(robotsserve.Hosts(old), robotsserve.Hosts(now)), func(h policy.Host) bool { return h == "" })
	return append(hosts, "")
}

type comparison struct {
	old, now *policy.Policy
	at       time.Time
	budget   *solve.Budget
	partial  bool // some changes may be missing
	tokens   []string
	kinds    map[string]string   // categories by token
	perKind  map[string]int      // number of crawlers in each category
	done     map[string][]record // cached records by the statements of both policies
	fill     string              // the text for "*" in example paths; see sample
}

// subject is a set of crawlers with the same rules on a host, both in the old policy and in the new one.
type subject struct {
	tokens   []string // product tokens; the first subject has the crawlers that only rules for everyone apply to
	rest     bool     // the subject includes unlisted clients
	sent     []string // tokens that requests contain, so that the server can block them
	old, now policy.Class
	ids      [2]policy.CrawlerID // the IDs of one crawler of the set, in the old and in the new policy
}

// nameOf returns an example of a host name that h matches. No narrower host pattern of the policies matches this
// example.
func nameOf(h policy.Host) string { return cmp.Or(h.Example(), "host.invalid") }

func (c *comparison) subjects(host string) []subject {
	old, oldOf := c.old.ClassIndex(host)
	now, nowOf := c.now.ClassIndex(host)
	all := []subject{{rest: true, old: old[0], now: now[0]}}
	at := map[[2]int]int{{0, 0}: 0}
	for _, token := range c.tokens {
		ids := [2]policy.CrawlerID{c.old.Crawler(token), c.now.Crawler(token)}
		key := [2]int{oldOf[ids[0]], nowOf[ids[1]]}
		i, ok := at[key]
		if !ok {
			i = len(all)
			at[key] = i
			all = append(all, subject{old: old[key[0]], now: now[key[1]], ids: ids})
		}
		all[i].tokens = append(all[i].tokens, token)
		if !c.robotsOnly(token) {
			all[i].sent = append(all[i].sent, token)
		}
	}
	return all
}

func (c *comparison) robotsOnly(token string) bool {
	if id := c.now.Crawler(token); id != 0 {
		return c.now.CrawlerInfo(id).RobotsOnly
	}
	return c.old.CrawlerInfo(c.old.Crawler(token)).RobotsOnly
}

// crawlersOf lists the crawlers of both policies, each once, and their categories. The newer policy's category is used
// if the policies differ.
func crawlersOf(old, now *policy.Policy) (tokens []string, kinds map[string]string) {
	seen, kinds := map[string]bool{}, map[string]string{}
	for _, p := range []*policy.Policy{old, now} {
		for _, info := range p.Crawlers {
			if low := strings.ToLower(info.Token); !seen[low] {
				seen[low] = true
				tokens = append(tokens, info.Token)
			}
			if info.Category != "" {
				kinds[info.Token] = info.Category
			}
		}
	}
	return tokens, kinds
}

func (c *comparison) host(h policy.Host) (all []record) {
	name := nameOf(h)
	identities := []policy.Identity{policy.Verified}
	if c.old.DemandsIdentity() || c.now.DemandsIdentity() {
		identities = []policy.Identity{policy.Verified, policy.Unknown, policy.Impostor}
	}
	purposes := append([]string{""}, purposesOf(c.old, c.now)...)
	for _, s := range c.subjects(name) {
		var found []record
		for _, purpose := range purposes {
			for _, id := range identities {
				rs := append(c.subject(&s, name, id, purpose), c.lines(&s, name, id, purpose)...)
				for i := range rs {
					rs[i].identities = 1 << id
					rs[i].purpose = purpose
				}
				found = append(found, rs...)
			}
		}
		named := map[string]uint8{} // the identities of clients with a change that does not depend on a purpose
		for i := range found {
			found[i].subjects = []*subject{&s}
			if found[i].effect == Edge { // unlisted clients are never blocked
				found[i].subjects = []*subject{{tokens: s.sent}}
			}
			if len(identities) == 1 {
				found[i].identities = everyIdentity
			}
			if found[i].purpose == "" {
				named[found[i].key()] |= found[i].identities
			}
		}
		all = append(all, slices.DeleteFunc(found, func(r record) bool {
			return r.purpose != "" && named[r.key()]&r.identities == r.identities
		})...)
	}
	return all
}

// purposesOf lists the purposes that the rules of either policy name, in lower case. If a purpose has wildcards, it
// lists an example that matches.
func purposesOf(old, now *policy.Policy) (all []string) {
	for _, name := range append(old.Spec().Purposes(), now.Spec().Purposes()...) {
		name = strings.NewReplacer("*", "x", "$", "").Replace(name)
		if name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// union returns the elements of both lists, each once.
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

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
