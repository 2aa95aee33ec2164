// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
)

// truth counts the requests of a generated log. A report about this log must agree with it.
type truth struct {
	plain bool // the log has no headers and no hosts
	// stale is true if the built-in address lists are too old, at the time of the requests, to show that a client is an
	// impostor.
	stale bool
	cells map[cell]*counted
}

// cell identifies a group of requests. The requests of a cell are counted together.
type cell struct {
	agent   *agent
	section string
	path    string
	day     string
}

type counted struct{ requests, bytes int64 }

func newTruth(plain bool) *truth { return &truth{plain: plain, cells: map[cell]*counted{}} }

func (t *truth) add(r *request) {
	k := cell{r.agent, r.section, r.path(), r.at.UTC().Format(time.DateOnly)}
	c := t.cells[k]
	if c == nil {
		c = new(counted)
		t.cells[k] = c
	}
	c.requests++
	c.bytes += int64(r.bytes)
}

func (a *agent) known() bool { return a.crawler != "" && a.kind != "unlisted" }

func (t *truth) identity(a *agent) string {
	if t.stale && a.identity == "impostor" {
		return "unverified"
	}
	return a.identity
}

// crawlers returns the totals of each known crawler as replay's report has them. It only adds up requests that fits accepts: a is the client, and before and now are the decisions under the old and the new policy. If paths
// is true, the result also has the most requested paths of each crawler.
func (t *truth) crawlers(fits func(a *agent, before, now string) bool, paths bool) []replay.CrawlerCount {
	sums, byPath := map[string]*replay.CrawlerCount{}, map[string]map[string]int64{}
	for k, c := range t.cells {
		before, now := decide(k.agent, k.section)
		if !k.agent.known() || !fits(k.agent, before, now) {
			continue
		}
		s := sums[k.agent.crawler]
		if s == nil {
			s = &replay.CrawlerCount{Crawler: k.agent.crawler, Category: k.agent.kind}
			sums[k.agent.crawler], byPath[k.agent.crawler] = s, map[string]int64{}
		}
		s.Requests += c.requests
		s.Bytes += c.bytes
		switch t.identity(k.agent) {
		case "verified":
			s.Verified += c.requests
		case "impostor":
			s.Impostor += c.requests
		default:
			s.Unverified += c.requests
		}
		if now == "blocked" {
			s.Blocked += c.requests
		}
		if before != now || now != "allowed" { // reports show the paths of these requests
			byPath[k.agent.crawler][k.path] += c.requests
		}
	}
	all := []replay.CrawlerCount{}
	for name, s := range sums {
		if paths {
			for path, n := range byPath[name] {
				s.Paths = append(s.Paths, replay.PathCount{Path: path, Requests: n})
			}
			slices.SortFunc(s.Paths, func(a, b replay.PathCount) int {
				return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Path, b.Path))
			})
			s.Paths = s.Paths[:min(10, len(s.Paths))]
		}
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b replay.CrawlerCount) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Crawler, b.Crawler))
	})
	return all
}

func (t *truth) sum(fits func(k *cell, before, now string) bool) (n int64) {
	for k, c := range t.cells {
		if before, now := decide(k.agent, k.section); fits(&k, before, now) {
			n += c.requests
		}
	}
	return n
}

// expected returns the report that replay should write for the log. It computes every number from the requests in the
// log. File names and times are copied from the report got, because they are not checked.
func (t *truth) expected(got *replay.Report) *replay.Report {
	all := t.sum(func(*cell, string, string) bool { return true })
	ofCrawler := func(k *cell) bool { return k.agent.known() }
	refused := func(is bool) func(*agent, string, string) bool {
		return func(_ *agent, before, now string) bool {
			return (before == "blocked") != (now == "blocked") && (now == "blocked") == is
		}
	}
	w := &replay.Report{
		New: got.New, Old: got.Old, Files: got.Files, First: got.First, Last: got.Last,
		Lines: all, Requests: all, Crawlers: t.sum(func(k *cell, _, _ string) bool { return ofCrawler(k) }),
		NewlyRefused: t.crawlers(refused(true), true), NewlyAllowed: t.crawlers(refused(false), true),
		Violations: t.crawlers(func(_ *agent, _, now string) bool { return now == "would_block" }, true),
		ByCrawler:  t.crawlers(func(*agent, string, string) bool { return true }, true),
		SearchLoss: replay.SearchLoss{Requests: t.sum(func(k *cell, before, now string) bool {
			return k.agent.kind == "search" && t.identity(k.agent) == "verified" && before != "blocked" && now == "blocked"
		})},
		IdleRules: []replay.RuleCount{{Rule: "comes never", Place: "new.yaml:17"}},
	}
	if t.plain {
		w.NotReplayed = append(w.NotReplayed, replay.Note{Requests: w.Crawlers})
	}
	if live := t.sum(func(k *cell, _, _ string) bool { return k.agent.live }); live > 0 {
		w.NotReplayed = append(w.NotReplayed, replay.Note{Requests: live})
	}
	for _, d := range []activity.Decision{activity.Blocked, activity.WouldBlock, activity.Disallowed, activity.Allowed} {
		names := map[string]bool{}
		v := replay.VerdictCount{Decision: d, Requests: t.sum(func(k *cell, _, now string) bool {
			fits := ofCrawler(k) && now == string(d)
			if fits {
				names[k.agent.crawler] = true
			}
			return fits
		})}
		v.Crawlers = int64(len(names))
		w.Verdicts = append(w.Verdicts, v)
	}
	t.rules(w)
	t.unknownAndDays(w)
	return w
}

