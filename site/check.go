// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// maxElements is the largest number of meta tags that a page can get without a warning.
const maxElements = 20

// maxNames is the largest number of crawlers that a header can name without a warning.
const maxNames = 50

// maxSamples is the maximum number of checked paths on all hosts together.
const maxSamples = 1000

// check reports the parts of the policy that channels cannot express. It checks each host that rules name, and an
// example of all other hosts.
func (s *Site) check() []policy.Problem {
	problems := s.Engine.Robots.Check()
	samples, left := s.samples(), maxSamples
	for _, h := range robotsserve.Hosts(s.Policy) {
		for _, p := range s.checkHeaders(h.Example(), samples, &left) {
			if !slices.Contains(problems, p) {
				problems = append(problems, p)
			}
		}
	}
	return append(problems, s.checkRights()...)
}

// sample is an example path whose headers are checked. It was made from a pattern, and has the pattern's place in the
// policy.
type sample struct {
	path string
	pos  policy.Pos
}

// samples returns an example path for each pattern whose rules can appear in headers. It also returns paths that match
// two such patterns, because the rules of both patterns apply to them.
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
	for _, r := range s.File.Spec.Rules {
		for p, pos := range r.PagePatterns {
			if !slices.Contains(patterns, p) && len(patterns) < maxSamples {
				patterns, places = append(patterns, p), append(places, pos)
				add(p, pos)
			}
		}
	}
	for i, p := range patterns {
		for _, q := range patterns[:i] {
			if len(all) == maxSamples {
				return all
			}
			both, ok := pathpattern.Intersect(p, q, 4)
			if !ok {
				continue
			}
			for _, c := range both {
				add(c, places[i])
			}
		}
	}
	return all
}

const tailored = `write "headers tailored" in the Caddyfile, so that Caddy sends each crawler only its own header values`

// checkHeaders builds the headers for the samples and returns their problems. left is the number of samples that may
// still be checked. checkHeaders decreases it for each sample, and stops at 0.
func (s *Site) checkHeaders(host string, samples []sample, left *int) (problems []policy.Problem) {
	now := time.Now()
	for _, sm := range samples {
		if *left == 0 {
			break
		}
		*left--
		members, _ := robotstag.Members(s.Policy, policy.Query{Host: host, Path: sm.path, Now: now})
		_, ps := robotstag.Build(members, robotstag.Usage{}, now)
		tags := strings.Count(s.pages.elements(members, nil, 0).HTML(), "<meta")
		if tags > maxElements || len(members) > maxNames {
			problems = append(problems, policy.NewProblem(policy.Warning, "many-meta-tags", sm.pos,
				"with this entry, Caddy adds %s to pages such as %s, and rules for %d crawlers to their headers. "+
					`Write the entry in a rule with "for: everyone" if it may apply to all crawlers, name only the crawlers that matter, or %s`,
				english.Count(tags, "meta tag"), sm.path, len(members), tailored))
		}
		problems = append(problems, unnamed(ps, sm.pos)...)
		for _, p := range ps {
			if p.Kind == robotstag.TooLong {
				problems = append(problems, policy.NewProblem(policy.Error, "header-too-large", sm.pos,
					"the %s header for %s is longer than the %d bytes that crawlers have to accept. "+
						`Name fewer crawlers, write the entries for this path in a rule with "for: everyone", or `+tailored,
					p.Field, sm.path, robotstag.Limit))
			}
		}
	}
	return problems
}

// unnamed reports the crawlers whose names a header cannot contain. For example, a name in Robots-Tag must be a token
// as defined in RFC 9651 section 3.3.4.
func unnamed(ps []robotstag.Problem, pos policy.Pos) (problems []policy.Problem) {
	for _, c := range []struct {
		kind    robotstag.Kind
		message string
	}{
		{robotstag.NoRobotsTag, "Robots-Tag cannot name %s, so only X-Robots-Tag has this rule; publish at least X-Robots-Tag, or write the entry in a rule with \"for: everyone\""},
		{robotstag.BadToken, "neither Robots-Tag nor X-Robots-Tag can name %s, so neither header has this rule; write the entry in a rule with \"for: everyone\""},
	} {
		var names []string
		for _, p := range ps {
			if p.Kind == c.kind {
				names = append(names, strconv.Quote(p.Text))
			}
		}
		if names != nil {
			problems = append(problems, policy.NewProblem(policy.Hint, "not-in-headers", pos, c.message, english.Some(names, 4)))
		}
	}
	return problems
}

func samplePath(pattern string) string {
	path := strings.ReplaceAll(strings.TrimSuffix(pattern, "$"), "*", "")
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return path
}

// publicRegisters returns the names of the published rights documents and signals for everyone.
func publicRegisters(p *policy.Publish) string {
	var names []string
	for _, r := range channels.Table {
		if r.ForEveryone && r.On(p) {
			names = append(names, r.Key)
		}
	}
	return strings.Join(names, ", ")
}

// maxRegisterHosts is the maximum number of hosts whose rights documents and signals are checked.
const maxRegisterHosts = 50

// checkRights reports where rights documents and signals are stricter than the policy, and where two of them differ. It
// reports only the first problem with each code.
func (s *Site) checkRights() (problems []policy.Problem) {
	publish := &s.File.Spec.Publish
	on := publicRegisters(publish)
	seen := map[string]bool{}
	report := func(p policy.Problem) {
		if !seen[p.Code] {
			seen[p.Code] = true
			problems = append(problems, p)
		}
	}
	for i, h := range robotsserve.Hosts(s.Policy) {
		if on == "" && !rights.StatesUse(publish) || i == maxRegisterHosts {
			break
		}
		view := rights.NewView(s.Policy, h.Example())
		if on != "" {
			s.checkView(view, on, report)
		}
		for _, f := range rights.Vocabularies {
			for _, problem := range f.CheckUse(publish, view) {
				report(problem)
			}
		}
	}
	return problems
}

func (s *Site) checkView(view *rights.View, on string, report func(policy.Problem)) {
	if all := view.Exceptions(); len(all) > 0 {
		d, more := all[0], ""
		if len(all) > 1 {
			more = fmt.Sprintf(" (and %d more like this)", len(all)-1)
		}
		report(policy.NewProblem(policy.Hint, "rights-stricter", d.Statement.Pos,
			"rights documents (%s under publish) cannot address single crawlers. If a usage is disallowed for one crawler, these documents disallow it for all crawlers. This entry for %s, in the rule %q%s, is only for some clients. If that is too strict, switch these documents off. If it is right, write the rule for everyone",
			on, d.Statement.Usage, s.RuleName(d.Rule), more))
	}
	cells, exact := view.Cells()
	if exact {
		return
	}
	pos := policy.Pos{}
	for _, c := range cells {
		for _, d := range c.Value {
			if d.Statement != nil && pos.Line == 0 {
				pos = d.Statement.Pos
			}
		}
	}
	report(policy.NewProblem(policy.Warning, "rights-crossed", pos,
		"the paths for train-ai, ai-use and search overlap in too many ways for the rights documents (%s under publish). If a usage is disallowed for any path, these documents disallow it for every path; use paths without * and $", on))
}
