// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// The codes of what the channels have to say about a policy.
const (
	codeHeaderLong     = "header-long"
	codeHeaderTooLarge = "header-too-large"
	codeManyElements   = "many-elements"
	codeNotInHeaders   = "not-in-headers"
)

// maxElements is how many meta elements a page gets before the author hears of it.
const maxElements = 20

// maxUnnamed is how many crawlers one hint names.
const maxUnnamed = 3

// maxSamples bounds the paths of hosts for which headers are tried.
const maxSamples = 1000

// check says what the channels cannot carry, for every host that the policy
// tells apart.
func (s *Site) check() []policy.Problem {
	problems := append(slices.Clip(s.Policy.Problems()), robotsserve.Check(s.Policy, robotsserve.Options{})...)
	samples, left := s.samples(), maxSamples
	for _, h := range robotsserve.Hosts(s.Policy) {
		host := string(h)
		if h.Wildcard() {
			host = "any" + host[1:]
		}
		for _, p := range s.checkHeaders(host, samples, &left) {
			if !slices.Contains(problems, p) {
				problems = append(problems, p)
			}
		}
	}
	return append(problems, s.checkRights()...)
}

// sample is a path to try, and what of the policy it is for.
type sample struct {
	path string
	pos  policy.Pos
}

// samples are a path for each pattern that headers can show, and for each pair of
// them that meet, as what is said of both adds up.
func (s *Site) samples() (all []sample) {
	var patterns []pathpattern.Pattern
	var places []policy.Pos
	seen := map[string]bool{}
	add := func(p pathpattern.Pattern, pos policy.Pos) {
		if path := samplePath(p.String()); !seen[path] && len(all) < maxSamples {
			seen[path] = true
			all = append(all, sample{path, pos})
		}
	}
	collect := func(p pathpattern.Pattern, pos policy.Pos) {
		if !slices.Contains(patterns, p) && len(patterns) < maxSamples {
			patterns, places = append(patterns, p), append(places, pos)
			add(p, pos)
		}
	}
	for i := range s.File.Spec.Rules {
		r := &s.File.Spec.Rules[i]
		for _, st := range r.Statements {
			if st.Usage != policy.Crawl {
				collect(st.Pattern, st.Pos)
			}
		}
		for _, e := range r.EngineRules {
			collect(e.Pattern, e.Pos)
		}
	}
	for i, p := range patterns {
		for _, q := range patterns[:i] {
			if len(all) == maxSamples {
				return all
			}
			if both, ok := pathpattern.Intersect(p, q, 4); ok {
				for _, c := range both {
					add(c, places[i])
				}
			}
		}
	}
	return all
}

// checkHeaders builds the headers for the samples, as many as left says.
func (s *Site) checkHeaders(host string, samples []sample, left *int) (problems []policy.Problem) {
	now := time.Now()
	for _, sm := range samples {
		if *left == 0 {
			break
		}
		*left--
		members, _ := robotstag.Members(s.Policy, policy.Query{Host: host, Path: sm.path, Now: now})
		_, ps := robotstag.Build(members, robotstag.Usage{}, now)
		many := len(members) > maxElements
		if many {
			problems = append(problems, policy.Problem{
				Severity: policy.Warning, Code: codeManyElements, Pos: sm.pos,
				Message: fmt.Sprintf("this puts %d meta elements into every page like %s, and as much into its headers, one for each crawler; "+
					`write it in a rule with "for: everyone" if it may hold for all, name only the crawlers that matter, `+
					`or write "headers tailored" in the Caddyfile, which sends each crawler only its own`, len(members), sm.path),
			})
		}
		problems = append(problems, unnamed(ps, sm.pos)...)
		for _, p := range ps {
			switch {
			case p.Kind == robotstag.Long && !many:
				problems = append(problems, policy.Problem{
					Code: codeHeaderLong, Pos: sm.pos,
					Message: fmt.Sprintf("the %s header for %s is longer than %d bytes; readers need not look at more than %d, "+
						"and what the site's own server adds must fit as well; name fewer crawlers, write it in a rule with \"for: everyone\", or write \"headers tailored\" in the Caddyfile, which sends each crawler only its own",
						p.Field, sm.path, robotstag.WarnLength, robotstag.Limit),
				})
			case p.Kind == robotstag.TooLong:
				problems = append(problems, policy.Problem{
					Severity: policy.Error, Code: codeHeaderTooLarge, Pos: sm.pos,
					Message: fmt.Sprintf("the %s header for %s is longer than the %d bytes that readers must look at, "+
						"and what does not fit would be said to everyone; name fewer crawlers, write it in a rule with \"for: everyone\", or write \"headers tailored\" in the Caddyfile, which sends each crawler only its own",
						p.Field, sm.path, robotstag.Limit),
				})
			}
		}
	}
	return problems
}

// unnamed reports the crawlers that headers cannot name: the members of Robots-Tag are
// those of RFC 9651 section 3.3.4.
func unnamed(ps []robotstag.Problem, pos policy.Pos) (problems []policy.Problem) {
	for _, c := range []struct {
		kind    robotstag.Kind
		message string
	}{
		{robotstag.NoRobotsTag, "Robots-Tag cannot name %s; what is said here stands in X-Robots-Tag only; publish both, or write it in a rule with \"for: everyone\""},
		{robotstag.BadToken, "neither Robots-Tag nor X-Robots-Tag can name %s, so that what is said here does not stand in them; write it in a rule with \"for: everyone\""},
	} {
		var names []string
		for _, p := range ps {
			if p.Kind == c.kind {
				names = append(names, strconv.Quote(p.Text))
			}
		}
		if n := len(names) - maxUnnamed; n > 1 {
			names = append(names[:maxUnnamed], fmt.Sprintf("and %d more", n))
		}
		if names != nil {
			problems = append(problems, policy.Problem{Severity: policy.Hint, Code: codeNotInHeaders, Pos: pos, Message: fmt.Sprintf(c.message, strings.Join(names, ", "))})
		}
	}
	return problems
}

// samplePath is a path that a pattern matches.
func samplePath(pattern string) string {
	path := strings.ReplaceAll(strings.TrimSuffix(pattern, "$"), "*", "")
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return path
}
