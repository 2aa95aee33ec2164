// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/accesslog"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// Report holds the results of a replay. Its JSON form is documented in docs/reference/replay.md.
type Report struct {
	New   string    `json:"new"`           // file name of the policy
	Old   string    `json:"old,omitempty"` // file name of the previous policy, if any
	Files []string  `json:"files"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`

	Lines    int64 `json:"lines"`
	Requests int64 `json:"requests"` // number of requests within the selected period, in the logs and the database
	Crawlers int64 `json:"crawler_requests"`

	Coverage    claim.Coverage `json:"coverage"`
	NotReplayed []Note         `json:"not_replayed"` // requests that could not be decided exactly as on the server
	Search      claim.Claim    `json:"search"`       // the claim that search engines lose nothing

	Verdicts     []VerdictCount `json:"decisions"`
	SearchLoss   SearchLoss     `json:"search_loss"`
	NewlyRefused []CrawlerCount `json:"newly_blocked"`
	NewlyAllowed []CrawlerCount `json:"newly_allowed"`
	NewlyLimited []CrawlerCount `json:"newly_limited"` // requests that exceed a rate limit only under the new policy
	Violations   []CrawlerCount `json:"violations"`    // requests that the new policy disallows but does not block
	ByCrawler    []CrawlerCount `json:"crawlers"`
	Rules        []RuleCount    `json:"rules"`
	IdleRules    []RuleCount    `json:"idle_rules"` // rules about crawling that did not decide any request
	// Unknown holds the most frequent automated clients that neither policy lists. Such clients are never blocked.
	Unknown         []UnknownCount `json:"unlisted"`
	UnknownClients  int64          `json:"unlisted_clients"`  // number of different unlisted clients
	UnknownRequests int64          `json:"unlisted_requests"` // number of the requests of all unlisted clients
	Days            []DayCount     `json:"days"`

	losses *compare.Losses
}

// Note describes data that could not be replayed.
type Note struct {
	Requests int64  `json:"requests"`
	What     string `json:"what"`
}

// VerdictCount is the number of requests with the decision Decision under the new policy.
type VerdictCount struct {
	Decision activity.Decision `json:"decision"`
	Requests int64             `json:"requests"`
	Crawlers int64             `json:"crawlers"` // number of different crawlers
}

// CrawlerCount holds the number of requests of a crawler, in total and for each identity of the client.
type CrawlerCount struct {
	Crawler        string      `json:"crawler"`
	Category       string      `json:"category"`
	Requests       int64       `json:"requests"`
	Verified       int64       `json:"verified"`
	Unverified     int64       `json:"unverified"`
	Impostor       int64       `json:"impostor"`
	Blocked        int64       `json:"blocked,omitempty"` // in Report.ByCrawler: requests that the new policy blocks
	Bytes          int64       `json:"bytes"`
	Rules          []string    `json:"rules,omitempty"`           // line and name of each rule, the most frequent first
	Paths          []PathCount `json:"paths,omitempty"`           // the most frequent paths
	PathsEstimated bool        `json:"paths_estimated,omitempty"` // there were too many paths to count each of them
}

// PathCount is the number of requests for a path.
type PathCount struct {
	Path     string `json:"path"`
	Requests int64  `json:"requests"`
}

// UnknownCount is the number of requests of an automated client that neither policy lists.
type UnknownCount struct {
	Name     string `json:"name"` // first name in the client's User-Agent
	Requests int64  `json:"requests"`
	Bytes    int64  `json:"bytes"`
}

// RuleCount is the number of requests that a rule decided.
type RuleCount struct {
	Rule       string `json:"rule"`
	Place      string `json:"place"` // FILE:LINE
	Requests   int64  `json:"requests"`
	Disallowed int64  `json:"disallowed"` // number of these requests that the rule disallows
}

// DayCount holds the number of crawler requests on a day (UTC), by the new policy's decision.
type DayCount struct {
	Day      string                      `json:"day"` // such as 2026-11-22
	Requests map[activity.Decision]int64 `json:"requests"`
}

var decisions = []activity.Decision{activity.Blocked, activity.Limited, activity.WouldBlock, activity.WouldLimit, activity.Disallowed, activity.Allowed}

// shownPaths limits the number of paths shown for a crawler.
const shownPaths = 10

