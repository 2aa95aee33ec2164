// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// HostSummary summarizes what a policy decides on a set of hosts that have the same decisions. The engine that the
// server uses makes these decisions. Crawl, Index, Train and AIUse are about a page that no rule mentions, and Paths is
// about the paths that rules mention.
type HostSummary struct {
	Hosts []string `json:"hosts"`          // hosts as in the policy, or "any other host" or "every host"
	More  int      `json:"more,omitempty"` // hosts that the policy names, but that the summary does not cover
	Crawl Answers  `json:"crawl"`
	Index Answers  `json:"index"`
	Train Answers  `json:"train_ai"`
	AIUse Answers  `json:"ai_use"`

	Paths     []PathSummary `json:"paths,omitempty"`      // the shortest patterns, which cover the most pages, are first
	MorePaths int           `json:"more_paths,omitempty"` // paths that rules mention, but that the summary does not cover

	Google []Shown `json:"google_shows"` // first the page that no rule mentions

	// AISearch lists crawlers of AI search engines that may not crawl a page that no rule mentions. Unclassified lists
	// crawlers without a known purpose that may crawl such a page, although the policy disallows the whole site for
	// some category. In both lists, well-known crawlers are first.
	AISearch     []string `json:"ai_search_may_not_crawl,omitempty"`
	Unclassified []string `json:"no_category_may_crawl,omitempty"`
}

// Answers lists the crawlers that may use a page in one way, such as to index it, and the crawlers that may not.
type Answers struct {
	// May and MayNot count known crawlers by category. The category with the most crawlers is first.
	May     []CategoryCount `json:"may"`
	MayNot  []CategoryCount `json:"may_not"`
	Unknown bool            `json:"unlisted_may"` // an unlisted client may do it

	who [sha256.Size]byte // equal for equal sets of clients that may do it
}

// CategoryCount is the number of crawlers of a category that have the same answer, such as that they may crawl a page.
type CategoryCount struct {
	Category string   `json:"category"`        // "other" for crawlers that the catalog does not have
	Count    int      `json:"count"`           // number of crawlers with this answer
	Total    int      `json:"total"`           // number of crawlers in the category
	Names    []string `json:"names,omitempty"` // at most ten; empty for a whole category of the catalog
}

// PathSummary lists who may use the paths of a pattern. A summary has a PathSummary only if some clients may use these
// paths but not a page that no rule mentions, or the other way round.
type PathSummary struct {
	Path  string `json:"path"`  // a pattern of the policy, or of the site's own robots.txt
	Usage string `json:"usage"` // such as "crawl"
	// Gained is true if some clients may use these paths, but not a page that no rule mentions. Lost is true if some
	// clients may use such a page, but not these paths.
	Gained bool `json:"gained,omitempty"`
	Lost   bool `json:"lost,omitempty"`
	Answers

	about *question
	// changed[true] counts the crawlers that may use a page that no rule mentions, but not these paths. changed[false]
	// counts the crawlers that may use these paths, but not such a page.
	changed map[bool][]CategoryCount
}

// Shown holds the robots control rules that headers and meta tags give to Googlebot.
type Shown struct {
	Path  string `json:"path,omitempty"` // a pattern of the policy; "" for a page that no rule mentions
	Rules string `json:"rules"`          // such as "noindex" or "max-snippet:50"; "" if there are none

	// Unread is true if Googlebot may not crawl the page, so that it sees neither the content nor the rules.
	Unread bool `json:"may_not_crawl,omitempty"`
}

const (
	maxSummaryHosts = 50

	// maxSummaryWork limits the work for the paths of all hosts together to about two seconds. Each decision and each
	// counted crawler is one step of work.
	maxSummaryWork = 5_000_000
)

// Summary returns a summary for each host that rules name, and one for all other hosts. Hosts with the same answers
// share a summary.
func (f *File) Summary(now time.Time) []HostSummary {
	hosts := robotsserve.Hosts(f.Policy)
	hosts = hosts[:len(hosts)-1] // without "", which stands for all other hosts
	covered := append(slices.Clone(hosts[:min(len(hosts), maxSummaryHosts)]), "")
	x := &summarizer{evaluator: newEvaluator(f.Effect, now), catalog: f.Catalog, known: map[string]Answers{}}
	var all []HostSummary
	at := map[string]int{}
	for _, host := range covered {
		name := string(host)
		switch {
		case name != "":
		case len(hosts) > 0:
			name = "any other host"
		default:
			name = "every host"
		}
		x.work = maxSummaryWork / len(covered)
		s := x.host(host)
		key := fmt.Sprint(s)
		if i, ok := at[key]; ok {
			all[i].Hosts = append(all[i].Hosts, name)
			continue
		}
		at[key] = len(all)
		s.Hosts = []string{name}
		all = append(all, s)
	}
	if len(all) == 1 && len(hosts) < len(covered) {
		all[0].Hosts = []string{"every host"}
	}
	all[len(all)-1].More = len(hosts) + 1 - len(covered)
	return all
}

