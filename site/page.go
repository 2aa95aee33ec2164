// SPDX-License-Identifier: Apache-2.0

package site

import (
	"encoding/binary"
	"strings"
	"sync"
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
	kept map[string]*Page
}

func newPages(p *policy.Policy) *pages {
	ps := &pages{policy: p, tokens: map[string]struct{}{}, kept: map[string]*Page{}}
	for _, c := range p.Crawlers {
		if !c.RobotsOnly {
			ps.tokens[strings.ToLower(c.Token)] = struct{}{}
		}
	}
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

// page returns the page of a path, as sent, at a time: what everybody reads, or
// what is tailored to one crawler.
func (ps *pages) page(tailored bool, crawler policy.CrawlerID, host, path string, now time.Time) *Page {
	if ps.index.Len() == 0 {
		return &nothing
	}
	var buf [128]byte
	reader := uint64(0)
	if tailored {
		reader = 1 + uint64(crawler)
	}
	key := binary.AppendUvarint(buf[:0], reader)
	key = binary.AppendUvarint(key, uint64(ps.policy.HostKey(host)))
	ps.index.Matches(pathpattern.NormalizePath(path), func(id uint32) {
		key = binary.AppendUvarint(key, uint64(id))
	})
	ps.mu.RLock()
	pg := ps.kept[string(key)]
	ps.mu.RUnlock()
	if pg != nil && (pg.until.IsZero() || now.Before(pg.until)) {
		return pg
	}
	pg = ps.build(tailored, policy.Query{Crawler: crawler, Host: host, Path: path, Now: now})
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for k := range ps.kept {
		if len(ps.kept) < maxPages {
			break
		}
		delete(ps.kept, k)
	}
	ps.kept[string(key)] = pg
	return pg
}

var nothing Page

// build works a page out.
func (ps *pages) build(tailored bool, q policy.Query) *Page {
	var members []robotstag.Member
	var until time.Time
	if tailored {
		var rules robotsrule.Set
		if rules, until = robotstag.Rules(ps.policy, q); !rules.IsEmpty() {
			members = []robotstag.Member{{Token: robotstag.Everyone, Rules: rules}}
		}
	} else {
		q.Crawler = 0
		members, until = robotstag.Members(ps.policy, q)
	}
	usage, change := robotstag.Preferences(ps.policy, q)
	if until.IsZero() || !change.IsZero() && change.Before(until) {
		until = change
	}
	pg := &Page{until: until}
	if len(members) > 0 || usage != (robotstag.Usage{}) {
		// What does not fit or cannot be written was told when the policy was loaded.
		pg.Values, _ = robotstag.Build(members, usage, q.Now)
	}
	elements := make([]metainject.Element, len(members))
	for i, m := range members {
		elements[i] = metainject.Element{Name: m.Token, Rules: m.Rules}
		if m.Token == robotstag.Everyone {
			elements[i].Name = metainject.Everyone
		}
	}
	if len(elements) > 0 {
		pg.Elements = metainject.NewSet(elements, ps.tokens)
	}
	return pg
}