// rules counts the requests that each rule decided, in handwritten code. A narrower rule decides before the rule for
// everyone. No rule decides about robots.txt, which every crawler may always fetch.
func (t *truth) rules(w *replay.Report) {
	for _, r := range []struct {
		name, place string
		decides     func(k *cell) bool
		disallows   bool
	}{
		{"open", "new.yaml:4", func(k *cell) bool {
			_, now := decide(k.agent, k.section)
			return now == "allowed"
		}, false},
		{"training out", "new.yaml:7", func(k *cell) bool { return k.agent.kind == "ai-training" }, true},
		{"archive in dry run", "new.yaml:10", func(k *cell) bool { return k.agent.crawler == "archive.org_bot" && k.section == "/shop/" }, true},
		{"Bing out of the shop", "new.yaml:14", func(k *cell) bool { return k.agent.crawler == "Bingbot" && k.section == "/shop/" }, true},
	} {
		n := t.sum(func(k *cell, _, _ string) bool { return k.agent.known() && k.section != "/robots.txt" && r.decides(k) })
		rc := replay.RuleCount{Rule: r.name, Place: r.place, Requests: n}
		if r.disallows {
			rc.Disallowed = n
		}
		w.Rules = append(w.Rules, rc)
	}
	slices.SortStableFunc(w.Rules, func(a, b replay.RuleCount) int { return cmp.Compare(b.Requests, a.Requests) })
}

func (t *truth) unknownAndDays(w *replay.Report) {
	unknown, days := map[string]*replay.UnknownCount{}, map[string]map[activity.Decision]int64{}
	for k, c := range t.cells {
		switch {
		case k.agent.kind == "unlisted":
			u := unknown[k.agent.crawler]
			if u == nil {
				u = &replay.UnknownCount{Name: k.agent.crawler}
				unknown[k.agent.crawler] = u
			}
			u.Requests += c.requests
			u.Bytes += c.bytes
			w.UnknownRequests += c.requests
		case k.agent.known():
			if days[k.day] == nil {
				days[k.day] = map[activity.Decision]int64{}
			}
			_, now := decide(k.agent, k.section)
			days[k.day][activity.Decision(now)] += c.requests
		}
	}
	w.UnknownClients = int64(len(unknown))
	for _, u := range unknown {
		w.Unknown = append(w.Unknown, *u)
	}
	slices.SortFunc(w.Unknown, func(a, b replay.UnknownCount) int { return cmp.Compare(b.Requests, a.Requests) })
	for day, requests := range days {
		w.Days = append(w.Days, replay.DayCount{Day: day, Requests: requests})
	}
	slices.SortFunc(w.Days, func(a, b replay.DayCount) int { return cmp.Compare(a.Day, b.Day) })
}

// check compares a report with the truth, number by number.
func (t *truth) check(got *replay.Report) error {
	want := t.expected(got)
	words := func(r *replay.Report) *replay.Report { // leaves out texts, which are not compared
		c := *r
		c.SearchLoss = replay.SearchLoss{Requests: r.SearchLoss.Requests + r.SearchLoss.Intended}
		c.NotReplayed = slices.Clone(r.NotReplayed)
		for i := range c.NotReplayed {
			c.NotReplayed[i].What = ""
		}
		for _, list := range []*[]replay.CrawlerCount{&c.NewlyRefused, &c.NewlyAllowed, &c.Violations, &c.ByCrawler} {
			*list = slices.Clone(*list)
			for i := range *list {
				(*list)[i].Rules = nil
			}
		}
		return &c
	}
	g, err := json.MarshalIndent(words(got), "", " ")
	if err != nil {
		return err
	}
	w, err := json.MarshalIndent(words(want), "", " ")
	if err != nil {
		return err
	}
	if string(g) != string(w) {
		return fmt.Errorf("the report is not the truth:\n%s", difference(string(w), string(g)))
	}
	return nil
}