// plainPage is the path of a page that no rule mentions.
var plainPage = pathpattern.All.Example()

// summarizer makes the summaries of hosts.
type summarizer struct {
	*evaluator
	catalog *crawlers.Catalog
	work    int                // the remaining part of maxSummaryWork for this host
	known   map[string]Answers // see answers
}

// question is a usage that a summary is about.
type question struct {
	usage       policy.Usage
	may, mayNot string // the labels of rows
	plain       func(*HostSummary) *Answers
}

var questions = []question{
	{policy.Crawl, "may crawl:", "may not crawl:", func(s *HostSummary) *Answers { return &s.Crawl }},
	{policy.Index, "may index:", "may not index:", func(s *HostSummary) *Answers { return &s.Index }},
	{policy.TrainAI, "may train AI:", "may not train AI:", func(s *HostSummary) *Answers { return &s.Train }},
	{policy.AIUse, "in AI answers:", "not in AI answers:", func(s *HostSummary) *Answers { return &s.AIUse }},
}

func questionAbout(u policy.Usage) *question {
	if i := slices.IndexFunc(questions, func(q question) bool { return q.usage == u }); i >= 0 {
		return &questions[i]
	}
	return nil
}

func (x *summarizer) host(h policy.Host) (s HostSummary) {
	host := h.Example()
	plain := map[policy.Usage][]bool{}
	for _, q := range questions {
		*q.plain(&s), plain[q.usage] = x.answers(host, plainPage, q.usage)
	}
	var rules []*policy.Rule
	all := x.policy.Spec().Rules
	for i := range all {
		if r := &all[i]; len(r.Hosts) == 0 || slices.ContainsFunc(r.Hosts, func(h policy.Host) bool { return h.Covers(host) }) {
			rules = append(rules, r)
		}
	}
	x.pathsOf(&s, host, rules, plain)
	x.shownOf(&s, host, rules)
	s.AISearch = x.crawlersThat(crawlers.CategoryAI, host, func(c *crawlers.Crawler, may bool) bool {
		return c.Category == crawlers.CategorySearch && !may
	})
	if slices.ContainsFunc(rules, disallowsCategory) {
		s.Unclassified = x.crawlersThat(crawlers.CategoryNone, host, func(_ *crawlers.Crawler, may bool) bool { return may })
	}
	return s
}

// pathsOf adds summaries of paths that rules mention. A path gets a summary if some crawlers may use it but not a page
// that no rule mentions, or the other way round. plain holds the answers for such a page.
func (x *summarizer) pathsOf(s *HostSummary, host string, rules []*policy.Rule, plain map[policy.Usage][]bool) {
	seen := map[pathUsage]bool{}
	for _, r := range rules {
		for i := range r.Statements {
			e := &r.Statements[i]
			at := pathUsage{e.Pattern.String(), e.Usage}
			q := questionAbout(e.Usage)
			if q == nil || e.Pattern.IsAll() || seen[at] {
				continue
			}
			seen[at] = true
			if x.work <= 0 {
				s.MorePaths++
				continue
			}
			p := PathSummary{Path: at.path, Usage: e.Usage.String(), about: q}
			var may []bool
			p.Answers, may = x.answers(host, e.Pattern.Example(), e.Usage)
			gained, lost := make([]bool, len(may)), make([]bool, len(may))
			for i, before := range plain[e.Usage] {
				gained[i], lost[i] = may[i] && !before, before && !may[i]
				p.Gained, p.Lost = p.Gained || gained[i], p.Lost || lost[i]
			}
			if p.Gained || p.Lost {
				p.changed = map[bool][]CategoryCount{false: x.counted(host, gained).May, true: x.counted(host, lost).May}
				s.Paths = append(s.Paths, p)
			}
		}
	}
	slices.SortStableFunc(s.Paths, func(a, b PathSummary) int { return len(a.Path) - len(b.Path) })
}

type pathUsage struct {
	path  string
	usage policy.Usage
}

// shownOf finds the robots control rules that limit what Google's search may show of a page. It writes the rules for a
// page that no rule of the policy mentions to s.Google first. Then it adds each path whose robots control rules are
// different.
func (x *summarizer) shownOf(s *HostSummary, host string, rules []*policy.Rule) {
	plain := x.shown(host, plainPage)
	s.Google = []Shown{plain}
	asked := map[string]bool{}
	for _, r := range rules {
		for pattern := range r.PagePatterns {
			text := pattern.String()
			if asked[text] {
				continue
			}
			asked[text] = true
			if x.work--; x.work < 0 {
				s.MorePaths++
				continue
			}
			if at := x.shown(host, pattern.Example()); at != plain {
				at.Path = text
				s.Google = append(s.Google, at)
			}
		}
	}
	slices.SortStableFunc(s.Google, func(a, b Shown) int { return len(a.Path) - len(b.Path) })
}

