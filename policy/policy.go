// SPDX-License-Identifier: Apache-2.0

// Package policy is the model from which every channel is generated. A policy has rules about the usages that
// crawlers may make of the parts of a site, and Decide answers questions about them. The package does no input or
// output, and uses neither clock nor log.
package policy

import (
	"fmt"
	"sync/atomic"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// CrawlerID names a crawler of one Policy. 0 stands for any unknown crawler, to which only rules for everyone and
// for purposes apply.
type CrawlerID int32

// Policy is a compiled Spec. It does not change and may be shared.
type Policy struct {
	spec       *Spec
	table      *CrawlerTable
	own        []Crawler // crawlers that only rules name; their numbers follow the table's
	ownByToken map[string]CrawlerID
	families   []CrawlerID   // see Family
	reachOf    []int32       // of each crawler, in reaches
	reaches    [][]reach     // the audiences of rules that name a crawler, the closest first
	crawlersOf [][]CrawlerID // for each of reaches with a narrower audience than everyone
	atomsOn    [][]*atom     // the audiences of rules that name a host, by the number of the host
	purposes   map[string]*atom
	hosts      hostIndex

	statements []*Statement                // in the order of the file
	ruleOf     []*Rule                     // of each statement
	limits     []Limits                    // of each statement, see Decision.Qualifiers
	ruleHosts  [][]int32                   // the hosts of each of Spec.Rules
	narrower   *pathpattern.Index[[]int32] // see ClassesOf
	demands    bool                        // some rule demands an identity
	engines    []string
	apps       []string

	lastClasses atomic.Pointer[hostClasses]

	wild  bool    // some restricting pattern has "*" or "$"
	above *Policy // see WithoutFallback; nil if the policy has no fallback
}

type reach struct {
	tier Tier
	*atom
}

// Spec returns the source of the compiled policy. It must not be changed.
func (p *Policy) Spec() *Spec { return p.spec }

// Crawler returns the crawler with a product token, in any case (RFC 9309 section 2.2.1), or 0.
func (p *Policy) Crawler(token string) CrawlerID {
	var buf [64]byte // a longer token costs an allocation
	key := appendLower(buf[:0], token)
	if id := p.table.byToken[string(key)]; id != 0 {
		return id
	}
	return p.ownByToken[string(key)]
}

// CrawlerInfo returns what the policy knows of a crawler.
func (p *Policy) CrawlerInfo(id CrawlerID) Crawler { return *p.crawler(id) }

// Family returns the crawler of the same operator whose robots.txt group this crawler is documented to follow, or 0
// if there is none. Rules for that crawler also reach this one.
func (p *Policy) Family(id CrawlerID) CrawlerID { return p.families[id] }

// reachesOf returns the audiences of rules that name a crawler, the closest first.
func (p *Policy) reachesOf(id CrawlerID) []reach { return p.reaches[p.reachOf[id]] }

// Crawlers calls yield with every known crawler: first the catalog's crawlers, then the crawlers that only rules
// name.
func (p *Policy) Crawlers(yield func(CrawlerID, Crawler) bool) {
	for i := 1; i < p.numCrawlers(); i++ {
		if !yield(CrawlerID(i), *p.crawler(CrawlerID(i))) {
			return
		}
	}
}

// Apps lists the applications that have directives, in the order of the file.
func (p *Policy) Apps() []string { return p.apps }

// EngineRuleNames lists the engines' own rules, in the order of the file.
func (p *Policy) EngineRuleNames() []string { return p.engines }

// DemandsIdentity reports whether any rule is only for clients of some identity.
func (p *Policy) DemandsIdentity() bool { return p.demands }

// Identities lists the identities of clients that can make a difference to the policy.
func (p *Policy) Identities() []Identity {
	if p.demands {
		return []Identity{Unknown, Impostor, Verified}
	}
	return []Identity{Unknown}
}

// Mode returns the server's mode for a request that d disallows: the strictest mode of the rules that apply, or
// else the policy's default.
func (p *Policy) Mode(d Decision) Mode {
	if d.mode != ModeUnset {
		return d.mode
	}
	return p.modeOf(d.Rule)
}

func (p *Policy) modeOf(r *Rule) Mode {
	if r != nil && r.Fallback {
		return ModeOff
	}
	if r != nil && r.Enforce != ModeUnset {
		return r.Enforce
	}
	return max(p.spec.Enforcement.Mode, ModeOff)
}

func appendLower(b []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return b
}

// Severity is the severity of a problem: whether the policy still loads.
type Severity uint8

// The severities, mildest first. A policy with an error does not load.
const (
	Hint Severity = iota
	Warning
	Error
)

var severityNames = [...]string{"hint", "warning", "error"}

// String returns the severity in lower case.
func (s Severity) String() string { return severityNames[s] }

// Problem is something that the author of a policy should know about.
type Problem struct {
	Severity Severity
	Code     string // stable, such as "not-flattenable"; docs/reference/messages.md explains it
	Pos      Pos
	Message  string // for readers who are not engineers, with the fix
}

// NewProblem returns a problem whose message is formatted as by [fmt.Sprintf].
func NewProblem(severity Severity, code string, at Pos, format string, args ...any) Problem {
	return Problem{severity, code, at, fmt.Sprintf(format, args...)}
}
