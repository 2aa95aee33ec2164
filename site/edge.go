// SPDX-License-Identifier: Apache-2.0

package site

import (
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Verdict is the server's decision about a request.
type Verdict = effect.Verdict

// Purposes returns the purposes of a request, in lower case. It finds them in the User-Agent lines of the request
// (draft-illyes-rep-purpose-00 section 2.1), but only if the policy also mentions them.
func (s *Site) Purposes(userAgents []string) (found []string) {
	if len(s.purposes) == 0 {
		return nil
	}
	for _, id := range s.purposeRecognizer.RecognizeEach(nil, userAgents) {
		found = append(found, s.purposes[id])
	}
	return found
}

// RecognizeAll appends the crawlers that the User-Agent lines of a request name to ids, in the order of the lines, and
// returns the extended slice. Nearly every crawler only names itself. A client that names a second crawler may want to
// hide behind that name.
func (s *Site) RecognizeAll(ids []policy.CrawlerID, userAgents []string) []policy.CrawlerID {
	var buf [4]int
	for _, i := range s.recognizer.RecognizeEach(buf[:0], userAgents) {
		if i > 0 {
			ids = append(ids, policy.CrawlerID(i))
		}
	}
	return ids
}

// whoAsks returns the crawlers that an agent means. If agent is a product token, this is one crawler. Otherwise agent
// is a User-Agent, which may name several.
func (s *Site) whoAsks(agent string) []policy.CrawlerID {
	if id := s.Policy.Crawler(agent); id != 0 {
		return []policy.CrawlerID{id}
	}
	return s.RecognizeAll(nil, []string{agent})
}
