// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Lost lists the losses of a search engine at one page.
type Lost struct {
	Loss     Loss         // without the losses that rules declare as intended
	Intended Loss         // losses that rules declare as intended
	Rule     *policy.Rule // a rule of the new policy that causes Loss or, if Loss is empty, Intended
}

// Taken holds the uses that a new policy takes away from a crawler at one page, for each row of the table of losses
// (see Loss).
type Taken struct {
	lost, intended Loss
	rules          [numLosses]*policy.Rule
	web            bool // the crawler belongs to a web search engine
}

// Compare returns what a search engine loses at a host and path when the policy of the engine now replaces the policy
// of the engine old. old is nil if there was no policy. rows selects rows of the table of losses. The parameters was
// and is contain the same query, for the old and for the new policy. They may differ only in the ID of the crawler.
//
// Compare includes losses that begin now, and losses that begin later because a date in the new policy passes. It
// returns no losses for an impostor, or for a crawler that does not belong to a search engine in either policy.
func Compare(old, now *Engine, was, is policy.Query, rows Loss) *Taken {
	t := &Taken{}
	if searches := now.Searches(is.Crawler) || old != nil && old.Searches(was.Crawler); !searches || is.Identity == policy.Impostor {
		return t
	}
	t.web = SearchesWeb(now.Policy, is.Crawler) || old != nil && SearchesWeb(old.Policy, was.Crawler)
	t.compare(old, now, was, is, rows)
	for _, end := range now.ends {
		if !end.After(is.Now) {
			continue
		}
		var later Taken
		was.Now, is.Now = end, end
		later.compare(old, now, was, is, rows)
		t.add(&later)
	}
	return t
}

// Lost returns the losses in the given rows of the table of losses.
func (t *Taken) Lost(rows Loss) (l Lost) {
	l.Loss, l.Intended = t.lost&rows, t.intended&rows
	for _, one := range append(l.Loss.Each(), l.Intended.Each()...) {
		l.Rule = t.rules[one.row()]
		break
	}
	return l
}

// Counted returns the losses that count against the search-loss limit.
func (t *Taken) Counted() Lost {
	if !t.web {
		return Lost{}
	}
	return t.Lost(Counted)
}

func (t *Taken) compare(old, now *Engine, was, is policy.Query, rows Loss) {
	after := now.leaves(is, rows)
	if *after == leftWhole { // true for most pages
		return
	}
	before := &leftWhole
	if old != nil {
		before = old.leaves(was, rows)
	}
	for i := range after {
		if after[i].value < before[i].value {
			t.set(1<<i, after[i].intended, after[i].by.Rule)
		}
	}
	if (t.lost|t.intended)&LossBlocked != 0 { // a blocked crawler cannot crawl, so the loss of crawling is left out
		t.lost &^= LossCrawl
		t.intended &^= LossCrawl
	}
}

func (t *Taken) set(one Loss, intended bool, rule *policy.Rule) {
	t.rules[one.row()] = rule
	if intended {
		t.intended |= one
	} else {
		t.lost |= one
	}
}

// add adds the losses on a later date. If a page may be indexed now, but not from that date on, add adds
// LossUnavailable instead of LossIndex.
func (t *Taken) add(later *Taken) {
	for _, one := range (later.lost | later.intended).Each() {
		row, intended := one, later.intended&one != 0
		if one == LossIndex && (t.lost|t.intended)&LossIndex == 0 {
			row = LossUnavailable
		}
		if t.lost&row != 0 || intended && t.intended&row != 0 {
			continue
		}
		t.intended &^= row
		t.set(row, intended, later.rules[one.row()])
	}
}

// firstLetters has the letters and digits that NearlyWhole and WholeHost use to make up names of pages, such as /aaa.
// They test one such page in the root of the host for each letter.
const firstLetters = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// FirstPage is the first page that WholeHost tests.
const FirstPage = "/aaa"

// NearlyWhole reports whether holds returns true for nearly all pages of a host. It does not know the pages, so it
// tests made-up pages. For each letter of firstLetters, holds must return true for a page in the root, such as /aaa, or
// for a page in a directory, such as /aaa/aaa.
func NearlyWhole(holds func(path string) bool) bool {
	for _, c := range firstLetters {
		page := "/" + strings.Repeat(string(c), 3)
		if !holds(page) && !holds(page+page) {
			return false
		}
	}
	return true
}

// WholeHost reports whether the policy causes the given loss on nearly all pages of a host. by is the cause of the
// loss. The path and usage of the query are ignored.
func (e *Engine) WholeHost(loss Loss, q policy.Query) (by Cause, whole bool) {
	lost := func(path string) (Cause, bool) {
		q.Path = path
		x := e.leaves(q, loss)[loss.row()]
		return x.by, x.value <= 0
	}
	for i, c := range firstLetters {
		cause, closed := lost("/" + strings.Repeat(string(c), 3))
		if !closed {
			return Cause{}, false
		}
		if i == 0 {
			by = cause
		}
		if i > 0 || !by.Pattern.IsAll() {
			continue
		}
		if _, closed := lost(by.Pattern.Example()); closed {
			return by, true
		}
	}
	return by, true
}

// TakesWhole reports whether the new policy causes the given loss on nearly all pages of a host, and the old policy did
// not. It examines the effect now, and the effect after each date in the new policy. The paths and usages of the
// queries are ignored.
func TakesWhole(old, now *Engine, was, is policy.Query, loss Loss) bool {
	if loss == LossUnavailable {
		loss = LossIndex
	}
	for _, at := range append([]time.Time{is.Now}, now.ends...) {
		if at.Before(is.Now) {
			continue
		}
		was.Now, is.Now = at, at
		if _, whole := now.WholeHost(loss, is); !whole {
			continue
		}
		if _, whole := old.WholeHost(loss, was); !whole {
			return true
		}
	}
	return false
}
