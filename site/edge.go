// SPDX-License-Identifier: Apache-2.0

package site

import (
	"net/url"
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

// MaxPath is how many octets of a request target are compared with patterns. The
// edge takes a longer one for a path that is blocked, if any is to the crawler;
// pages under it carry the strictest rules there are.
const MaxPath = 16 << 10

// Edge decides about a request of a crawler; the query's usage is not looked at.
// The path is judged in every way in which servers may read it (see
// pathpattern.Readings): it is disallowed if one of them is, and of several the one
// decides about which most is done. Only crawlers that
// the policy knows are ever refused, and never /robots.txt, /.well-known/ and the
// licence, by which they learn the rules. Where the policy is milder about what
// it disallows than about impostors, an impostor is met as one.
func (s *Site) Edge(q policy.Query) Verdict {
	v := Verdict{Crawler: q.Crawler}
	if q.Crawler == 0 {
		return v
	}
	readings, n := pathpattern.Readings(q.Path)
	if s.open(q.Host, readings[:n]) {
		return v
	}
	for i, path := range readings[:n] {
		q.Path = path
		d := s.mayCrawl(q)
		switch disallowed := d.Verdict == policy.Disallowed; {
		case disallowed && (v.Mode == policy.ModeUnset || s.Policy.Mode(d) > v.Mode):
			v.Decision, v.Mode = d, s.Policy.Mode(d)
		case i == 0:
			v.Decision = d
		}
	}
	if q.Identity == policy.Impostor {
		if most := s.File.Spec.Enforcement.Impostors; most > policy.ModeOff && most > v.Mode {
			v.Mode, v.Impostor = most, true
		}
	}
	return v
}

// mayCrawl decides about crawling one reading of a path.
func (s *Site) mayCrawl(q policy.Query) policy.Decision {
	q.Usage = policy.Crawl
	if len(q.Path) <= MaxPath {
		return s.Policy.Decide(q)
	}
	q.Path = q.Path[:MaxPath]
	if d := s.Policy.Decide(q); d.Verdict == policy.Disallowed {
		return d
	}
	class := s.Policy.ClassOf(q.Crawler, q.Host)
	for _, purpose := range append(q.Purposes, "") {
		for _, layer := range s.Policy.Layers(&class, policy.Crawl, purpose) {
			for _, ref := range layer.Statements {
				d := policy.Decision{Verdict: policy.Disallowed, Rule: ref.Rule, Statement: ref.Statement}
				if !ref.Statement.Allow && s.Policy.Mode(d) == policy.ModeBlock {
					return d
				}
			}
		}
	}
	return s.Policy.Decide(q)
}

// open reports whether a path is open to every crawler, in whichever way it is
// read.
func (s *Site) open(host string, readings []string) bool {
	for _, path := range readings {
		name, _, _ := strings.Cut(path, "?")
		switch {
		case name == "/robots.txt", strings.HasPrefix(name, "/.well-known/"):
		case s.licence.path != "" && name == s.licence.path && (s.licence.host == "" || policy.NormalizeHost(host) == s.licence.host):
		default:
			return false
		}
	}
	return true
}

// licence is where the licence of the policy lies.
type licence struct {
	host string // empty: on every host of the site
	path string // empty: nowhere on the site
}

// licenceOf reads the URL of the policy's licence. The root of a site is no
// document of its own: it is not opened.
func licenceOf(text string) licence {
	u, err := url.Parse(text)
	if err != nil || text == "" || u.EscapedPath() == "" || u.EscapedPath() == "/" {
		return licence{}
	}
	return licence{policy.NormalizeHost(u.Host), pathpattern.NormalizePath(u.EscapedPath())}
}
