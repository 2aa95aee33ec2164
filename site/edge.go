// SPDX-License-Identifier: Apache-2.0

package site

import (
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Verdict is what the edge finds about a request.
type Verdict struct {
	Crawler  policy.CrawlerID // 0: no crawler that the policy knows
	Decision policy.Decision  // about crawling; not asked for where Crawler is 0
	Mode     policy.Mode      // what to do, where Decision disallows
}

// Refused reports whether the policy disallows the request, whatever is to be
// done about it.
func (v Verdict) Refused() bool { return v.Decision.Verdict == policy.Disallowed }

// Recognize finds the crawler that the User-Agent lines of a request name, or 0.
func (s *Site) Recognize(userAgents []string) policy.CrawlerID {
	i, _ := s.recognizer.RecognizeAll(userAgents)
	return policy.CrawlerID(i)
}

// Edge decides about a request of a crawler. The path is judged as it was sent
// and as servers tidy it (see pathpattern.Clean): it is disallowed if either is.
// Only crawlers that the policy knows are ever refused, and never /robots.txt,
// /.well-known/ and the licence, by which they learn the rules.
func (s *Site) Edge(crawler policy.CrawlerID, host, path string, now time.Time) Verdict {
	v := Verdict{Crawler: crawler}
	if crawler == 0 || s.open(path) {
		return v
	}
	q := policy.Query{Crawler: crawler, Host: host, Path: path, Usage: policy.Crawl, Now: now}
	v.Decision = s.Policy.Decide(q)
	if !v.Refused() {
		if clean := pathpattern.Clean(path); clean != path {
			q.Path = clean
			if d := s.Policy.Decide(q); d.Verdict == policy.Disallowed {
				v.Decision = d
			}
		}
	}
	if v.Refused() {
		v.Mode = s.Policy.Mode(v.Decision)
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
