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
	Intended Loss         // losses that rules declare with the key intended
	Rule     *policy.Rule // a rule of the new policy that causes Loss or else Intended
}

// Taken lists the uses that a policy takes away from a crawler at one page, row by row.
type Taken struct {
	lost, intended Loss
	rules          [numLosses]*policy.Rule
	web            bool // the crawler is a web search engine's
}

// Compare returns the losses of a search engine at a host and path when the policy of now replaces the policy of old.
// The old policy may be nil. rows selects rows of the table. The queries have the crawler as each policy knows it.
//
// It counts what is lost at once and what is lost when a date has passed. An impostor loses nothing, nor does a crawler
// if neither policy says that it is a search engine's.
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

// Lost returns the losses among the given rows of the table.
func (t *Taken) Lost(rows Loss) (l Lost) {
	l.Loss, l.Intended = t.lost&rows, t.intended&rows
	for _, one := range append(l.Loss.Each(), l.Intended.Each()...) {
		l.Rule = t.rules[one.row()]
		break
	}
	return l
}

// Counted returns the losses that are counted against the search-loss limit.
func (t *Taken) Counted() Lost {
	if !t.web {
		return Lost{}
	}
	return t.Lost(Counted)
}

func (t *Taken) compare(old, now *Engine, was, is policy.Query, rows Loss) {
	before, after := new(left), now.leaves(is, rows)
	if *after == leftWhole { // most pages
		return
	}
	if *before = leftWhole; old != nil {
		before = old.leaves(was, rows)
	}
	for i := range after {
		if after[i].value < before[i].value {
			t.set(1<<i, after[i].intended, after[i].by.Rule)
		}
	}
	if (t.lost|t.intended)&LossBlocked != 0 { // says enough
		t.drop(LossCrawl)
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

func (t *Taken) drop(one Loss) {
	t.lost &^= one
	t.intended &^= one
}

// add adds the losses at a later date. Losing the index later has a separate row.
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

// firstLetters represent a whole host: WholeHost asks about one page that begins with each of them.
const firstLetters = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// FirstPage is the first page about which WholeHost asks.
const FirstPage = "/aaa"

// NearlyWhole reports whether holds returns true for nearly all pages of a host: with each first letter, for a page in
// the root or in a directory.
func NearlyWhole(holds func(path string) bool) bool {
	for _, c := range firstLetters {
		page := "/" + strings.Repeat(string(c), 3)
		if !holds(page) && !holds(page+page) {
			return false
		}
	}
	return true
}

// WholeHost reports whether a policy takes nearly a whole host away from a crawler, by a single loss, and what that
// comes from. The path and usage of the query are not looked at.
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

// TakesWhole reports whether a crawler loses nearly a whole host that the old policy left to it, now or when a date
// has passed. The paths and usages of the queries are ignored.
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
