// SPDX-License-Identifier: Apache-2.0

package site

import "github.com/robotspolicy/caddy-robots-policy/policy"

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

// whoAsks returns the crawlers that an agent stands for: one by its product token, or
// those that a User-Agent names.
func (s *Site) whoAsks(agent string) []policy.CrawlerID {
	if id := s.Policy.Crawler(agent); id != 0 {
		return []policy.CrawlerID{id}
	}
	return s.RecognizeAll(nil, []string{agent})
}

// EdgeOfAll decides about a request that names several crawlers: the strictest of
// the decisions about each, and the first of equally strict ones. It returns the
// query that led to it, or q for no crawler. identify verifies the client as one of
// them.
func (s *Site) EdgeOfAll(ids []policy.CrawlerID, q policy.Query, identify func(policy.CrawlerID) policy.Identity) (policy.Query, Verdict) {
	var strictest Verdict
	by := q
	for i, id := range ids {
		q.Crawler, q.Identity = id, identify(id)
		if v := s.Edge(q); i == 0 || v.Refused() && (!strictest.Refused() || v.Mode > strictest.Mode) {
			strictest, by = v, q
		}
	}
	return by, strictest
}
