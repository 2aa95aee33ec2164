// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Effect is the effect of a change on crawlers.
type Effect string

// The effects.
const (
	Loss   Effect = "loss"     // newly disallowed, or with new limits
	Gain   Effect = "gain"     // no longer disallowed, or with fewer limits
	Stated Effect = "stated"   // expressly allowed instead of unstated, or the reverse
	Edge   Effect = "blocking" // the server blocks or logs other requests than before
	Line   Effect = "line"     // other statements in robots.txt or headers change
)

// These entries in Change.Crawlers stand for crawlers that the list does not name.
const (
	Everyone     = "(all crawlers)"       // every crawler, known or not
	EveryoneElse = "(all other crawlers)" // crawlers that both policies treat like unlisted clients
)

// Diff lists the changes when one policy replaces another.
type Diff struct {
	Changes   []Change  `json:"changes"`
	Settings  []Setting `json:"settings,omitempty"`
	RobotsTxt bool      `json:"robots_txt"` // the robots.txt of some host changes
	Complete  bool      `json:"complete"`   // false if the policies are too large to be compared completely
	Losses    *Losses   `json:"-"`          // losses of search engines
}

// Change is one difference between two policies, with the crawlers, usages, hosts and paths that it affects.
type Change struct {
	Effect Effect   `json:"effect"`
	Usages []string `json:"usages"` // usages, or names of other lines, such as "crawl-delay"
	// Old and New are "allowed", "disallowed" or "unstated", with limits as in "allowed, max-snippet=50". For Edge,
	// they are "off", "log" or "block". For Line, they are the value of the line, or "none".
	Old      string   `json:"old"`
	New      string   `json:"new"`
	Crawlers []string `json:"crawlers"`             // product tokens, or Everyone or EveryoneElse
	Kinds    []Kind   `json:"categories,omitempty"` // Crawlers by category, with the crawlers of EveryoneElse
	// Identity of the clients that claim to be these crawlers: "" for any, or "verified", "unverified", "impostor",
	// "unverified or impostor", "verified or impostor" or "not-impostor".
	Identity string `json:"identity,omitempty"`
	Purpose  string `json:"purpose,omitempty"` // the change only affects clients that name this purpose
	// Hosts are the affected hosts. "" means all hosts that neither policy names. If Hosts is nil, the change affects
	// all hosts.
	Hosts []string `json:"hosts,omitempty"`
	// Paths are patterns, the shortest first. Except are patterns within Paths where this change does not happen.
	Paths   []string `json:"paths,omitempty"`
	Except  []string `json:"except,omitempty"`
	Already []string `json:"already,omitempty"` // parts of Paths where the old policy had the same result
	// Lost and Intended are the losses that the change causes for search engines; see Sites.
	Lost     effect.Loss `json:"search_loss,omitempty"`
	Intended effect.Loss `json:"intended_search_loss,omitempty"`
	everyone string      // Crawlers in words if they are nearly all: "everyone except Bingbot"
}

// Kind holds the affected crawlers of one category in the catalog.
type Kind struct {
	Kind     string   `json:"category"` // "" for crawlers that only a policy knows
	Crawlers []string `json:"crawlers"`
	All      bool     `json:"all,omitempty"` // these are all crawlers of the category
}

// Empty reports whether the comparison found no difference in the effects of the policies.
func (d *Diff) Empty() bool { return len(d.Changes)+len(d.Settings) == 0 }

