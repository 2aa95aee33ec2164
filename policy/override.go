// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// Applied is a statement that reaches the crawlers of a Class on a host. Audience and Host describe how its rule
// reaches them. If a rule reaches them through two audiences or two hosts, there are two values of type Applied for
// each of its statements.
type Applied struct {
	Rule      *Rule
	Statement *Statement
	Audience  Audience // the audience through which Rule reaches the crawlers, in lower case
	Tier      Tier     // how closely Audience names the crawlers
	Host      int      // how narrowly Rule names the host: greater is narrower, and 0 means every host
	Direct    bool     // false if Statement is about Present, and the requested usage is derived from it

	place int32 // the index of Rule in Spec.Rules
}

// AudienceName returns the audience as the policy file writes it.
func (x *Applied) AudienceName() string {
	for _, a := range x.Rule.For {
		if a.folded() == x.Audience {
			return a.String()
		}
	}
	return x.Audience.String()
}

// Obstacle is a reason why a permission does not override a prohibition.
type Obstacle uint8

// The obstacles.
const (
	NoObstacle    Obstacle = iota // the permission overrides the prohibition
	WiderHost                     // the prohibition names the host more narrowly
	WiderUsage                    // the prohibition is about the usage itself, but the permission is about Present
	WiderAudience                 // the prohibition names the crawler more closely
	OtherGroup                    // the audiences are different categories, operators or purposes
	NotWithinAI                   // the prohibition is for all AI crawlers, and the permission is for a group not limited to them
	ElseOnly                      // the permission is for everyone-else, but the prohibition is for everyone
	Shorter                       // audience, host and usage are the same, but the permission has the shorter pattern
	NotWithin                     // the prohibition's pattern does not cover all paths of the permission
	OnlyFallback                  // only the permission is from the site's own robots.txt
)

// Overrides reports whether permission a overrides prohibition d on the paths that both match.
func (p *Policy) Overrides(a, d *Applied) bool { return p.Obstacle(a, d) == NoObstacle }

// Obstacle returns the reason why permission a does not override prohibition d, or NoObstacle.
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
	if !a.Statement.Pattern.Within(d.Statement.Pattern) {
		return NotWithin
	}
	return NoObstacle
}

// SetsAside reports whether permission a makes the qualifiers of permission b ineffective on the paths that both match.
// For that, a must be at least as narrow as b in audience, host, usage and path, and narrower in at least one of them.
func (p *Policy) SetsAside(a, b *Applied) bool {
	sa, sb := a.scope(), b.scope()
	switch r, _ := sa.against(&sb, false); r {
	case byLength:
		return a.Statement.Pattern.Len() > b.Statement.Pattern.Len()
	case byPattern:
		return a.Statement.Pattern.Within(b.Statement.Pattern)
	case never, always:
	}
	return false
}

func (x *Applied) scope() scope {
	return scope{x.Tier, &x.Audience, int32(x.Host), x.Direct, x.Rule.Fallback}
}

// scope holds all properties of a statement that its precedence depends on, except its pattern.
type scope struct {
	tier     Tier
	audience *Audience
	host     int32 // see Applied.Host
	direct   bool
	fallback bool // see Rule.Fallback
}

// relation is the condition for a statement of one scope to override, or set aside, a statement of another scope.
type relation uint8

const (
	never     relation = iota // under no condition
	always                    // without a further condition
	byLength                  // if its pattern is longer, or as long as a prohibition's; the scopes are equal
	byPattern                 // if its pattern lies within the pattern of the other statement
)

