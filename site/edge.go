// SPDX-License-Identifier: Apache-2.0

package site

import (
	"net/url"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Verdict is what the edge finds about a request.
type Verdict struct {
	Crawler  policy.CrawlerID // 0: no crawler that the policy knows
	Decision policy.Decision  // about crawling; empty where Crawler is 0
	Mode     policy.Mode      // what to do about the request, where Blocked
	Impostor bool             // Mode is that for impostors, and not that of Decision
	AnyCase  bool             // Decision disallows the path in another letter case only
}

// Blocked reports whether the policy objects to the request, whatever Mode says to do about it.
func (v Verdict) Blocked() bool { return v.Impostor || v.Decision.Verdict == policy.Disallowed }

// Purposes finds the purposes that the User-Agent lines of a request name and the
// policy speaks of, in lower case (draft-illyes-rep-purpose-00 section 2.1).
func (s *Site) Purposes(userAgents []string) (found []string) {
	if len(s.purposes) == 0 {
		return nil
	}
	for _, id := range s.purposeRecognizer.RecognizeEach(nil, userAgents) {
		found = append(found, s.purposes[id])
	}
	return found
}

// Edge is EdgeOf for a target that was not read yet: the query's host and path, as a client sends them.
func (s *Site) Edge(q policy.Query) Verdict {
	t := NewTarget(q.Host, q.Path)
	return s.EdgeOf(&t, q)
}

// EdgeOf decides about a request of a crawler for a target; the host, path and usage of the query are not looked at.
// The target is evaluated in every way in which servers may read them (see policy.OtherHost and
// pathpattern.Readings) and with and without letter case: crawling is disallowed if it is for one of them, and of
// several the one with the strictest mode decides. Only crawlers that the policy knows are ever blocked, and never
// /robots.txt, /.well-known/ and the license, from which they learn the rules. An impostor gets the mode for
// impostors where that is stricter.
func (s *Site) EdgeOf(sent *Target, q policy.Query) Verdict {
	v := Verdict{Crawler: q.Crawler}
	if q.Crawler == 0 {
		return v
	}
	t := s.read(sent)
	if s.open(t) {
		return v
	}
	q.Usage, q.Host, q.Path = policy.Crawl, t.Host, t.path
	v.Decision = s.Policy.Decide(q)
	if v.Decision.Verdict == policy.Disallowed {
		v.Mode = s.Policy.Mode(v.Decision)
	}
	if t.more != nil || t.other != "" || t.long || t.folds {
		v.evaluate(s, q, t)
	}
	if q.Identity == policy.Impostor {
		if mode := s.File.Spec.Enforcement.Impostors; mode > policy.ModeOff && mode > v.Mode {
			v.Mode, v.Impostor = mode, true
		}
	}
	return v
}

func (v *Verdict) evaluate(s *Site, q policy.Query, t target) {
	for p, q := range s.queries(t, q) {
		if d := p.Decide(q); d.Verdict == policy.Disallowed {
			v.AnyCase = p.anyCase && (v.AnyCase || v.Decision.Verdict != policy.Disallowed)
			if mode := s.Policy.Mode(d); v.Mode == policy.ModeUnset || mode > v.Mode {
				v.Decision, v.Mode = d, mode
			}
		}
	}
	if !t.long {
		return
	}
	v.evaluateLong(s, q)
	if t.other != "" {
		q.Host = t.other
		v.evaluateLong(s, q)
	}
}

// evaluateLong adds a prohibition that blocks, if there is any for the crawler.
func (v *Verdict) evaluateLong(s *Site, q policy.Query) {
	d := s.Policy.Strictest(q)
	if v.Mode < policy.ModeBlock && d.Verdict == policy.Disallowed && s.Policy.Mode(d) == policy.ModeBlock {
		v.Decision, v.Mode = d, policy.ModeBlock
	}
}

type license struct {
	host string // empty: on every host of the site
	path string // empty: nowhere on the site
}

// licenseOf reads the URL of the policy's license. A license at the root of a site does not open the root.
func licenseOf(text string) license {
	u, err := url.Parse(text)
	if err != nil || text == "" || u.EscapedPath() == "" || u.EscapedPath() == "/" {
		return license{}
	}
	return license{policy.NormalizeHost(u.Host), pathpattern.NormalizePath(u.EscapedPath())}
}

// RecognizeAll appends to ids the crawlers that the User-Agent lines of a request
// name, in the order in which they come, and returns the extended slice. Nearly
// every crawler names itself alone; one that names a second may hide behind it.
func (s *Site) RecognizeAll(ids []policy.CrawlerID, userAgents []string) []policy.CrawlerID {
	var buf [4]int
	for _, i := range s.recognizer.RecognizeEach(buf[:0], userAgents) {
		if i > 0 {
			ids = append(ids, policy.CrawlerID(i))
		}
	}
	return ids
}

// whoAsks returns the crawlers that an agent stands for: one by its product token, or those that a User-Agent names.
func (s *Site) whoAsks(agent string) []policy.CrawlerID {
	if id := s.Policy.Crawler(agent); id != 0 {
		return []policy.CrawlerID{id}
	}
	return s.RecognizeAll(nil, []string{agent})
}

// Client is a crawler that a request may be from, and what is known of its identity.
type Client struct {
	Crawler  policy.CrawlerID
	Identity policy.Identity
}

// EdgeOfAll decides about a request that several crawlers may have sent: the strictest of the decisions about each, and
// the first of equally strict ones. It returns the query that led to it, or q for no crawler.
func (s *Site) EdgeOfAll(t *Target, clients []Client, q policy.Query) (policy.Query, Verdict) {
	var strictest Verdict
	by := q
	for i, c := range clients {
		q.Crawler, q.Identity = c.Crawler, c.Identity
		if v := s.EdgeOf(t, q); i == 0 || v.Blocked() && (!strictest.Blocked() || v.Mode > strictest.Mode) {
			strictest, by = v, q
		}
	}
	return by, strictest
}
