// SPDX-License-Identifier: Apache-2.0

package site

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/metainject"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// Page holds the header fields, meta tags and statements of channels that the plugin adds to responses. All paths of a
// host that need the same additions share one Page, so it must not be changed.
type Page struct {
	Values   *robotstag.Values // nil if there are no headers
	Elements *metainject.Set   // nil if there are no meta tags
	Declared []Declared        // statements of channels

	until time.Time // the first date in the policy that may change the statements; zero if there is none
}

const maxPages = 4096

// maxMatching limits the work of finding the page of a path. If a path needs more work, its responses get a Page with
// all restrictions of the host.
const maxMatching = 1 << 20

// pages is a cache of the Page of each path. The content of a Page only depends on the patterns that match the path, so
// these patterns are the key of the cache.
type pages struct {
	*effect.Engine
	registers *registers
	tokens    map[string]struct{} // tokens of crawlers that read meta tags; see known

	plain *Page // the page of every path if there is no pattern

	mu    sync.RWMutex
	cache map[string]*Page
}

// header returns a new header with only the fields of a page.
func (pg *Page) header() http.Header {
	h := http.Header{}
	if pg.Values != nil {
		robotstag.Apply(h, pg.Values, robotstag.AllChannels)
	}
	pg.Declare(h)
	return h
}

func (pg *Page) fresh(now time.Time) bool {
	return pg.until.IsZero() || clock(now).Before(pg.until)
}

func clock(now time.Time) time.Time {
	if now.IsZero() {
		return time.Now()
	}
	return now
}

func newPages(e *effect.Engine, tokens map[string]struct{}, registers *registers) *pages {
	ps := &pages{Engine: e, registers: registers, tokens: tokens, cache: map[string]*Page{}, plain: &nothing}
	if all := registers.declared(effect.PolicyTarget{}); all != nil {
		ps.plain = &Page{Declared: all}
	}
	if usage := ps.usage(); !usage.IsEmpty() {
		plain := *ps.plain
		plain.Values, _ = robotstag.Build(nil, usage, time.Time{})
		ps.plain = &plain
	}
	return ps
}

// page returns the page of a target at the time now. The zero time means the current time. The page is for everyone or,
// if tailored is true, for one crawler.
func (ps *pages) page(tailored bool, crawler policy.CrawlerID, sent *Target, now time.Time) *Page {
	if ps.PageIndex(false).Len() == 0 {
		return ps.plain
	}
	t := ps.Read(sent)
	var buf [128]byte
	reader := uint64(0)
	if tailored {
		reader = 1 + uint64(crawler)
	}
	key := binary.AppendUvarint(buf[:0], reader)
	key = binary.AppendUvarint(key, uint64(ps.Exact.HostKey(t.Host)))
	other := uint64(0)
	if t.Other != "" {
		other = 1 + uint64(ps.Exact.HostKey(t.Other))
	}
	key = binary.AppendUvarint(key, other)
	begin := len(key)
	if !t.Long {
		key = ps.appendTarget(key, &t)
	}
	if t.Long {
		key = key[:begin]
	}
	ps.mu.RLock()
	page := ps.cache[string(key)]
	ps.mu.RUnlock()
	if page == nil || !page.fresh(now) {
		page = ps.build(tailored, policy.Query{Crawler: crawler, Now: clock(now)}, t)
		ps.store(string(key), page)
	}
	return page
}

// appendTarget appends the part of a key that distinguishes the page of a target from other pages of the host. The part
// has a section for each way in which servers may read the path, and at least one byte. If comparing would take too
// much work, appendTarget sets t.Long.
func (ps *pages) appendTarget(key []byte, t *effect.PolicyTarget) []byte {
	begin := len(key)
	work := pathpattern.Work(maxMatching)
	key = ps.appendMatches(key, false, t.Normal, &work)
	if t.More != nil || t.Folds {
		paths := *t
		paths.Other = "" // the patterns that match do not depend on the host
		for p, q := range ps.Queries(paths, policy.Query{}) {
			end := len(key)
			if key = ps.appendMatches(key, p.AnyCase, q.Path, &work); hasSection(key[begin:end], key[end:]) {
				key = key[:end]
			}
		}
	}
	t.Long = work < 0
	return key
}

