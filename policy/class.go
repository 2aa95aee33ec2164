// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// Class is a set of crawlers that the same rules reach on a host. A rule reaches a crawler on a host if it is for the
// host, and one of its audiences includes the crawler.
type Class struct {
	// Crawlers lists the crawlers in the order of Policy.Crawlers. It is empty for the class of all crawlers that no
	// other class lists.
	Crawlers []CrawlerID

	reach []reached
	hosts *hostClass
}

type reached struct {
	reach
	rules []int32 // indexes into Spec.Rules
}

// Classes groups the crawlers by the rules that reach them on a host. It ignores the identities that rules demand. The
// first class contains the crawlers that only rules for everyone and everyone-else reach. The other classes are sorted
// by the first rule in the file that reaches the class and is for an audience narrower than everyone.
func (p *Policy) Classes(host string) []Class {
	hosts := p.hosts.class(host)
	classes := []Class{p.class(0, hosts)}
	at := map[string]int{}
	var key []byte
	for _, n := range p.reachesOn(hosts) {
		c := Class{Crawlers: slices.Clip(p.crawlersOf[n]), hosts: hosts}
		c.setReach(p.reaches[n])
		key = c.appendKey(key[:0])
		i, ok := at[string(key)]
		if !ok {
			at[string(key)] = len(classes)
			classes = append(classes, c)
			continue
		}
		classes[i].Crawlers = append(classes[i].Crawlers, c.Crawlers...)
	}
	for _, c := range classes[1:] {
		if !slices.IsSorted(c.Crawlers) { // several lists were appended, so no other class shares the slice
			slices.Sort(c.Crawlers)
		}
	}
	slices.SortFunc(classes[1:], func(a, b Class) int {
		return cmp.Or(cmp.Compare(a.first(), b.first()), cmp.Compare(a.Crawlers[0], b.Crawlers[0]))
	})
	return classes
}

// ClassIndex returns the result of Classes, and the index of each crawler's class. A crawler without an index belongs
// to the first class.
func (p *Policy) ClassIndex(host string) ([]Class, map[CrawlerID]int) {
	classes := p.Classes(host)
	of := map[CrawlerID]int{}
	for i := range classes {
		for _, id := range classes[i].Crawlers {
			of[id] = i
		}
	}
	return classes, of
}

// PublicClasses returns the result of Classes without the crawlers that robots.txt, headers and meta tags cannot name.
func (p *Policy) PublicClasses(host string) []Class { return p.public(p.Classes(host)) }

func (p *Policy) public(classes []Class) []Class {
	signer := func(id CrawlerID) bool { return p.crawler(id).Signer }
	for i := range classes {
		if c := &classes[i]; slices.ContainsFunc(c.Crawlers, signer) {
			c.Crawlers = slices.DeleteFunc(slices.Clone(c.Crawlers), signer)
		}
	}
	others := slices.DeleteFunc(classes[1:], func(c Class) bool { return len(c.Crawlers) == 0 })
	return classes[:1+len(others)]
}