func (x *summarizer) shown(host, path string) Shown {
	q := policy.Query{Crawler: x.policy.Crawler("Googlebot"), Identity: policy.Verified, Host: host, Path: path, Usage: policy.Crawl, Now: x.now}
	if x.effect.Answer(q).Disallowed {
		return Shown{Unread: true}
	}
	rules := x.effect.Shown(q).WithoutUnknown()
	if rules.Has("noindex") {
		return Shown{Rules: "noindex"}
	}
	return Shown{Rules: rules.String()}
}

// answers finds out for every crawler whether it may use the path. The crawlers are divided into sets that the same
// rules apply to, and may has one answer for each set. If an earlier question about the host had the same answers for
// all sets, answers returns the counts of that question.
func (x *summarizer) answers(host, path string, u policy.Usage) (a Answers, may []bool) {
	members := x.ask(policy.Audience{Kind: policy.ForEveryone}, host)
	may = make([]bool, len(members))
	for i, m := range members {
		q := policy.Query{Crawler: m.id, Identity: policy.Verified, Host: host, Path: path, Usage: u, Now: x.now}
		may[i] = !x.effect.Answer(q).Disallowed
	}
	x.work -= len(members)
	return x.counted(host, may), may
}

// counted is like count, but counts the crawlers on a host only once for equal values of may.
func (x *summarizer) counted(host string, may []bool) Answers {
	key := fmt.Sprint(host, may)
	a, ok := x.known[key]
	if !ok {
		a = x.count(x.ask(policy.Audience{Kind: policy.ForEveryone}, host), may)
		x.known[key] = a
	}
	return a
}

// count counts the crawlers by category, separately for those that may use a path and those that may not. may has the
// answer for each of the members, which are sets of crawlers.
func (x *summarizer) count(members []member, may []bool) (s Answers) {
	total := map[string]int{}
	names := map[bool]map[string][]string{true: {}, false: {}}
	var ids []policy.CrawlerID
	for i, m := range members {
		if may[i] {
			ids = append(ids, m.alike...)
		}
		x.work -= len(m.alike)
		for _, id := range m.alike {
			if id == 0 {
				s.Unknown = may[i]
				continue
			}
			c := x.policy.CrawlerInfo(id)
			total[c.Category]++
			names[may[i]][c.Category] = append(names[may[i]][c.Category], c.Shown())
		}
	}
	slices.Sort(ids)
	s.who = sha256.Sum256(fmt.Append(nil, ids))
	s.May, s.MayNot = counts(names[true], total), counts(names[false], total)
	return s
}

// uncataloged stands for the category of crawlers that only the policy or the site's own robots.txt names.
const uncataloged = "other"

// mostNamed is the maximum number of crawlers of a category that a summary names.
const mostNamed = 10

func counts(names map[string][]string, total map[string]int) []CategoryCount {
	counts := make([]CategoryCount, 0, len(names)) // [] rather than null
	for kind, tokens := range names {
		c := CategoryCount{Category: cmp.Or(kind, uncataloged), Count: len(tokens), Total: total[kind]}
		if c.Count < c.Total || c.Category == uncataloged {
			slices.SortFunc(tokens, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
			c.Names = slices.Clone(tokens[:min(len(tokens), mostNamed)])
		}
		counts = append(counts, c)
	}
	slices.SortFunc(counts, func(a, b CategoryCount) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(a.Category, b.Category))
	})
	return counts
}

// crawlersThat returns the tokens of the crawlers in category k that the function "is" selects. It calls "is" for each
// crawler of the category. The argument may of this call tells whether the crawler may crawl a page that no rule
// mentions.
func (x *summarizer) crawlersThat(k crawlers.Category, host string, is func(c *crawlers.Crawler, may bool) bool) (names []string) {
	for _, c := range x.catalog.OfCategory(k) {
		q := policy.Query{Crawler: x.policy.Crawler(c.Token), Identity: policy.Verified, Host: host, Path: plainPage, Usage: policy.Crawl, Now: x.now}
		if is(c, !x.effect.Answer(q).Disallowed) {
			names = append(names, c.Token)
		}
	}
	crawlers.SortWellKnown(names)
	return names
}

// disallowsCategory reports whether a rule disallows the whole site for the crawlers of a category.
func disallowsCategory(r *policy.Rule) bool {
	return slices.ContainsFunc(r.For, func(a policy.Audience) bool { return a.Kind == policy.ForCategory || a.Kind == policy.ForAI }) &&
		slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return !s.Allow && s.Usage == policy.Crawl && s.Pattern.IsAll() })
}
