// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// section is a column of the grid on the page "Who may". The column is about the pages of the host Host whose paths
// begin with Path.
type section struct {
	Host, Path string
	Whole      bool // true if the section is the whole host
	probes     []probe
}

// Key returns the name of the section in URLs.
func (s *section) Key() string { return s.Host + s.Path }

// probe is a path that matches a pattern, as an example of all such paths. To fill a cell of the grid, the console asks
// the policy for its decision about this path. The field shows contains the pattern, which pages display instead of the
// path.
type probe struct{ path, shows string }

// These constants limit the size of the grid.
const (
	maxSections = 7
	maxHostCols = 2
	maxProbes   = 24
)

// sections returns the columns of the grid. Most columns are about paths of the main host: "/", the paths that the
// policy names, and the folders with the most requests. If the view is about all hosts, there is also one column for
// each other host with rules.
func (v *view) sections(u policy.Usage) []section {
	host := v.MainHost()
	patterns := v.patterns(u)
	paths := []string{"/"}
	add := func(path string) {
		if !slices.Contains(paths, path) && len(paths) < maxSections {
			paths = append(paths, path)
		}
	}
	for _, p := range patterns {
		if lit := literal(p); lit == p || lit+"$" == p {
			add(lit)
		}
	}
	for _, path := range v.busiestSections(host) {
		add(path)
	}
	for _, p := range patterns {
		if lit := literal(p); lit != "/" {
			add(folder(lit))
		}
	}
	slices.Sort(paths[1:])
	var all []section
	for _, path := range paths {
		s := section{Host: host, Path: path}
		s.probe(patterns, paths)
		all = append(all, s)
	}
	if v.Host != "" {
		return all
	}
	n := 0
	for _, h := range v.ruledHosts() {
		if h != host && v.allowed(h) && n < maxHostCols {
			n++
			s := section{Host: h, Path: "/", Whole: true}
			s.probe(patterns, nil)
			all = append(all, s)
		}
	}
	return all
}

// patterns returns the path patterns of all allow and disallow entries about the usage u, in the order of the file.
func (v *view) patterns(u policy.Usage) (all []string) {
	for _, r := range v.Running.Spec().Rules {
		for _, s := range r.Statements {
			if p := s.Pattern.String(); s.Usage == u && !slices.Contains(all, p) && len(all) < 500 {
				all = append(all, p)
			}
		}
	}
	return all
}

// ruledHosts returns the hosts that rules name. It omits hosts with wildcards.
func (v *view) ruledHosts() (hosts []string) {
	for _, r := range v.Running.Spec().Rules {
		for _, h := range r.Hosts {
			if !h.Wildcard() && !slices.Contains(hosts, string(h)) {
				hosts = append(hosts, string(h))
			}
		}
	}
	return hosts
}

// literal returns the part of a pattern before its first special character.
func literal(pattern string) string {
	if i := strings.IndexAny(pattern, "*$"); i >= 0 {
		return pattern[:i]
	}
	return pattern
}

// folder returns the part of a path up to its last slash.
func folder(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path[:strings.LastIndexByte(path, '/')+1]
}

// probe sets s.probes to example paths of the section: an arbitrary page, and one page for each pattern in the section.
// The parameter others lists the paths of all columns. If a column is about /news/ and another is about /news/sport/, a
// pattern such as /news/sport/*.html belongs only to the second column, whose path is longer.
func (s *section) probe(patterns, others []string) {
	generic := s.Path
	if strings.HasSuffix(generic, "/") {
		generic += "any-page"
	}
	s.probes = []probe{{generic, s.Path}}
	for _, p := range patterns {
		lit := literal(p)
		if p == s.Path || !strings.HasPrefix(lit, s.Path) || len(s.probes) == maxProbes {
			continue
		}
		if slices.ContainsFunc(others, func(o string) bool { return len(o) > len(s.Path) && strings.HasPrefix(lit, o) }) {
			continue
		}
		path := strings.TrimSuffix(strings.ReplaceAll(p, "*", ""), "$")
		if path == s.Path || path == "" {
			continue
		}
		s.probes = append(s.probes, probe{path, p})
	}
}

