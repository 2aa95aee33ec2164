// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// Applied is one statement as it reaches the crawlers of one Class on one host.
// A rule that reaches them through two audiences, or names the host in two ways,
// makes two of each of its statements.
type Applied struct {
	Rule      *Rule
	Statement *Statement
	Audience  Audience // of the rule, with the name in lower case
	Tier      Tier     // how closely Audience names the crawlers
	Host      int      // how narrowly the rule names the host: the greater the narrower, 0 for every host
	Direct    bool     // it names the usage asked for, not Present in its stead

	place int32 // of Rule, in Spec.Rules
}

// AudienceName is the audience as the rule writes it.
func (x *Applied) AudienceName() string {
	for _, a := range x.Rule.For {
		if a.folded() == x.Audience {
			return a.String()
		}
	}
	return x.Audience.String()
}

// Obstacle is why a permission does not override a prohibition.
type Obstacle uint8

// The obstacles.
const (
	NoObstacle    Obstacle = iota // it does override it
	WiderHost                     // the prohibition names the host more narrowly
	WiderUsage                    // the prohibition names the usage itself, the permission Present
	WiderAudience                 // the prohibition names the crawler more closely
	OtherGroup                    // two different ones among category, operator and purpose
	ElseOnly                      // a permission for everyone-else, a prohibition for everyone
	Shorter                       // of the same audience, host and usage, with a shorter pattern
	NotWithin                     // some paths of the permission lie outside the prohibition's pattern
	NotCompared                   // Compile's budget ended before the patterns were compared, see Problems
)

// Overrides reports whether permission a opens what prohibition d closes, for
// every path that both match.
func (p *Policy) Overrides(a, d *Applied) bool { return p.Obstacle(a, d) == NoObstacle }

// Obstacle is Overrides with the reason.
func (p *Policy) Obstacle(a, d *Applied) Obstacle {
	sa, sd := a.scope(), d.scope()
	switch r, why := sa.against(&sd, true); r {
	case always:
		return NoObstacle
	case never:
		return why
	case byLength:
		if a.Statement.Pattern.Len() < d.Statement.Pattern.Len() {
			return Shorter
		}
		return NoObstacle
	case byPattern:
	}
	return p.within(a.Statement.Pattern, d.Statement.Pattern)
}

// SetsAside reports whether permission a makes the qualifiers of permission b
// void: whether it is at least as narrow in audience, host, usage and path, and
// narrower in one of them.
func (p *Policy) SetsAside(a, b *Applied) bool {
	sa, sb := a.scope(), b.scope()
	switch r, _ := sa.against(&sb, false); r {
	case byLength:
		return a.Statement.Pattern.Len() > b.Statement.Pattern.Len()
	case byPattern:
		return p.within(a.Statement.Pattern, b.Statement.Pattern) == NoObstacle
	case never, always:
	}
	return false
}

// within compares patterns of different scopes.
func (p *Policy) within(inner, outer pathpattern.Pattern) Obstacle {
	var ok bool
	list, listed := p.containers[inner]
	id, numbered := p.wilds[outer]
	switch {
	case numbered && p.uncompared[inner]:
		return NotCompared
	case numbered && listed:
		_, ok = slices.BinarySearch(list, id)
	default:
		ok = inner.Within(outer)
	}
	if !ok {
		return NotWithin
	}
	return NoObstacle
}

func (x *Applied) scope() scope {
	return scope{x.Tier, &x.Audience, int32(x.Host), x.Direct}
}

// scope is everything about a statement but its path.
type scope struct {
	tier     Tier
	audience *Audience
	host     int32 // see Applied.Host
	direct   bool
}

// relation says what of their patterns decides whether a statement of one scope
// overrides, or sets aside, one of another.
type relation uint8

const (
	never     relation = iota
	always             // nothing
	byLength           // the scopes are the same: the longer wins
	byPattern          // it must lie within the other
)

// against relates a permission of scope a to a statement of scope d, which is a
// prohibition or another permission.
func (a *scope) against(d *scope, prohibition bool) (relation, Obstacle) {
	switch {
	case a.host < d.host:
		return never, WiderHost
	case d.direct && !a.direct:
		return never, WiderUsage
	case prohibition && d.tier == TierEveryone && d.audience.Kind == ForEveryoneElse && a.tier <= TierFamily:
		return always, NoObstacle
	case prohibition && d.tier == TierFamily && a.tier == TierToken:
		return always, NoObstacle
	case a.tier > d.tier:
		return never, WiderAudience
	case a.tier < d.tier:
		return byPattern, NoObstacle
	case a.tier == TierGroup && *a.audience != *d.audience:
		return never, OtherGroup
	case prohibition && a.audience.Kind == ForEveryoneElse && d.audience.Kind == ForEveryone:
		return never, ElseOnly
	case a.host == d.host && a.direct == d.direct:
		return byLength, NoObstacle
	}
	return byPattern, NoObstacle
}

// compare orders scopes by audience, host and usage, the narrowest first.
func (a *scope) compare(b *scope) int {
	switch {
	case a.tier != b.tier:
		return int(a.tier) - int(b.tier)
	case a.host != b.host:
		return int(b.host - a.host)
	case a.direct != b.direct && a.direct:
		return -1
	case a.direct != b.direct:
		return 1
	}
	return 0
}