// changes converts records to changes. Records that only differ in one property are merged: first the ones that only
// differ in the usage, then in the identity, then in the crawlers, and then in the host.
func (c *comparison) changes(records []record, hosts int) []Change {
	who := func(r *record) string {
		s := r.subjects[0]
		return fmt.Sprintln(s.rest, s.tokens)
	}
	for i := range records { // several subjects share cached records
		records[i].usages = slices.Clone(records[i].usages)
	}
	records = merged(records, func(r *record) string {
		return fmt.Sprint(r.what(), who(r), r.hosts, r.identities, "\n", r.purpose, kept(r))
	}, func(to, from *record) { to.usages = append(to.usages, from.usages...) })
	records = merged(records, func(r *record) string {
		return fmt.Sprint(r.what(), who(r), r.hosts, r.usages, "\n", r.purpose)
	}, func(to, from *record) { to.identities |= from.identities })
	records = merged(records, func(r *record) string {
		return fmt.Sprint(r.what(), r.hosts, r.usages, r.identities, "\n", r.purpose)
	}, func(to, from *record) { to.subjects = append(to.subjects, from.subjects...) })
	all := make([]Change, 0, len(records))
	for i := range records {
		all = append(all, c.change(&records[i]))
	}
	all = merged(all, func(c *Change) string {
		anywhere := *c
		anywhere.Hosts = nil
		return fmt.Sprintf("%#v", anywhere)
	}, func(to, from *Change) { to.Hosts = append(to.Hosts, from.Hosts...) })
	for i := range all {
		if len(all[i].Hosts) == hosts && slices.Contains(all[i].Hosts, "") {
			all[i].Hosts = nil
		}
	}
	order := []Effect{Loss, Edge, Gain, Stated, Line}
	slices.SortStableFunc(all, func(a, b Change) int {
		return slices.Index(order, a.Effect) - slices.Index(order, b.Effect)
	})
	return all
}

// merged merges the elements with the same key into the first of them.
func merged[T any](all []T, key func(*T) string, add func(to, from *T)) []T {
	at := map[string]int{}
	left := all[:0]
	for i := range all {
		k := key(&all[i])
		if n, ok := at[k]; ok {
			add(&left[n], &all[i])
			continue
		}
		at[k] = len(left)
		left = append(left, all[i])
	}
	return left
}

func last(b bool) int {
	if b {
		return 1
	}
	return 0
}

// kept returns a text that must be equal for two records with different usages, if they are to be merged. If the effect
// is Line, the text is the name of the line, so that only records about the same line are merged. For losses of usages
// for AI, the text is "AI", so that they are not merged with other losses.
func kept(r *record) string {
	switch {
	case r.effect == Line:
		return r.usages[0]
	case r.effect == Loss && effect.LossesFrom(r.usages[0])&(effect.LossTrain|effect.LossAIUse) != 0:
		return "AI"
	}
	return ""
}

// byName compares names in the order of the catalog.
func byName(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) }

func (c *comparison) change(r *record) Change {
	change := Change{
		Effect: r.effect, Usages: r.usages, Old: r.old, New: r.now, Purpose: r.purpose, Hosts: slices.Clone(r.hosts),
		Paths: texts(r.paths), Except: texts(r.except), Already: texts(r.already), Identity: identityWords[r.identities],
	}
	rest, byKind := false, map[string][]string{}
	for _, s := range r.subjects {
		rest = rest || s.rest
		if !s.rest {
			change.Crawlers = append(change.Crawlers, s.tokens...)
		}
		for _, t := range s.tokens {
			byKind[c.kinds[t]] = append(byKind[c.kinds[t]], t)
		}
	}
	// Sort the names, because records of different hosts may list the same crawlers in a different order.
	slices.SortFunc(change.Crawlers, byName)
	listed := 0
	for _, kind := range sortedKeys(byKind) {
		slices.SortFunc(byKind[kind], byName)
		listed += len(byKind[kind])
		change.Kinds = append(change.Kinds, Kind{kind, byKind[kind], kind != "" && len(byKind[kind]) == c.perKind[kind]})
	}
	// Search engines come first, because most readers look for them.
	slices.SortStableFunc(change.Kinds, func(a, b Kind) int { return last(b.Kind == kindSearch) - last(a.Kind == kindSearch) })
	switch {
	case rest && listed == len(c.tokens):
		change.Crawlers = []string{Everyone}
	case rest:
		change.Crawlers = append([]string{EveryoneElse}, change.Crawlers...)
	}
	change.everyone = c.everyone(r, rest)
	return change
}

