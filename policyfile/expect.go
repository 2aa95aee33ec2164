// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"net/url"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// maxExpectations bounds the tests of one file.
const maxExpectations = 20_000

// expectForm is one test: AGENT may | may not USAGE PLACE.
var expectForm = regexp.MustCompile(`^(?:(?i:(verified|claimed)) +)?(.+?) +may( +not)? +([^ ]+) +([^ ]+)$`)

const expectExample = "such as: Googlebot may crawl /news/"

// readExpect reads the tests of the policy.
func readExpect(p *parser, _, n *yaml.Node, _ struct{}) {
	p.texts(n, "a test", func(n *yaml.Node, text string) {
		if len(p.spec.Expect) == maxExpectations {
			if !p.full {
				p.report(posOf(n), "too-many-rules", "", "a policy file can have up to %d tests", maxExpectations)
			}
			p.full = true
			return
		}
		if e, ok := p.expectation(n, strings.TrimSpace(text)); ok {
			p.spec.Expect = append(p.spec.Expect, e)
		}
	})
}

func (p *parser) expectation(n *yaml.Node, text string) (e policy.Expectation, ok bool) {
	bad := func(near, format string, args ...any) (policy.Expectation, bool) {
		p.report(posOf(n), "bad-expectation", near, format, args...)
		return e, false
	}
	m := expectForm.FindStringSubmatch(text)
	if m == nil {
		return bad(nearExpectation(text), "invalid test %s: write AGENT may USAGE PATH, or AGENT may not USAGE PATH, %s", quote(text), expectExample)
	}
	e = policy.Expectation{Pos: posOf(n), Anyone: m[1] == "", Allowed: m[3] == ""}
	if strings.EqualFold(m[1], "verified") {
		e.Identity = policy.Verified
	}
	if e.Usage, ok = policy.ParseUsage(m[4]); !ok {
		p.unknownUsage(n, m[4], false)
		return e, false
	}
	if e.Agent, ok = p.expectAgent(n, m[2]); !ok {
		return e, false
	}
	place := m[5]
	switch u, err := url.Parse(place); {
	case strings.HasPrefix(place, "/"):
		e.Path = place
	case err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "":
		host, err := policy.ParseHost(u.Host)
		if err != nil || host.Wildcard() {
			return bad("", "invalid address %s: the host must be a name such as www.example.com", quote(place))
		}
		e.Host, e.Path = string(host), u.RequestURI()
	default:
		near := rooted(place)
		if hostAndPath.MatchString(place) {
			near = "https://" + place
		}
		return bad(near, `invalid path %s: write a path that starts with "/", or a whole address that starts with "https://"`, quote(place))
	}
	return e, true
}

// expectAgent reads who a test is about.
func (p *parser) expectAgent(n *yaml.Node, text string) (policy.Audience, bool) {
	a := policy.ParseAudience(text)
	switch a.Kind {
	case policy.ForEveryone, policy.ForCategory, policy.ForOperator, policy.ForPurpose:
		return p.audience(n, text)
	case policy.ForToken:
		if _, ok := p.catalogue.Lookup(text); ok || p.namesToken(text) {
			return a, true
		}
		near, _ := p.known().group(text)
		if bot := p.known().crawlerOf(text); bot != "" {
			near = bot
		}
		if near == "" {
			near = p.known().meant(text)
		}
		if near == "" && strings.ContainsAny(text, " ,") {
			p.report(posOf(n), "bad-expectation", "", "invalid name %s: a test is about one crawler, category:KIND, operator:NAME, purpose:NAME or everyone", quote(text))
			return a, false
		}
		p.report(posOf(n), "bad-expectation", near, "no crawler called %s is known; if it exists, list it under crawlers", quote(text))
		return a, false
	}
	p.report(posOf(n), "bad-expectation", "everyone", "a test cannot be about %s; write everyone, or the name of a crawler", text)
	return a, false
}

// namesToken reports whether a rule of the file names a token.
func (p *parser) namesToken(token string) bool {
	if p.ruleTokens == nil {
		p.ruleTokens = map[string]bool{}
		for i := range p.spec.Rules {
			for _, a := range p.spec.Rules[i].For {
				if a.Kind == policy.ForToken {
					p.ruleTokens[strings.ToLower(a.Name)] = true
				}
			}
		}
	}
	return p.ruleTokens[strings.ToLower(token)]
}

var (
	expectCannot = regexp.MustCompile(`(?i)^(.+?) +(?:can ?not|can't|must not|may ?n't|shall not|should not) +(.+)$`)
	expectCan    = regexp.MustCompile(`(?i)^(.+?) +(?:can|must|shall|should|may) +(.+)$`)
	expectNoUse  = regexp.MustCompile(`(?i)^(.+?) +may( +not)? +([/h][^ ]*)$`)
)

// nearExpectation guesses what an unreadable test means.
func nearExpectation(text string) string {
	if m := expectCannot.FindStringSubmatch(text); m != nil {
		return m[1] + " may not " + m[2]
	}
	if m := expectNoUse.FindStringSubmatch(text); m != nil {
		return m[1] + " may" + m[2] + " crawl " + m[3]
	}
	if m := expectCan.FindStringSubmatch(text); m != nil {
		if near := m[1] + " may " + m[2]; near != text && expectForm.MatchString(near) {
			return near
		}
	}
	return ""
}
