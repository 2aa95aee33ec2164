// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// reach caches properties of a rule that several checks need.
type reach struct {
	everyone bool     // the rule is for everyone or everyone-else
	hosts    []string // an example of each of the rule's hosts; see exampleHosts
}

const maxHosts = 16

func reachOf(r *policy.Rule) (w reach) {
	for _, a := range r.For {
		w.everyone = w.everyone || a.Tier() == policy.TierEveryone
	}
	w.hosts = exampleHosts(r.Hosts[:min(len(r.Hosts), maxHosts)])
	return w
}

// exampleHosts returns an example of each host. If hosts is empty, it returns "", which means any host.
func exampleHosts(hosts []policy.Host) []string {
	if len(hosts) == 0 {
		return []string{""}
	}
	examples := make([]string, len(hosts))
	for i, h := range hosts {
		examples[i] = h.Example()
	}
	return examples
}

// crawlersOf lists the crawlers in an audience. For everyone, it only returns 0, which means an unlisted client.
func (l *linter) crawlersOf(a policy.Audience) []policy.CrawlerID {
	tier := a.Tier()
	if tier == policy.TierEveryone {
		return []policy.CrawlerID{0}
	}
	if tier == policy.TierToken {
		return []policy.CrawlerID{l.Policy.Crawler(a.Name)}
	}
	a.Name = strings.ToLower(a.Name)
	ids, ok := l.groups[a]
	if !ok {
		for id := range l.Policy.Members(a) {
			ids = append(ids, id)
		}
		l.groups[a] = ids
	}
	return ids
}

// isFamily reports whether the crawler id follows the robots.txt group of another crawler, which has the given token.
// Rules for the token then also apply to the crawler id.
func (l *linter) isFamily(id policy.CrawlerID, token string) bool {
	head := l.Policy.Family(id)
	return head != 0 && strings.EqualFold(l.Policy.CrawlerInfo(head).Token, token)
}

// namedAmong returns the indexes of the audiences in r.For that name the crawlers in shut. The caller suggests removing
// these audiences from the rule. So namedAmong returns nil if the rule includes some of the crawlers only through a
// group, or if removing the audiences would leave no audience.
func (l *linter) namedAmong(r *policy.Rule, shut []policy.CrawlerID) (places []int) {
	for _, id := range shut {
		n, by := l.Policy.NamedBy(r, id)
		if n > policy.TierFamily {
			return nil
		}
		if i := slices.Index(r.For, by); !slices.Contains(places, i) {
			places = append(places, i)
		}
	}
	if len(places) == len(r.For) {
		return nil
	}
	slices.Sort(places)
	return places
}

func (l *linter) guarded(ids []policy.CrawlerID) (kinds []crawlers.Category) {
	if slices.ContainsFunc(ids, func(id policy.CrawlerID) bool { return effect.SearchesWeb(l.Policy, id) }) {
		kinds = append(kinds, crawlers.CategorySearch)
	}
	if slices.ContainsFunc(ids, func(id policy.CrawlerID) bool { return effect.IsOfCategory(l.Policy, id, crawlers.CategoryPreview) }) {
		kinds = append(kinds, crawlers.CategoryPreview)
	}
	return kinds
}

func (l *linter) guardedCategories(ids []policy.CrawlerID) (names []string) {
	for _, kind := range l.guarded(ids) {
		names = append(names, "category:"+string(kind))
	}
	return names
}

// sampleCrawlers returns a few of a rule's crawlers.
func (l *linter) sampleCrawlers(r *policy.Rule) (ids []policy.CrawlerID) {
	const audiences, each = 16, 3
	for _, a := range r.For[:min(len(r.For), audiences)] {
		of := l.crawlersOf(a)
		ids = append(ids, of[:min(len(of), each)]...)
	}
	return ids
}

// Audiences returns the audiences of a rule in the form of a policy file.
func Audiences(r *policy.Rule) []string {
	names := make([]string, len(r.For))
	for i, a := range r.For {
		names[i] = a.String()
	}
	return names
}

func audienceText(r *policy.Rule) string { return english.Some(Audiences(r), shown) }

// tokens lists the names of crawlers, the best known first.
func (l *linter) tokens(ids []policy.CrawlerID) []string {
	seen := map[string]bool{}
	var names []string
	for _, id := range ids {
		if token := l.Policy.CrawlerInfo(id).Token; token != "" && !seen[token] {
			seen[token] = true
			names = append(names, token)
		}
	}
	crawlers.SortWellKnown(names)
	return names
}

func (l *linter) someTokens(ids []policy.CrawlerID) string {
	return english.Some(l.tokens(ids), shown)
}

const shown = 3

func join(words []string) string { return strings.Join(words, ", ") }

func quote(s string) string {
	const longest = 60
	if short := []rune(s); len(short) > longest {
		s = string(short[:longest]) + "…"
	}
	return `"` + s + `"`
}
