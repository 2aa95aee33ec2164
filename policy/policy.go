// SPDX-License-Identifier: Apache-2.0

// Package policy is the model that every channel projects: rules about which
// crawler may do what with which part of a site, and Decide, the one function
// that answers it. The package is pure: no input or output, no clock, no log.
package policy

import "github.com/robotspolicy/caddy-robots-policy/pathpattern"

// CrawlerID names a crawler of one Policy. The zero value stands for a crawler
// that the policy does not know, to which only rules for everyone and for
// purposes speak.
type CrawlerID int32

// Policy is a compiled Spec. It does not change and may be shared.
type Policy struct {
	spec     *Spec
	crawlers []crawler // crawlers[id]; 0 is the unknown crawler
	byToken  map[string]CrawlerID
	everyone *atom
	purposes map[string]*atom
	hosts    hostIndex

	statements []*Statement                // in the order of the file
	ruleOf     []*Rule                     // of each statement
	ruleHosts  [][]int32                   // the hosts of each of Spec.Rules
	narrower   *pathpattern.Index[[]int32] // see ClassesOf
	demands    bool                        // some rule demands an identity
	engines    []string
	apps       []string
}

type crawler struct {
	Crawler
	token  *atom   // nil: no rule names it
	middle []*atom // its category, operator and purposes, as far as rules name them
}

// Spec is what the policy was compiled from. It must not be changed.
func (p *Policy) Spec() *Spec { return p.spec }

// Crawler returns the crawler with that product token, which is compared
// without case (RFC 9309 section 2.2.1), or 0.
func (p *Policy) Crawler(token string) CrawlerID {
	var buf [64]byte // a longer token costs an allocation
	return p.byToken[string(appendLower(buf[:0], token))]
}

// CrawlerInfo returns what the policy knows of a crawler; the zero Crawler for
// the unknown one.
func (p *Policy) CrawlerInfo(id CrawlerID) Crawler { return p.crawlers[id].Crawler }

// Crawlers calls yield with every crawler that the policy knows, in a fixed
// order: the catalogue's, then those that only rules name.
func (p *Policy) Crawlers(yield func(CrawlerID, Crawler) bool) {
	for i := 1; i < len(p.crawlers); i++ {
		if !yield(CrawlerID(i), p.crawlers[i].Crawler) {
			return
		}
	}
}

// Apps lists the applications that have directives, in the order of the file.
func (p *Policy) Apps() []string { return p.apps }

// EngineRuleNames lists the engines' own rules that the policy states, in the
// order of the file.
func (p *Policy) EngineRuleNames() []string { return p.engines }

// DemandsIdentity reports whether any rule speaks only to clients of some
// identity.
func (p *Policy) DemandsIdentity() bool { return p.demands }

// Mode is what the edge does about a request that d disallows: what the
// deciding rule says, else the policy's default.
func (p *Policy) Mode(d Decision) Mode {
	if d.Rule != nil && d.Rule.Enforce != ModeUnset {
		return d.Rule.Enforce
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

func lower(s string) string { return string(appendLower(nil, s)) }