func newReport(o *Options, read accesslog.Result, t *tally) *Report {
	files := o.Files
	if o.Stored != nil {
		files = append([]string{o.StoreName}, files...)
	}
	r := &Report{New: o.New.File.Name, Files: files, First: t.first, Last: t.last, Lines: read.Lines, Requests: t.requests}
	if o.Old != nil {
		r.Old = o.Old.File.Name
	}
	for _, c := range t.counts {
		r.Crawlers += c.requests
	}
	r.Coverage = t.coverage(o, read)
	r.notes(o, read, t)
	r.verdicts(t)
	changed := func(of activity.Decision, now bool) func(k *key) bool {
		return func(k *key) bool {
			was, is := k.old.decision == of, k.new.decision == of
			return was != is && is == now
		}
	}
	r.NewlyRefused = crawlerCounts(t, changed(activity.Blocked, true))
	r.NewlyAllowed = crawlerCounts(t, changed(activity.Blocked, false))
	r.NewlyLimited = crawlerCounts(t, changed(activity.Limited, true))
	r.Violations = crawlerCounts(t, func(k *key) bool {
		return k.new.decision == activity.Disallowed || k.new.decision == activity.WouldBlock
	})
	r.ByCrawler = crawlerCounts(t, func(*key) bool { return true })
	r.SearchLoss, r.losses = t.searchLoss(o), o.losses()
	r.Search = r.Keeps(0, o.Accept)
	r.unknown(t)
	r.rules(o.New, t)
	r.days(t)
	return r
}

// shownUnknown limits the number of unlisted clients in a report.
const shownUnknown = 50

func (r *Report) unknown(t *tally) {
	r.UnknownClients = int64(len(t.unknown))
	r.Unknown = make([]UnknownCount, 0, len(t.unknown))
	for _, c := range t.unknown {
		r.Unknown = append(r.Unknown, *c)
		r.UnknownRequests += c.Requests
	}
	slices.SortFunc(r.Unknown, func(a, b UnknownCount) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Name, b.Name))
	})
	r.Unknown = r.Unknown[:min(shownUnknown, len(r.Unknown))]
}

func (k *key) info() policy.Crawler { return k.site.Policy.CrawlerInfo(k.crawler) }

func (r *Report) notes(o *Options, read accesslog.Result, t *tally) {
	note := func(n int64, what, format string, args ...any) {
		if n == 0 {
			return
		}
		if n > 1 {
			what += "s"
		}
		r.NotReplayed = append(r.NotReplayed, Note{n, what + " " + fmt.Sprintf(format, args...)})
	}
	note(read.Other, "line", "without a request: written by other loggers and programs, or about clients that did not send HTTP")
	note(t.opaque, "crawler request", "whose address has a scheme, but no host: the server answers them with status 400, whatever the policy says")
	note(t.hostless, "crawler request", "without a host in the log: only rules for every host were applied; name the host with --host")
	note(t.other, "request", "whose path was stored only as %s: the policy could not decide about them", activity.OtherPath)
	note(t.queries, "crawler request", "whose query was not stored: decided by the path alone")
	note(t.purposes, "crawler request", "whose purposes were not stored: decided as if the User-Agent did not name any purpose")
	note(t.limited, "crawler request", "under a rate limit: counted as allowed, because their exact times are not stored, or because there are too many to sort by time")
	note(t.liveOnly, "crawler request", "that only DNS or a signature could have verified: counted as unverified")
}

func (r *Report) verdicts(t *tally) {
	for _, d := range decisions {
		v := VerdictCount{Decision: d}
		crawlers := map[string]bool{}
		for k, c := range t.counts {
			if k.new.decision == d {
				v.Requests += c.requests
				crawlers[k.info().Token] = true
			}
		}
		v.Crawlers = int64(len(crawlers))
		r.Verdicts = append(r.Verdicts, v)
	}
}

func crawlerCounts(t *tally, fits func(*key) bool) []CrawlerCount {
	type sum struct {
		CrawlerCount
		paths map[string]int64
		rules map[string]int64
	}
	sums := map[string]*sum{}
	for k, c := range t.counts {
		if !fits(&k) {
			continue
		}
		info := k.info()
		s := sums[info.Token]
		if s == nil {
			s = &sum{CrawlerCount{Crawler: info.Token, Category: info.Category}, map[string]int64{}, map[string]int64{}}
			sums[info.Token] = s
		}
		s.add(&k, c)
		add(s.paths, c.paths)
		if rule := k.rule(); rule != "" {
			s.rules[rule] += c.requests
		}
		s.PathsEstimated = s.PathsEstimated || c.dropped > 0
	}
	all := make([]CrawlerCount, 0, len(sums))
	for _, s := range sums {
		s.Paths = topPaths(s.paths, shownPaths)
		for _, rule := range topPaths(s.rules, 0) {
			s.Rules = append(s.Rules, rule.Path)
		}
		all = append(all, s.CrawlerCount)
	}
	slices.SortFunc(all, func(a, b CrawlerCount) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Crawler, b.Crawler))
	})
	return all
}

