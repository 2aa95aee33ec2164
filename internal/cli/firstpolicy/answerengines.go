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

// answerEngines returns the search engines of the built-in catalog that feed AI answers, the best known first. It omits
// search engines that also feed AI training, such as Googlebot. If a site disallowed Googlebot, it would no longer be
// in Google's search results.
func answerEngines() []string {
	return searchers(func(c *crawlers.Crawler) bool {
		return c.Is(crawlers.CategoryAIInput) && !c.Is(crawlers.CategoryAITraining)
	})
}

// imageCrawlers returns the search engines' crawlers that collect only images. It omits names with a space, because
// parsers of robots.txt would truncate such names.
func imageCrawlers() []string {
	return searchers(func(c *crawlers.Crawler) bool {
		return strings.Contains(strings.ToLower(c.Token), "image") && !strings.Contains(c.Token, " ")
	})
}

func searchers(which func(*crawlers.Crawler) bool) (tokens []string) {
	c, _ := crawlers.Default() // the built-in catalog is valid
	for _, crawler := range c.OfCategory(crawlers.CategorySearch) {
		if which(crawler) && !crawler.RobotsOnly {
			tokens = append(tokens, crawler.Token)
		}
	}
	crawlers.SortWellKnown(tokens)
	return tokens
}

// writeAnswerEngines writes which AI search engines may still read the site, and how to disallow them. It writes this
// only if the user does not want AI answers.
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
%s may still read the site.
They are mainly search engines, but AI answers also use their results. To block them, run
init again with --ai-search no. Google and Bing also use your pages for AI answers, but you
can block them only together with their search.
`, english.Some(may, 4))
	return err
}
