// SPDX-License-Identifier: Apache-2.0

package site

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Verdict is what the edge finds about a request.
type Verdict struct {
	Crawler  policy.CrawlerID // 0: no crawler that the policy knows
	Decision policy.Decision  // about crawling; not asked for where Crawler is 0
	Mode     policy.Mode      // what to do about it, where Refused
	// Impostor is true where Mode is what the policy says about impostors, and
	// not about what Decision disallows.
	Impostor bool
}

// Refused reports whether the policy has something against the request, whatever
// is to be done about it.
func (v Verdict) Refused() bool { return v.Impostor || v.Decision.Verdict == policy.Disallowed }

// Recognize finds the crawler that the User-Agent lines of a request name, or 0.
func (s *Site) Recognize(userAgents []string) policy.CrawlerID {
	i, _ := s.recognizer.RecognizeAll(userAgents)
	return policy.CrawlerID(i)
}

// Purposes finds the purposes that the User-Agent lines of a request name and the
// policy speaks of, in lower case (draft-illyes-rep-purpose-00 section 2.1).
func (s *Site) Purposes(userAgents []string) (found []string) {
	if len(s.purposes) == 0 {
		return nil
	}
	var ids []int
	for _, line := range userAgents {
		ids = s.purposeRecognizer.RecognizeMany(ids, line)
	}
	for _, id := range ids {
		found = append(found, s.purposes[id])
	}
	return found
}

// Edge decides about a request of a crawler; the query's usage is not looked at.
// The path is judged as it was sent and as servers tidy it (see
// pathpattern.Clean): it is disallowed if either is. Only crawlers that the policy
// knows are ever refused, and never /robots.txt, /.well-known/ and the licence, by
// which they learn the rules. Where the policy is milder about what it disallows
// than about impostors, an impostor is met as one.
func (s *Site) Edge(q policy.Query) Verdict {
	v := Verdict{Crawler: q.Crawler}
	if q.Crawler == 0 || s.open(q.Path) {
		return v
	}
	q.Usage = policy.Crawl
	v.Decision = s.Policy.Decide(q)
	if !v.Refused() {
		if clean := pathpattern.Clean(q.Path); clean != q.Path {
			q.Path = clean
			if d := s.Policy.Decide(q); d.Verdict == policy.Disallowed {
				v.Decision = d
			}
		}
	}
	if v.Refused() {
		v.Mode = s.Policy.Mode(v.Decision)
	}
	if most := s.File.Spec.Enforcement.Impostors; q.Identity == policy.Impostor && most > policy.ModeOff && most > v.Mode {
		v.Mode, v.Impostor = most, true
	}
	return v
}

// open reports whether a path is open to every crawler.
func (s *Site) open(path string) bool {
	name := path
	if i := strings.IndexByte(path, '?'); i >= 0 {
		name = path[:i]
	}
	if name == "/robots.txt" || s.licence != "" && name == s.licence {
		return true
	}
	// A path that is tidied away from under /.well-known/ is not open.
	return strings.HasPrefix(name, "/.well-known/") && pathpattern.Clean(name) == name
}
