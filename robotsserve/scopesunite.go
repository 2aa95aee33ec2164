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
	x, against := s.index(false), s.prohibitions()
	for open := s.unscoped; len(open) > 0 && s.spend(len(open)); {
		given := len(s.claims)
		open = slices.DeleteFunc(open, func(k conflict) bool {
			w, l := s.claims[k.winner], s.claims[k.loser]
			places, ok := s.asked(x, k)
			u := union{scoping: s, all: x, against: against, winner: &w, places: maxUnions}
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
		x, against = s.index(false), s.prohibitions()
	}
}

// unite looks at permissions that win over several prohibitions, each by another
// claim. Readers ask for one that is narrower than all which speak of a path (section
// 2.4.5). Where there is none the permission is a prohibition to them, which is told.
func (s *scoping) unite() {
	x, against := s.index(false), s.prohibitions()
	for i := range s.claims {
		w := &s.claims[i]
		if !w.allow || w.added {
			continue
		}
		u := union{scoping: s, all: x, against: against, winner: w, places: maxUnions}
		if loser := u.find(w.pattern, func(*claim) bool { return true }); loser != nil {
			s.lost(w, loser)
		}
	}
}

// union looks for where a permission is lost.
type union struct {
	*scoping
	all, against *pathpattern.Index[[]int] // all claims, and the prohibitions
	winner       *claim
	places       int // where several prohibitions meet that may still be looked at
}

// find returns a prohibition, of some, that the winner does not win over on the paths
// of a pattern, or nil.
func (u *union) find(p pathpattern.Pattern, some func(*claim) bool) *claim {
	u.spend(1)
	var open, decided []int // prohibitions that the winner does not decide against, and others
	u.against.Overlapping(p, func(js []int) {
		for _, j := range js {
			switch l := &u.claims[j]; {
			case l.rank <= u.winner.rank || !some(l):
			case decides(u.winner, l):
				decided = append(decided, j)
			default:
				open = append(open, j)
			}
		}
	})
	slices.Sort(open)
	slices.Sort(decided)
	losers := slices.Concat(open, decided)
	for i := range open {
		if lost := u.meet(p, losers[i:], nil); lost != nil {
			return lost
		}
	}
	return nil
}

// meet looks at where the first of more prohibitions speaks of the paths of a pattern,
// of which losers speak all.
func (u *union) meet(p pathpattern.Pattern, more []int, losers []*claim) *claim {
	l := &u.claims[more[0]]
	places, ok := pathpattern.Intersect(p, l.pattern, maxMeeting)
	if len(losers) > 0 {
		u.places -= len(places)
	}
	if !ok || u.places < 0 {
		return l
	}
	losers = append(slices.Clip(losers), l)
	for _, place := range places {
		if lost := u.place(place.Plain(), more[1:], losers); lost != nil {
			return lost
		}
	}
	return nil
}

// place looks at the paths of a pattern, of which losers speak all, and then at those
// of them of which more prohibitions do.
func (u *union) place(p pathpattern.Pattern, more []int, losers []*claim) *claim {
	if !u.spend(workOfConflict + len(more)) {
		return nil
	}
	if u.overruled(u.all, p, u.winner) {
		return nil
	}
	if !u.wins(p, losers) {
		return losers[len(losers)-1]
	}
	for i, j := range more {
		if u.claims[j].pattern.Overlaps(p) {
			if lost := u.meet(p, more[i:], losers); lost != nil {
				return lost
			}
		}
	}
	return nil
}

// wins reports whether one permission that speaks of all paths of a pattern decides
// against all losers.
func (u *union) wins(p pathpattern.Pattern, losers []*claim) (found bool) {
	u.all.Covering(p, func(js []int) {
		for _, j := range js {
			c := &u.claims[j]
			found = found || c.says(u.winner) && c.speaksWith(u.winner) &&
				!slices.ContainsFunc(losers, func(l *claim) bool { return acap.Compare(c.folded, l.folded) != acap.First })
		}
	})
	return found
}