// reachesOn returns the indexes of elements of p.reaches in increasing order. It selects the elements that include an
// audience which is narrower than everyone and has rules for the hosts.
func (p *Policy) reachesOn(hosts *hostClass) (all []int32) {
	for _, h := range hosts.hosts {
		for _, a := range p.atomsOn[h] {
			if a.audience.Tier() < TierEveryone {
				all = append(all, a.reaches...)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ClassOf returns a class that contains only the crawler id, with the rules that reach the crawler on a host.
func (p *Policy) ClassOf(id CrawlerID, host string) Class {
	return p.class(id, p.hosts.class(host))
}

func (p *Policy) class(id CrawlerID, hosts *hostClass) Class {
	c := Class{hosts: hosts}
	if id != 0 {
		c.Crawlers = []CrawlerID{id}
	}
	c.setReach(p.reachesOf(id))
	return c
}

func (c *Class) setReach(all []reach) {
	for _, r := range all {
		if rules := r.rulesOn(c.hosts); len(rules) > 0 {
			c.reach = append(c.reach, reached{r, rules})
		}
	}
}

// appendKey appends a key made of the class's rules for audiences narrower than everyone. Two classes of a host have
// the same key if the same rules reach them.
func (c *Class) appendKey(key []byte) []byte {
	for _, r := range c.reach {
		if r.tier == TierEveryone {
			break
		}
		key = append(key, byte(r.tier))
		if r.tier == TierGroup && r.audience.NarrowsAI() {
			key[len(key)-1] = byte(numTiers)
		}
		key = binary.AppendUvarint(key, uint64(len(r.rules)))
		for _, rule := range r.rules {
			key = binary.AppendUvarint(key, uint64(rule))
		}
	}
	return key
}

// first returns the index in Spec.Rules of the class's first rule for an audience narrower than everyone, or -1 if
// there is none.
func (c *Class) first() int32 {
	first := int32(-1)
	for _, r := range c.reach {
		if r.tier < TierEveryone && (first < 0 || r.rules[0] < first) {
			first = r.rules[0]
		}
	}
	return first
}

// ClassesOf returns the PublicClasses that may need different rules in the headers and meta tags of the query's path.
// The first class is always the class that only rules for everyone reach. Every other class has a rule for a narrower
// audience with an entry that matches the path and is not about crawling.
func (p *Policy) ClassesOf(q Query) []Class {
	if q.AnyPath {
		return slices.Clone(p.publicClasses(q.Host))
	}
	matching := map[int32]bool{}
	p.narrower.Matches(pathpattern.NormalizePath(q.Path), func(rules []int32) {
		for _, r := range rules {
			matching[r] = true
		}
	})
	if len(matching) == 0 {
		return []Class{p.ClassOf(0, q.Host)}
	}
	all := p.publicClasses(q.Host)
	classes := []Class{all[0]}
	for _, c := range all[1:] {
		if slices.ContainsFunc(c.reach, func(r reached) bool {
			return r.tier < TierEveryone && slices.ContainsFunc(r.rules, func(r int32) bool { return matching[r] })
		}) {
			classes = append(classes, c)
		}
	}
	return classes
}

// hostClasses holds the PublicClasses of a host.
type hostClasses struct {
	hosts   *hostClass
	classes []Class
}

// publicClasses returns the result of PublicClasses. It remembers the result for the host of the last call, because
// callers ask about many paths of one host. Callers must not change the result.
func (p *Policy) publicClasses(host string) []Class {
	hosts := p.hosts.class(host)
	if last := p.lastClasses.Load(); last != nil && last.hosts == hosts {
		return last.classes
	}
	classes := p.PublicClasses(host)
	p.lastClasses.Store(&hostClasses{hosts, classes})
	return classes
}

// narrowerRules returns an index of the rules for audiences narrower than everyone. The index finds a rule by the
// patterns of its entries that are not about crawling.
func narrowerRules(spec *Spec) *pathpattern.Index[[]int32] {
	var entries []pathpattern.Entry[[]int32]
	for i := range spec.Rules {
		r := &spec.Rules[i]
		if !slices.ContainsFunc(r.For, func(a Audience) bool { return a.Tier() < TierEveryone }) {
			continue
		}
		for pattern := range r.PagePatterns {
			entries = append(entries, pathpattern.Entry[[]int32]{Pattern: pattern, Value: []int32{int32(i)}})
		}
	}
	return pathpattern.NewIndex(entries, func(a, b []int32) []int32 { return slices.Concat(a, b) })
}

// rulesOn returns the rules for an audience on a host as indexes into Spec.Rules, in the order of the file. Callers
// must not change the result.
func (a *atom) rulesOn(hosts *hostClass) (rules []int32) {
	several := false
	for _, h := range hosts.hosts {
		switch c := a.cell(h); {
		case c == nil:
		case rules == nil:
			rules = c.rules
		default:
			rules = append(slices.Clip(rules), c.rules...)
			several = true
		}
	}
	if several {
		slices.Sort(rules)
		rules = slices.Compact(rules)
	}
	return rules
}

// names reports whether a rule names a host. rule is an index into Spec.Rules, and host is the number of the host. If
// host is noHost, names reports whether the rule does not name any host.
func (p *Policy) names(rule, host int32) bool {
	if host == noHost {
		return len(p.ruleHosts[rule]) == 0
	}
	_, ok := slices.BinarySearch(p.ruleHosts[rule], host)
	return ok
}

// WithPurpose returns the class of those crawlers of c whose requests name a purpose. The rules for "purpose:NAME" also
// reach this class. purpose must be in lower case.
func (p *Policy) WithPurpose(c *Class, purpose string) Class {
	with := *c
	a := p.purposes[purpose]
	if a == nil || slices.ContainsFunc(c.reach, func(r reached) bool { return r.atom == a }) {
		return with
	}
	if rules := a.rulesOn(c.hosts); len(rules) > 0 {
		at := 0
		for at < len(c.reach) && c.reach[at].tier <= TierGroup {
			at++
		}
		with.reach = slices.Insert(slices.Clone(c.reach), at, reached{reach{TierGroup, a}, rules})
	}
	return with
}

// Query returns a query about a verified client of the class. purpose is the purpose that the client names, in lower
// case, or "" if the client does not name a purpose.
func (c *Class) Query(host string, u Usage, purpose string) Query {
	q := Query{Identity: Verified, Host: host, Usage: u}
	if len(c.Crawlers) > 0 {
		q.Crawler = c.Crawlers[0]
	}
	if purpose != "" {
		q.Purposes = []string{purpose}
	}
	return q
}

// Rules lists the rules that reach the class through an audience of the tier t, in the order of the file.
func (p *Policy) Rules(c *Class, t Tier) []*Rule {
	return p.rulesOf(c, t, func(int32) bool { return true })
}

func (p *Policy) rulesOf(c *Class, t Tier, keep func(int32) bool) []*Rule {
	var ids []int32
	for _, r := range c.reach {
		if r.tier == t {
			ids = append(ids, r.rules...)
		}
	}
	slices.Sort(ids)
	var rules []*Rule
	for _, id := range slices.Compact(ids) {
		if keep(id) {
			rules = append(rules, &p.spec.Rules[id])
		}
	}
	return rules
}

// Statements lists the policy's statements to a class about a usage, in the order of the file. For a verified client,
// Decide considers these statements. On paths that none of them matches, it considers the statements about the usage
// Other. If purpose is not "", the list also includes the statements of rules that are only for this purpose. purpose
// must be in lower case.
func (p *Policy) Statements(c *Class, u Usage, purpose string) []Applied {
	q := Query{Identity: Verified}
	if purpose != "" {
		q.Purposes = []string{purpose}
	}
	return p.applied(c, &q, u)
}

// AllStatements lists the policy's statements to a class about a usage, whatever the identities and purposes of the
// rules.
func (p *Policy) AllStatements(c *Class, u Usage) []Applied { return p.applied(c, nil, u) }

// applied lists the policy's statements about a usage for a class and a query, in the order of the file. It ignores the
// path of the query. If q is nil, rules apply whatever their conditions.
func (p *Policy) applied(c *Class, q *Query, u Usage) (all []Applied) {
	usages := []Usage{u}
	if fallback, ok := u.fallback(); ok {
		usages = append(usages, fallback)
	}
	for _, r := range c.reach {
		for _, id := range r.rules {
			rule := &p.spec.Rules[id]
			if cond := rule.condition(); q != nil && !cond.holds(q) {
				continue
			}
			for _, h := range c.hosts.hosts {
				if !p.names(id, h) {
					continue
				}
				for i := range rule.Statements {
					if s := &rule.Statements[i]; slices.Contains(usages, s.Usage) {
						all = append(all, Applied{rule, s, r.audience, r.tier, int(p.hosts.rank(h)), s.Usage == u, id})
					}
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Applied) int { return cmp.Compare(a.place, b.place) })
	return all
}

// Ranks lists the rules that reach a class, whatever their purposes. Each rank has the rules of one tier that name the
// hosts equally narrowly, in the order of the file. The ranks are sorted by tier and then by host, the narrowest first.
// Application directives and crawl-delays apply in this order.
func (p *Policy) Ranks(c *Class) [][]*Rule {
	var ranks [][]*Rule
	for tier := range numTiers {
		for _, h := range c.hosts.hosts {
			if rules := p.rulesOf(c, tier, func(id int32) bool { return p.names(id, h) }); rules != nil {
				ranks = append(ranks, rules)
			}
		}
	}
	return ranks
}
