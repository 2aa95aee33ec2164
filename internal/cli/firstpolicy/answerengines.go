// SPDX-License-Identifier: Apache-2.0

package firstpolicy

import (
	"fmt"
	"io"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// answerEngines are the search engines of the built-in catalogue that feed AI answers, the
// best known first: without those, such as Googlebot, that feed AI training as well, which
// a site loses only with their search.
func answerEngines() (tokens []string) {
	c, err := crawlers.Default()
	if err != nil {
		return nil
	}
	for _, crawler := range c.OfKind(crawlers.KindSearch) {
		if crawler.Is(crawlers.KindAIInput) && !crawler.Is(crawlers.KindAITraining) && !crawler.RobotsOnly {
			tokens = append(tokens, crawler.Token)
		}
	}
	crawlers.SortWellKnown(tokens)
	return tokens
}

func (a Answers) refusesAnswerEngines() bool { return a.AIAnswers == No && a.AISearch == No }

// writeAnswerEngines says which search engines may read a site that does not want AI
// answers, and what keeps them out.
func writeAnswerEngines(w io.Writer, s *site.Site, a Answers, q policy.Query) error {
	if a.AIAnswers != No {
		return nil
	}
	q.Usage = policy.Crawl
	var may []string
	for _, token := range answerEngines() {
		q.Crawler = s.Policy.Crawler(token)
		if s.Policy.Decide(q).Verdict != policy.Disallowed {
			may = append(may, token)
		}
	}
	if len(may) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, `
%s may still read: they feed AI answers, but mainly are search engines.
To refuse one, add to the rules:
  - for: %s
    disallow: {crawl: /}
    enforce: block
    intended: [refuses-search]
To refuse all of them, run init again with --ai-search no. Google and Bing feed AI answers too, and can
only be refused with their search.
`, english.Some(may, 4), may[0])
	return err
}
