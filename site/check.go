// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// The codes of what the channels have to say about a policy.
const (
	codeHeaderLong     = "header-long"
	codeHeaderTooLarge = "header-too-large"
)

// maxSamples bounds the paths of hosts for which headers are tried.
const maxSamples = 1000

// check says what the channels cannot carry, for every host that the policy
// tells apart.
func (s *Site) check() []policy.Problem {
	problems := robotsserve.Check(s.Policy, robotsserve.Options{})
	samples := maxSamples
	for _, h := range robotsserve.Hosts(s.Policy) {
		host := string(h)
		if h.Wildcard() {
			host = "any" + host[1:]
		}
		for _, p := range s.checkHeaders(host, &samples) {
			if !slices.Contains(problems, p) {
				problems = append(problems, p)
			}
		}
	}
	return problems
}

// checkHeaders builds the headers for a path of each pattern, for as many as
// samples leaves.
func (s *Site) checkHeaders(host string, samples *int) (problems []policy.Problem) {
	now := time.Now()
	seen := map[string]bool{}
	for i := range s.File.Spec.Rules {
		r := &s.File.Spec.Rules[i]
		for j := range r.Statements {
			st := &r.Statements[j]
			path := samplePath(st.Pattern.String())
			if st.Usage == policy.Crawl || seen[path] || *samples == 0 {
				continue
			}
			seen[path] = true
			*samples--
			members, _ := robotstag.Members(s.Policy, policy.Query{Host: host, Path: path, Now: now})
			_, ps := robotstag.Build(members, robotstag.Usage{}, now)
			for _, p := range ps {
				switch p.Kind {
				case robotstag.Long:
					problems = append(problems, policy.Problem{
						Code: codeHeaderLong, Pos: st.Pos,
						Message: fmt.Sprintf("the %s header for %s is longer than %d octets; readers need not look at more than %d, "+
							"and what the site's own server adds must fit as well: name fewer crawlers one by one, or say it for everyone",
							p.Field, path, robotstag.WarnLength, robotstag.Limit),
					})
				case robotstag.TooLong:
					problems = append(problems, policy.Problem{
						Severity: policy.Error, Code: codeHeaderTooLarge, Pos: st.Pos,
						Message: fmt.Sprintf("the %s header for %s is longer than the %d octets that readers must look at, "+
							"and they would miss the rest of it: name fewer crawlers one by one, or say it for everyone",
							p.Field, path, robotstag.Limit),
					})
				}
			}
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