// appendMatches appends a section to a key of the cache of pages: the numbers of the patterns that match a path, and a
// zero byte. The numbers are odd for exact paths, and even for paths in lower case. This difference matters because a
// page takes only restrictions from a path in lower case.
func (ps *pages) appendMatches(key []byte, anyCase bool, path string, work *pathpattern.Work) []byte {
	first := uint64(1)
	if anyCase {
		first = 2
	}
	ps.PageIndex(anyCase).MatchesWithin(path, work, func(id uint32) {
		key = binary.AppendUvarint(key, first+2*uint64(id))
	})
	return append(key, 0)
}

// hasSection reports whether key contains a section. All sections of key end in a zero byte.
func hasSection(key, section []byte) bool {
	for len(key) > 0 {
		end := bytes.IndexByte(key, 0) + 1
		if bytes.Equal(key[:end], section) {
			return true
		}
		key = key[end:]
	}
	return false
}

func (ps *pages) store(key string, page *Page) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for other := range ps.cache {
		if len(ps.cache) < maxPages {
			break
		}
		delete(ps.cache, other)
	}
	ps.cache[key] = page
}

var nothing Page

func (ps *pages) elements(members []robotstag.Member, declared []Declared, lift robotsrule.Lift) *metainject.Set {
	var all []metainject.Element
	for _, m := range members {
		name := m.Token
		if name == robotstag.Everyone {
			name = metainject.Everyone
		} else if _, reads := ps.tokens[strings.ToLower(name)]; !reads {
			continue // the crawler reads headers only
		}
		all = append(all, metainject.Element{Name: name, Rules: m.Rules})
	}
	for _, d := range declared {
		for _, tag := range d.Tags() {
			all = append(all, metainject.Element{Name: tag.Name, Content: tag.Content, Combine: tag.Merge, Silent: !d.Published})
		}
	}
	if len(all) == 0 && lift == 0 {
		return nil
	}
	return metainject.NewSet(all, ps.tokens, lift)
}

// usage returns the preferences that every page starts with, before the decisions about its usages are added. They
// contain only the settings of the policy's publish section.
func (ps *pages) usage() robotstag.Usage {
	return robotstag.Usage{Publish: &ps.Exact.Spec().Publish}
}

func (ps *pages) build(tailored bool, q policy.Query, t effect.PolicyTarget) *Page {
	pg := &Page{}
	var all []robotstag.Member
	usage, lift := ps.usage(), ^robotsrule.Lift(0)
	for p, q := range ps.PageQueriesAt(t, q) {
		said, until := members(tailored, p.Policy, q)
		all = append(all, said...)
		if !tailored {
			q.Crawler = 0
		}
		lifted, end := robotstag.Lift(p.Policy, q)
		lift &= lifted
		until = robotstag.Earlier(until, end)
		decisions, change := robotstag.Preferences(p.Policy, q)
		prefs := decisions.Verdicts()
		if p.AnyCase {
			prefs = prefs.Restrictions()
		}
		usage.Verdicts = usage.Combine(prefs)
		pg.until = robotstag.Earlier(pg.until, robotstag.Earlier(until, change))
	}
	if len(all) > 0 || !usage.IsEmpty() || lift != 0 {
		// The problems are ignored, because the program has handled them before. Names that headers cannot contain were
		// reported when the policy was loaded. If the rules for a crawler do not fit into a field, Build adds them to
		// the rules for everyone.
		pg.Values, _ = robotstag.Build(all, usage, q.Now)
		pg.Values.Lift = lift
	}
	pg.Declared = ps.registers.declared(t)
	pg.Elements = ps.elements(all, pg.Declared, lift)
	return pg
}

func members(tailored bool, p *policy.Policy, q policy.Query) ([]robotstag.Member, time.Time) {
	if !tailored {
		return robotstag.Members(p, q)
	}
	rules, until := robotstag.Rules(p, q)
	var all []robotstag.Member
	if !rules.IsEmpty() {
		all = append(all, robotstag.Member{Token: robotstag.Everyone, Rules: rules})
	}
	for _, id := range p.PageTokens(q.Crawler) {
		q.Crawler = id
		own, change := robotstag.Rules(p, q)
		until = robotstag.Earlier(until, change)
		if own = own.Beyond(rules); !own.IsEmpty() {
			all = append(all, robotstag.Member{Token: p.CrawlerInfo(id).Token, Rules: own})
		}
	}
	return all, until
}