// busiestSections returns the folders of a host that receive the most requests from crawlers.
func (v *view) busiestSections(host string) (paths []string) {
	if v.store == nil {
		return nil
	}
	q := store.Query{
		From: v.Now.AddDate(0, 0, -2).Truncate(24 * time.Hour), To: v.Now.Truncate(time.Hour).Add(time.Hour), By: []store.Dimension{store.ByPath}, Limit: 400, Rough: true,
		Only: map[store.Dimension][]string{store.ByHost: {host}},
	}
	rows, err := v.totals(q)
	if err != nil {
		return nil
	}
	by := map[string]int64{}
	for _, r := range rows {
		if s := sectionOf(r.Values[store.ByPath]); strings.HasSuffix(s, "/") && s != "/" {
			by[s] += r.Requests
		}
	}
	for p := range by {
		paths = append(paths, p)
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Or(cmp.Compare(by[b], by[a]), strings.Compare(a, b)) })
	return paths[:min(4, len(paths))]
}

// An asker is the crawler, or the group of clients, in a row of the grid.
type asker struct {
	Name, Kind string
	id         policy.CrawlerID
	identity   policy.Identity
}

// impostor reports whether the row is for all impostors together.
func (a *asker) impostor() bool { return a.identity == policy.Impostor }

// recorded returns the identity in the form used for recorded requests.
func (a *asker) recorded() activity.Identity { return activity.Identity(a.identity.String()) }

// cellVerdict is the policy's decision on one probe.
type cellVerdict struct {
	probe
	Verdict  string
	decision policy.Decision
}

// wordOf returns one word for the decision about a request.
func wordOf(v site.Verdict) string {
	switch {
	case !v.Blocked():
		return "allowed"
	case v.Mode == policy.ModeBlock:
		return "blocked"
	}
	return "disallowed"
}

// evaluate returns the decisions for all probes of a section, and one word that summarizes them.
func (v *view) evaluate(a *asker, s *section, u policy.Usage) (string, []cellVerdict) {
	all := make([]cellVerdict, 0, len(s.probes))
	word := ""
	over, known := v.Running.Site, true
	if v.Running.below != nil && u == policy.Crawl {
		over, known = over.OverOf(v.Running.below, s.Host)
	}
	for _, p := range s.probes {
		var says site.Verdict
		q := policy.Query{Crawler: a.id, Identity: a.identity, Host: s.Host, Path: pathpattern.NormalizePath(p.path), Usage: u, Now: v.Now}
		switch {
		case u != policy.Crawl:
			says.Decision = v.Running.Site.Policy.Decide(q)
		case a.id == 0:
			says.Decision = over.Crawling(q)
		default:
			says = over.Edge(q)
		}
		c := cellVerdict{p, wordOf(says), says.Decision}
		switch {
		case says.Decision.Verdict != policy.Unstated:
		case u != policy.Crawl:
			c.Verdict = "unstated"
		case !known:
			c.Verdict = "unknown"
		}
		switch {
		case word == "":
			word = c.Verdict
		case word != c.Verdict && word != "partly":
			word = merge(word, c.Verdict)
		}
		all = append(all, c)
	}
	return word, all
}

// merge returns the word for a section whose pages have different decisions a and b.
func merge(a, b string) string {
	switch closed := map[string]bool{"disallowed": true, "blocked": true}; {
	case closed[a] && closed[b]:
		return "disallowed"
	case !closed[a] && !closed[b]:
		return "allowed"
	}
	return "partly"
}

// sectionPeriod returns the period of sectionTraffic in words.
func (v *view) sectionPeriod() string {
	switch {
	case v.Days <= 7:
		return v.Period()
	case v.since.IsZero():
		return "last 7 days"
	}
	return v.until.AddDate(0, 0, -6).Format("2 Jan 2006") + " to " + v.until.Format("2 Jan 2006")
}

// sectionTraffic counts the requests of a crawler for a section in the chosen period. If the period is longer than
// seven days, requests before its last seven days are not counted. Only requests with the identity that the row of the
// grid is about, such as verified, are counted.
func (v *view) sectionTraffic(a *asker, s *section) *counts {
	if v.store == nil || a.id == 0 {
		return nil
	}
	q := v.query(store.ByKind, store.ByDecision)
	q.Only[store.ByHost], q.Only[store.ByIdentity] = []string{s.Host}, []string{string(a.recorded())}
	if !a.impostor() {
		q.Only[store.ByCrawler] = []string{a.Name}
	}
	q.From, q.PathPrefix = maxTime(q.From, q.To.AddDate(0, 0, -7)), s.Path
	return v.sum(q)
}
