// SPDX-License-Identifier: Apache-2.0

package site

import (
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Verdict is the server's decision about a request.
type Verdict = effect.Verdict

// Purposes finds the purposes that both the User-Agent lines of a request and the policy name,
// in lower case (draft-illyes-rep-purpose-00 section 2.1).
func (s *Site) Purposes(userAgents []string) (found []string) {
	if len(s.purposes) == 0 {
		return nil
	}
	for _, id := range s.purposeRecognizer.RecognizeEach(nil, userAgents) {
		found = append(found, s.purposes[id])
	}
	return found
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