func (s *CrawlerCount) add(k *key, c *count) {
	s.Requests += c.requests
	s.Bytes += c.bytes
	switch k.identity {
	case policy.Verified:
		s.Verified += c.requests
	case policy.Impostor:
		s.Impostor += c.requests
	case policy.Unknown:
		s.Unverified += c.requests
	}
	if k.new.decision == activity.Blocked {
		s.Blocked += c.requests
	}
}

// rule returns the line and name of the new policy's rule that decided, or "". If only the old policy blocked the
// request and the new policy has no rule for it, rule returns the old policy's rule.
func (k *key) rule() string {
	v, of := k.new, ""
	if k.old.decision == activity.Blocked && k.new.decision != activity.Blocked && v.rule == nil {
		v, of = k.old, " of the old policy"
	}
	switch {
	case v.impostor:
		return "enforcement.impostors"
	case v.rule == nil:
		return ""
	}
	if v.rule.Fallback {
		return policy.PlaceInFallback(v.rule.FallbackFile, v.rule.Pos.Line)
	}
	return fmt.Sprintf("line %d%s (%s)", v.rule.Pos.Line, of, k.site.RuleName(v.rule))
}

func (r *Report) rules(s *site.Site, t *tally) {
	counts := map[policy.Pos]*RuleCount{} // combining a policy with a robots.txt does not change the positions of rules
	rules := s.Policy.Spec().Rules
	for i := range rules {
		rule := &rules[i]
		counts[rule.Pos] = &RuleCount{Rule: s.RuleName(rule), Place: s.Place(rule.Pos)}
	}
	for k, c := range t.counts {
		if k.new.rule == nil || k.new.rule.Fallback || k.new.impostor {
			continue
		}
		rc := counts[k.new.rule.Pos]
		if rc == nil { // the rule belongs to the old policy
			continue
		}
		rc.Requests += c.requests
		if d := k.new.decision; d != activity.Allowed && d != activity.Limited && d != activity.WouldLimit {
			rc.Disallowed += c.requests
		}
	}
	for i := range rules {
		rule := &rules[i]
		switch rc := counts[rule.Pos]; {
		case rc.Requests > 0:
			r.Rules = append(r.Rules, *rc)
		case speaksOfCrawling(rule):
			r.IdleRules = append(r.IdleRules, *rc)
		}
	}
	slices.SortStableFunc(r.Rules, func(a, b RuleCount) int { return cmp.Compare(b.Requests, a.Requests) })
}

func speaksOfCrawling(r *policy.Rule) bool {
	return slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Usage == policy.Crawl })
}

func (r *Report) days(t *tally) {
	byDay := map[int64]map[activity.Decision]int64{}
	for d, n := range t.days {
		if byDay[d.day] == nil {
			byDay[d.day] = map[activity.Decision]int64{}
		}
		byDay[d.day][d.decision] += n
	}
	for day, requests := range byDay {
		r.Days = append(r.Days, DayCount{time.Unix(day*86400, 0).UTC().Format(time.DateOnly), requests})
	}
	slices.SortFunc(r.Days, func(a, b DayCount) int { return strings.Compare(a.Day, b.Day) })
}

//go:embed report.html
var reportHTML string

var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("report").Funcs(template.FuncMap{
		"number": english.Number,
		"plural": plural,
		"text":   func(d activity.Decision) string { return decisionTexts[d] },
		"most":   most,
		"last":   func(days []DayCount) DayCount { return days[len(days)-1] },
		"share": func(n, of int64) float64 {
			if of == 0 {
				return 0
			}
			return 100 * float64(n) / float64(of)
		},
		"decisions": func() []activity.Decision { return decisions },
		"section":   func(title, note string, counts []CrawlerCount) section { return section{title, note, counts} },
	}).Parse(reportHTML))
})

type section struct {
	Title, Note string
	Counts      []CrawlerCount
}

// WriteHTML writes the report as a single HTML page that loads no other files.
func (r *Report) WriteHTML(w io.Writer) error { return page().Execute(w, r) }

// Total returns the number of all crawler requests on the day.
func (d DayCount) Total() (n int64) {
	for _, requests := range d.Requests {
		n += requests
	}
	return n
}

// most returns the largest number of requests on a day. For a single day, it returns 0, because the table already shows
// the number of this day.
func most(days []DayCount) (n int64) {
	if len(days) > 1 {
		for _, d := range days {
			n = max(n, d.Total())
		}
	}
	return n
}
