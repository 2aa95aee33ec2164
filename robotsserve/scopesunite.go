// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve/acap"
)

// maxUnions is how many places where several prohibitions meet are looked at for a
// permission.
const maxUnions = 200

// guard looks at permissions with qualifiers that readers obey beside a weaker one
// without, as none of the two is narrower. Where the stronger one is lost to
// prohibitions to which the weaker one is not, it would be obeyed alone, so that
// there both have to fall.
func (s *scoping) guard() {
	x := s.index(false)
	for open := s.unscoped; len(open) > 0; {
		given := len(s.claims)
		open = slices.DeleteFunc(open, func(k conflict) bool {
			w, l := s.claims[k.winner], s.claims[k.loser]
			places, ok := s.asked(x, k)
			u := union{scoping: s, index: x, winner: &w, left: maxUnions}
			survived := func(d *claim) bool { return acap.Compare(l.folded, d.folded) == acap.First }
			if ok && !slices.ContainsFunc(places, func(m pathpattern.Pattern) bool { return u.find(m.Plain(), survived) != nil }) {
				return false
			}
			s.lost(&w, &l)
			s.prohibit(x, k)
			return true
		})
		if len(s.claims) == given {
			return
		}
		x = s.index(false)
	}
}

// unite looks at permissions that win over several prohibitions, each by another
// claim. Readers ask for one that is narrower than all which speak of a path (section
// 2.4.5). Where there is none the permission is a prohibition to them, which is told.
func (s *scoping) unite() {
	x := s.index(false)
	for i := range s.claims {
		w := &s.claims[i]
		if !w.allow || w.added {
			continue
		}
		u := union{scoping: s, index: x, winner: w, left: maxUnions}
		if loser := u.find(w.pattern, func(*claim) bool { return true }); loser != nil {
			s.lost(w, loser)
		}
	}
}

// union looks for where a permission is lost.
type union struct {
	*scoping
	index  *pathpattern.Index[[]int]
	winner *claim
	order  map[int]int // of the prohibitions that lose to the winner, from 1 on: those that it does not decide against come first
	left   int         // places that may still be looked at
}

// find returns a prohibition, of some, that the winner does not win over on the paths
// of a pattern, or nil.
func (u *union) find(p pathpattern.Pattern, some func(*claim) bool) *claim {
	losers := u.overlapping(p, func(j int) bool {
		l := &u.claims[j]
		return !l.allow && l.rank > u.winner.rank && some(l)
	})
	open := func(j int) int {
		if decides(u.winner, &u.claims[j]) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(losers, func(i, j int) int { return open(i) - open(j) })
	u.order = make(map[int]int, len(losers))
	for at, j := range losers {
		u.order[j] = at + 1
	}
	for _, j := range losers {
		if open(j) == 1 {
			break
		}
		if lost := u.meet(p, j, nil); lost != nil {
			return lost
		}
	}
	return nil
}

func (u *union) overlapping(p pathpattern.Pattern, which func(j int) bool) (all []int) {
	u.index.Overlapping(p, func(js []int) {
		for _, j := range js {
			if which(j) {
				all = append(all, j)
			}
		}
	})
	slices.Sort(all)
	return all
}

// meet looks at where one more prohibition speaks of the paths of a pattern, of which
// losers speak all.
func (u *union) meet(p pathpattern.Pattern, j int, losers []*claim) *claim {
	l := &u.claims[j]
	places, ok := pathpattern.Intersect(p, l.pattern, maxMeeting)
	if len(losers) > 0 {
		u.left -= len(places)
	}
	if !ok || u.left < 0 {
		return l
	}
	losers = append(slices.Clip(losers), l)
	for _, place := range places {
		if lost := u.place(place.Plain(), j, losers); lost != nil {
			return lost
		}
	}
	return nil
}

// place looks at the paths of a pattern, of which losers speak all, and then at those
// of them of which more prohibitions do, that come after j.
func (u *union) place(p pathpattern.Pattern, j int, losers []*claim) *claim {
	if u.overruled(u.index, p, u.winner) {
		return nil
	}
	if !u.wins(p, losers) {
		return losers[len(losers)-1]
	}
	for _, k := range u.overlapping(p, func(k int) bool { return u.order[k] > u.order[j] }) {
		if lost := u.meet(p, k, losers); lost != nil {
			return lost
		}
	}
	return nil
}

// wins reports whether one permission that speaks of all paths of a pattern decides
// against all losers.
func (u *union) wins(p pathpattern.Pattern, losers []*claim) (found bool) {
	u.index.Covering(p, func(js []int) {
		for _, j := range js {
			c := &u.claims[j]
			found = found || c.says(u.winner) && c.speaksWith(u.winner) &&
				!slices.ContainsFunc(losers, func(l *claim) bool { return acap.Compare(c.folded, l.folded) != acap.First })
		}
	})
	return found
}