var identityWords = map[uint8]string{
	1 << policy.Verified:                    "verified",
	1 << policy.Unknown:                     "unverified",
	1 << policy.Impostor:                    "impostor",
	1<<policy.Unknown | 1<<policy.Impostor:  "unverified or impostor",
	1<<policy.Unknown | 1<<policy.Verified:  "not-impostor",
	1<<policy.Impostor | 1<<policy.Verified: "verified or impostor",
	everyIdentity:                           "",
}

func texts(all []pathpattern.Pattern) (texts []string) {
	for _, p := range all {
		texts = append(texts, p.String())
	}
	return texts
}

// crawlerNames lists crawlers in words.
func crawlerNames(tokens []string, most int) string {
	names := make([]string, len(tokens))
	for i, t := range tokens {
		if names[i] = nameOfCrawler(t); t == EveryoneElse {
			names[i] = "everyone else"
		}
	}
	return named(names, most)
}

func nameOfCrawler(token string) string { return policy.Crawler{Token: token}.Shown() }

func named(names []string, most int) string {
	if len(names) <= most+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// everyone describes the crawlers of a record if nearly all crawlers are affected, as in "everyone except ai-training
// crawlers". For blocks, it writes "every known crawler" instead of "everyone". If a list of the crawlers is clearer,
// it returns "".
func (c *comparison) everyone(r *record, rest bool) string {
	all := "everyone"
	if r.effect == Edge {
		all = "every known crawler"
	} else if !rest {
		return ""
	}
	listed := map[string]bool{}
	for _, s := range r.subjects {
		for _, t := range s.tokens {
			listed[t] = true
		}
	}
	left := map[string][]string{}
	for _, s := range c.subjects(nameOf(policy.Host(r.hosts[0]))) {
		tokens := s.tokens
		if r.effect == Edge {
			tokens = s.sent
		}
		if len(tokens) == 0 || listed[tokens[0]] || c.closedAlready(r, &s) {
			continue
		}
		for _, t := range tokens {
			left[c.kinds[t]] = append(left[c.kinds[t]], nameOfCrawler(t))
		}
	}
	var parts []string
	for _, kind := range sortedKeys(left) {
		if names := left[kind]; kind != "" && len(names) == c.sentOf(kind, r.effect == Edge) {
			parts = append(parts, crawlers.Category(kind).Crawlers())
		} else {
			parts = append(parts, names...)
		}
	}
	switch {
	case len(parts) == 0:
		return all
	case len(parts) <= maxNames:
		return all + " except " + strings.Join(parts, ", ")
	}
	return ""
}

// sentOf counts the crawlers of a category. If requests is true, it leaves out tokens that only occur in robots.txt and
// never in requests.
func (c *comparison) sentOf(kind string, requests bool) (n int) {
	for _, t := range c.tokens {
		if c.kinds[t] == kind && (!requests || !c.robotsOnly(t)) {
			n++
		}
	}
	return n
}

// closedAlready reports whether the new policy also disallows the paths of the loss r for s, although s does not have
// this loss. This means that the old policy already disallowed the paths for s. So the text about the loss, such as
// "everyone except …", must not list s as an exception.
func (c *comparison) closedAlready(r *record, s *subject) bool {
	if r.effect != Loss || r.now != disallowed {
		return false
	}
	for _, name := range r.usages {
		u, ok := policy.ParseUsage(name)
		if !ok {
			return false
		}
		for _, id := range []policy.Identity{policy.Unknown, policy.Impostor, policy.Verified} {
			q := s.now.Query(nameOf(policy.Host(r.hosts[0])), u, r.purpose)
			q.Identity, q.Now = id, c.at
			if r.identities&(1<<id) != 0 && !closes(r, newSide(c.now, &s.now, q)) {
				return false
			}
		}
	}
	return true
}

func closes(r *record, s *side) bool {
	for _, p := range r.paths {
		if !s.state(p).closed() {
			return false
		}
		if slices.ContainsFunc(s.statements, func(st statement) bool {
			return st.Statement.Allow && !s.isOver(st.Statement) && st.Statement.Pattern.Overlaps(p) && !st.Statement.Pattern.Covers(p)
		}) {
			return false
		}
	}
	return true
}
