// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

const maxExpectations = 20_000

// expectForm is one test: AGENT may | may not USAGE PLACE.
var expectForm = regexp.MustCompile(`^(?:(?i:(verified|claimed)) +)?(.+?) +may( +not)? +([^ ]+) +([^ ]+)$`)

const expectExample = "such as: Googlebot may crawl /news/"

func readExpect(p *parser, n *yaml.Node, _ *policy.Spec) {
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
		return e, p.refuse(n, "bad-expectation", near, format, args...)
	}
	m := expectForm.FindStringSubmatch(text)
	if m == nil || strings.TrimSuffix(m[4], ":") == "not" {
		return bad("", "invalid test %s: write AGENT may USAGE PATH, or AGENT may not USAGE PATH, %s", quote(text), expectExample)
	}
	// with is the test with one of its parts corrected.
	with := func(part int, right string) string {
		if right == "" {
			return ""
		}
		parts := slices.Clone(m)
		parts[part] = right
		return strings.TrimSpace(parts[1] + " " + parts[2] + " may" + parts[3] + " " + parts[4] + " " + parts[5])
	}
	e = policy.Expectation{Pos: posOf(n), Anyone: m[1] == "", Allowed: m[3] == ""}
	if strings.EqualFold(m[1], "verified") {
		e.Identity = policy.Verified
	}
	if e.Usage, ok = policy.ParseUsage(m[4]); !ok {
		p.unknownUsage(n, nil, m[4], false, func(near string) string { return with(4, near) })
		return e, false
	}
	if e.Agent, ok = p.expectAgent(n, m[2], func(near string) string { return with(2, near) }); !ok {
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
		near := nearPath(place)
		if hostAndPath.MatchString(place) {
			near = "https://" + place
		}
		return bad(with(5, near), `invalid path %s: write a path that starts with "/", or a whole address that starts with "https://"`, quote(place))
	}
	return e, true
}

// expectAgent reads who a test is about. Whole turns the right name into the whole
// test.
func (p *parser) expectAgent(n *yaml.Node, text string, whole func(string) string) (policy.Audience, bool) {
	a := policy.ParseAudience(text)
	switch a.Kind {
	case policy.ForEveryone, policy.ForCategory, policy.ForOperator, policy.ForPurpose:
		before := len(p.list)
		a, ok := p.audience(n, text)
		for i := before; i < len(p.list); i++ {
			p.list[i].DidYouMean = whole(p.list[i].DidYouMean)
		}
		return a, ok
	case policy.ForToken:
		if _, ok := p.catalogue.Lookup(text); ok || p.ruleTokens[strings.ToLower(text)] {
			return a, true
		}
		group, _ := p.known().group(text)
		product := ""
		if tokens := productWords[squash(text)]; tokens != nil {
			product = tokens[0]
		}
		near := cmp.Or(p.known().crawlerOf(text), product, group, p.known().meant(text))
		if near == "" && strings.ContainsAny(text, " ,") {
			return a, p.refuse(n, "bad-expectation", "", "invalid name %s: a test is about one crawler, category:KIND, operator:NAME, purpose:NAME or everyone", quote(text))
		}
		return a, p.refuse(n, "bad-expectation", whole(near), "no crawler called %s is known; if it exists, list it under crawlers", quote(text))
	case policy.ForEveryoneElse:
	}
	return a, p.refuse(n, "bad-expectation", whole("everyone"), "a test cannot be about %s; write everyone, or the name of a crawler", text)
}
