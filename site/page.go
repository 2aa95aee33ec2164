// SPDX-License-Identifier: Apache-2.0

package site

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/metainject"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// Page is what the responses for some paths of a host carry. It is shared by
// them and must not be changed.
type Page struct {
	Values   *robotstag.Values // nil: no headers
	Elements *metainject.Set   // nil: no elements

	until time.Time // when a date in the policy passes; zero for never
}

// maxPages bounds the pages that are kept; past it one goes for each that comes.
const maxPages = 4096

// pages finds the Page of a path. All that a page carries is decided by which
// patterns match its path, so pages are kept by that.
type pages struct {
	policy *policy.Policy
	tokens map[string]struct{} // whose elements are recognised in a page

	// The patterns of every statement that headers or elements can show, by
	// number.
	index *pathpattern.Index[uint32]

	mu   sync.RWMutex
	kept map[string]*keptPage

	// Those of kept that were asked for last, by a hash of their keys, so that
	// most requests take no lock.
	recent [recentPages]atomic.Pointer[keptPage]
}

const recentPages = 64

type keptPage struct {
	key  string
	page *Page
}

// recentOf is where a key is among the recent ones (FNV-1a).
func recentOf(key []byte) int {
	h := uint32(2166136261)
	for _, c := range key {
		h = (h ^ uint32(c)) * 16777619
	}
	return int((h ^ h>>16) % recentPages)
}

// holds reports whether a page is still what it was built as. A time that is zero
// is now.
func (pg *Page) holds(now time.Time) bool {
	return pg.until.IsZero() || clock(now).Before(pg.until)
}

// clock is a given time, or the time of the clock for a zero one, which is asked
// only where it matters.
func clock(now time.Time) time.Time {
	if now.IsZero() {
		return time.Now()
	}
	return now
}

func newPages(p *policy.Policy, tokens map[string]struct{}) *pages {
	ps := &pages{policy: p, tokens: tokens, kept: map[string]*keptPage{}}
	ids := map[pathpattern.Pattern]uint32{}
	var entries []pathpattern.Entry[uint32]
	add := func(pattern pathpattern.Pattern) {
		if _, ok := ids[pattern]; !ok {
			ids[pattern] = uint32(len(ids))
			entries = append(entries, pathpattern.Entry[uint32]{Pattern: pattern, Value: ids[pattern]})
		}
	}
	for _, r := range p.Spec().Rules {
		for _, s := range r.Statements {
			if s.Usage != policy.Crawl {
				add(s.Pattern)
			}
		}
		for _, e := range r.EngineRules {
			add(e.Pattern)
		}
	}
	ps.index = pathpattern.NewIndex(entries, func(a, _ uint32) uint32 { return a })
	return ps
}

// page returns the page of a path, as sent, at a time, or now for the zero time:
// what everybody reads, or what is tailored to one crawler.
func (ps *pages) page(tailored bool, crawler policy.CrawlerID, host, path string, now time.Time) *Page {
	if ps.index.Len() == 0 {
		return &nothing
	}
	if len(path) > MaxPath {
		return strictest
	}
	var buf [128]byte
	reader := uint64(0)
	if tailored {
		reader = 1 + uint64(crawler)
	}
	key := binary.AppendUvarint(buf[:0], reader)
	key = binary.AppendUvarint(key, uint64(ps.policy.HostKey(host)))
	readings, n := pathpattern.Readings(path)
	for _, r := range readings[:n] {
		ps.index.Matches(r, func(id uint32) {
			key = binary.AppendUvarint(key, uint64(id)+1)
		})
		key = append(key, 0)
	}
	slot := &ps.recent[recentOf(key)]
	if last := slot.Load(); last != nil && last.key == string(key) && last.page.holds(now) {
		return last.page
	}
	ps.mu.RLock()
	k := ps.kept[string(key)]
	ps.mu.RUnlock()
	if k == nil || !k.page.holds(now) {
		k = &keptPage{string(key), ps.build(tailored, policy.Query{Crawler: crawler, Host: host, Now: clock(now)}, readings[:n])}
		ps.keep(k)
	}
	slot.Store(k)
	return k.page
}

// keep keeps a page, and lets others go for it when there are too many.
func (ps *pages) keep(k *keptPage) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for key := range ps.kept {
		if len(ps.kept) < maxPages {
			break
		}
		delete(ps.kept, key)
	}
	ps.kept[k.key] = k
}

var nothing Page

var strictestRules = robotsrule.Of("noindex", "nofollow", "nosnippet", "noarchive")

// strictest is the page of targets that are too long to look at.
var strictest = func() *Page {
	values, _ := robotstag.Build([]robotstag.Member{{Token: robotstag.Everyone, Rules: strictestRules}}, robotstag.Usage{}, time.Time{})
	return &Page{Values: values, Elements: metainject.NewSet([]metainject.Element{{Name: metainject.Everyone, Rules: strictestRules}}, nil)}
}()

// build works a page out: what holds for any of the readings of its path.
func (ps *pages) build(tailored bool, q policy.Query, readings []string) *Page {
	pg := &Page{}
	var members []robotstag.Member
	var usage robotstag.Usage
	for _, q.Path = range readings {
		said, until := ps.members(tailored, q)
		members = append(members, said...)
		if !tailored {
			q.Crawler = 0
		}
		prefs, change := robotstag.Preferences(ps.policy, q)
		usage = usage.Combine(prefs)
		for _, at := range []time.Time{until, change} {
			if !at.IsZero() && (pg.until.IsZero() || at.Before(pg.until)) {
				pg.until = at
			}
		}
	}
	if len(members) > 0 || usage != (robotstag.Usage{}) {
		// What does not fit or cannot be written was told when the policy was loaded.
		pg.Values, _ = robotstag.Build(members, usage, q.Now)
	}
	if len(members) > 0 {
		elements := make([]metainject.Element, len(members))
		for i, m := range members {
			elements[i] = metainject.Element{Name: m.Token, Rules: m.Rules}
			if m.Token == robotstag.Everyone {
				elements[i].Name = metainject.Everyone
			}
		}
		pg.Elements = metainject.NewSet(elements, ps.tokens)
	}
	return pg
}

// members is what is said about one reading of a path.
func (ps *pages) members(tailored bool, q policy.Query) ([]robotstag.Member, time.Time) {
	if !tailored {
		return robotstag.Members(ps.policy, q)
	}
	rules, until := robotstag.Rules(ps.policy, q)
	if rules.IsEmpty() {
		return nil, until
	}
	return []robotstag.Member{{Token: robotstag.Everyone, Rules: rules}}, until
}