// against returns the condition for an allow statement of the scope a to override, or set aside, another statement of
// the scope d. prohibition is true if the other statement is a disallow statement, and false if it is an allow
// statement. If the relation is never, against also returns the reason.
func (a *scope) against(d *scope, prohibition bool) (relation, Obstacle) {
	switch {
	case d.fallback && !a.fallback:
		return always, NoObstacle
	case a.fallback && !d.fallback:
		return never, OnlyFallback
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
	case d.tier == TierAI && a.tier < TierAI && !a.audience.NarrowsAI():
		return never, NotWithinAI
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

// compare orders scopes by audience, host and usage, the narrowest first. Scopes of the site's own robots.txt come
// last.
func (a *scope) compare(b *scope) int {
	switch {
	case a.fallback != b.fallback && b.fallback:
		return -1
	case a.fallback != b.fallback:
		return 1
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

// Reasons returns two lists of statements that match a query, each sorted with the narrowest first. permissions holds
// the matching allow statements. standing holds the matching disallow statements that no statement in permissions
// overrides. An allow statement whose date has passed is treated as a disallow statement.
func (p *Policy) Reasons(q Query) (standing, permissions []Applied) {
	all := p.matching(&q, q.Usage)
	if len(all) == 0 && q.Usage != Crawl && q.Usage != Other {
		all = p.matching(&q, Other)
	}
	slices.SortStableFunc(all, func(a, b Applied) int {
		sa, sb := a.scope(), b.scope()
		return cmp.Or(sa.compare(&sb), b.Statement.Pattern.Len()-a.Statement.Pattern.Len(), a.Statement.Pos.compare(b.Statement.Pos))
	})
	for _, a := range all {
		if a.Statement.Allow && !a.Statement.passed(q.Now) {
			permissions = append(permissions, a)
		} else {
			standing = append(standing, a)
		}
	}
	standing = slices.DeleteFunc(standing, func(d Applied) bool {
		opens := p.Overrides
		if d.Statement.Allow {
			opens = p.SetsAside
		}
		return slices.ContainsFunc(permissions, func(a Applied) bool { return opens(&a, &d) })
	})
	return standing, permissions
}

func (p *Policy) matching(q *Query, u Usage) []Applied {
	path, c := pathpattern.NormalizePath(q.Path), p.classOf(q)
	return slices.DeleteFunc(p.applied(&c, q, u), func(a Applied) bool { return !a.Statement.Pattern.Match(path) })
}

// classOf returns the class of a query's crawler and purposes.
func (p *Policy) classOf(q *Query) Class {
	c := p.ClassOf(q.Crawler, q.Host)
	for _, name := range q.Purposes {
		c = p.WithPurpose(&c, name)
	}
	return c
}

func (s *Statement) passed(now time.Time) bool {
	return s.Allow && s.Qualifiers != nil && s.Qualifiers.TimeLimit.Passed(now)
}

// Query is a question to a Policy: may a client use a path in a certain way?
type Query struct {
	Crawler  CrawlerID
	Identity Identity
	Purposes []string // purposes that the client names, in lower case; the catalog's purposes are added
	Host     string   // as in the request; case and port do not matter
	Path     string   // the path and query of the request target, as in the request
	AnyPath  bool     // the path is unknown: every restriction applies, whatever its path, and no permission overrides it
	Usage    Usage
	Now      time.Time
}

// Verdict is the result of a Query.
type Verdict uint8

// The verdicts. Unstated means that no statement of the policy matches the query. If the query is about Crawl, the path
// may then be crawled (RFC 9309 section 2.2.2).
const (
	Unstated Verdict = iota
	Allowed
	Disallowed
)

var verdictNames = [...]string{"unstated", "allowed", "disallowed"}

// String returns the verdict in words.
func (v Verdict) String() string { return verdictNames[v] }

// Decision is a verdict with the rule and the statement that decide.
type Decision struct {
	Verdict Verdict
	// Statement is the statement that decides the query. If Verdict is Disallowed, it disallows the usage, and no
	// matching statement that allows the usage overrides it. If Verdict is Allowed, it allows the usage. If several
	// such statements match, the narrowest one is used: they are compared first by audience, then by host, usage,
	// length of the pattern, and place in the file. Statement is nil if no statement matches. It is always nil for
	// /robots.txt.
	Statement *Statement
	Rule      *Rule     // the rule that contains Statement
	Expired   bool      // Statement is a permission whose date has passed
	Until     time.Time // when the decision may change because a date passes; zero means never

	mode   Mode  // see Policy.Mode
	scope  scope // the scope of Statement
	limits *Limits
}

// Applied returns the deciding statement with the audience and host through which its rule reaches the crawler. It
// returns the zero value if no statement matches.
func (d Decision) Applied() Applied {
	if d.Statement == nil {
		return Applied{}
	}
	x := d.scope
	return Applied{Rule: d.Rule, Statement: d.Statement, Audience: *x.audience, Tier: x.tier, Host: int(x.host), Direct: x.direct}
}

// Qualifiers returns the qualifiers that restrict the allowed usage. All of them apply.
func (d Decision) Qualifiers() Limits {
	if d.limits == nil {
		return nil
	}
	return *d.limits
}
