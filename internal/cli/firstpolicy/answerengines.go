// SPDX-License-Identifier: Apache-2.0

package firstpolicy

import (
	"fmt"
	"io"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// answerEngines are the search engines of the built-in catalog that feed AI answers, the best
// known first. Those that feed AI training as well, such as Googlebot, are left out, because a
// site can only lose them together with their search.
func answerEngines() []string {
	return searchers(func(c *crawlers.Crawler) bool {
		return c.Is(crawlers.CategoryAIInput) && !c.Is(crawlers.CategoryAITraining)
	})
}

// imageCrawlers are those of search engines that collect only images, without names that
// readers of robots.txt cut at a space.
func imageCrawlers() []string {
	return searchers(func(c *crawlers.Crawler) bool {
		return strings.Contains(strings.ToLower(c.Token), "image") && !strings.Contains(c.Token, " ")
	})
}

func searchers(which func(*crawlers.Crawler) bool) (tokens []string) {
	c, _ := crawlers.Default() // what is built in is valid
	for _, crawler := range c.OfCategory(crawlers.CategorySearch) {
		if which(crawler) && !crawler.RobotsOnly {
			tokens = append(tokens, crawler.Token)
		}
	}
	crawlers.SortWellKnown(tokens)
	return tokens
}

// writeAnswerEngines says which search engines may read a site that does not want AI
// answers, and what keeps them out.
func (b *Built) writeAnswerEngines(w io.Writer, q policy.Query) error {
	if b.answers.To[AIAnswers] != No {
		return nil
	}
	q.Usage = policy.Crawl
	var may []string
	for _, token := range answerEngines() {
		q.Crawler = b.Site.Policy.Crawler(token)
		if b.Site.Policy.Decide(q).Verdict != policy.Disallowed {
			may = append(may, token)
		}
	}
	if len(may) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, `
%s may still read:
they feed AI answers, but mainly are search engines. To block them, run init again with
--ai-search no. Google and Bing feed AI answers too, and can only be blocked with their search.
`, english.Some(may, 4))
	return err
}
