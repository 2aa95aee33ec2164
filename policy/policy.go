// SPDX-License-Identifier: Apache-2.0

// Package policy defines a site's policy: rules about how crawlers may use the parts of a site. Policy.Decide answers
// whether a crawler may use a path in a certain way. All outputs, such as robots.txt and the response headers, are
// generated from the policy. The package does not do any input or output, and does not use the clock or a log.
package policy

import (
	"fmt"
	"iter"
	"strings"
	"sync/atomic"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// CrawlerID is the number of a crawler in one Policy. The number 0 stands for any unknown crawler. Only rules for
// everyone and for purposes apply to unknown crawlers.
type CrawlerID int32

// Policy is a compiled Spec. It is immutable and safe for concurrent use.
type Policy struct {
	spec       *Spec
	table      *CrawlerTable
	own        []Crawler // crawlers that only rules name; their numbers follow the numbers of the table
	ownByToken map[string]CrawlerID
	families   []CrawlerID   // for each crawler, the result of Family
	reachOf    []int32       // for each crawler, the index of its audiences in reaches
	reaches    [][]reach     // lists of the audiences that include a crawler, the closest first
	crawlersOf [][]CrawlerID // for each element of reaches, its crawlers, unless only rules for everyone reach them
	atomsOn    [][]*atom     // for each number of a host, the audiences of the rules that name the host
	purposes   map[string]*atom
	hosts      hostIndex

	statements []*Statement                // in the order of the file
	ruleOf     []*Rule                     // the rule of each statement
	limits     []Limits                    // the qualifiers of each statement, see Decision.Qualifiers
	ruleHosts  [][]int32                   // the hosts of each rule in Spec.Rules
	narrower   *pathpattern.Index[[]int32] // see ClassesOf
	demands    bool                        // at least one rule demands an identity
	engines    []string
	apps       []string

	lastClasses atomic.Pointer[hostClasses]

	wild  bool    // the pattern of at least one restriction has "*" or "$"
	above *Policy // the result of WithoutFallback; nil if the policy has no fallback
}

type reach struct {
	tier Tier
	*atom
}

// Spec returns the Spec that the policy was compiled from. Callers must not change it.
func (p *Policy) Spec() *Spec { return p.spec }

// Crawler returns the number of the crawler with a product token, or 0 if there is none. The case of the token does not
// matter (RFC 9309 section 2.2.1).
func (p *Policy) Crawler(token string) CrawlerID {
	var buf [64]byte // a longer token costs an allocation
	key := appendLower(buf[:0], token)
	if id := p.table.byToken[string(key)]; id != 0 {
		return id
	}
	return p.ownByToken[string(key)]
}

// CrawlerInfo returns the description of a crawler.
func (p *Policy) CrawlerInfo(id CrawlerID) Crawler { return *p.crawler(id) }

// Family returns another crawler of the same operator, whose robots.txt group the crawler id obeys if no group names
// it. The operator documents this. Family returns 0 if there is no such crawler. Rules for the returned crawler also
// reach the crawler id.
func (p *Policy) Family(id CrawlerID) CrawlerID { return p.families[id] }

// reachesOf returns the audiences in rules that include the crawler id. The audiences that name it most closely come
// first.
func (p *Policy) reachesOf(id CrawlerID) []reach { return p.reaches[p.reachOf[id]] }

// Crawlers yields every known crawler: first the catalog's crawlers, then the crawlers that only rules name.
func (p *Policy) Crawlers(yield func(CrawlerID, Crawler) bool) {
	for i := 1; i < p.numCrawlers(); i++ {
		if !yield(CrawlerID(i), *p.crawler(CrawlerID(i))) {
			return
		}
	}
}

// Members yields the known crawlers of the audience a. If a is a product token, Members yields only the crawler with
// this token. Rules for the token can also reach other crawlers that follow its robots.txt group, see Family.
func (p *Policy) Members(a Audience) iter.Seq2[CrawlerID, Crawler] {
	return func(yield func(CrawlerID, Crawler) bool) {
		for id, c := range p.Crawlers {
			member := a.Tier() == TierEveryone || a.Includes(c) || a.Kind == ForToken && strings.EqualFold(a.Name, c.Token)
			if member && !yield(id, c) {
				return
			}
		}
	}
}

// Apps lists the applications that have directives, in the order of the file.
func (p *Policy) Apps() []string { return p.apps }

// EngineRuleNames lists the names of the search engines' own rules, in the order of the file.
func (p *Policy) EngineRuleNames() []string { return p.engines }

// DemandsIdentity reports whether at least one rule is only for clients with a certain identity.
func (p *Policy) DemandsIdentity() bool { return p.demands }

// Identities lists the identities that the policy distinguishes. If the policy does not demand an identity, the list
// has only Unknown.
func (p *Policy) Identities() []Identity {
	if p.demands {
		return []Identity{Unknown, Impostor, Verified}
	}
	return []Identity{Unknown}
}

// Mode returns the mode in which the server handles a request that the decision d disallows. If several rules disallow
// the request, it is the strictest of their modes. A rule without a mode has the policy's default mode. A rule from the
// site's own robots.txt always has ModeOff.
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

// Severity classifies a Problem as an error, a warning or a hint.
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

// Problem is an error, a warning or a hint about a policy, with a message for the policy's author.
type Problem struct {
	Severity Severity
	Code     string // a stable identifier, such as "not-flattenable"; docs/reference/messages.md explains each code
	Pos      Pos
	Message  string // a text for readers who are not engineers, which includes the fix
}

// NewProblem returns a problem. It formats the message with [fmt.Sprintf].
func NewProblem(severity Severity, code string, at Pos, format string, args ...any) Problem {
	return Problem{severity, code, at, fmt.Sprintf(format, args...)}
}
