// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

var realCrawlers = []policy.Crawler{
	{Token: "Googlebot", Operator: "Google", Category: "search"},
	{Token: "Googlebot-Image", Operator: "Google", Category: "search", Follows: []string{"Googlebot"}},
	{Token: "Googlebot-News", Operator: "Google", Category: "search", Follows: []string{"Googlebot"}, RobotsOnly: true},
	{Token: "Google-Extended", Operator: "Google", Category: "ai-training", AI: true, RobotsOnly: true},
	{Token: "Bingbot", Operator: "Microsoft", Category: "search"},
	{Token: "Applebot", Operator: "Apple", Category: "search", Follows: []string{"Googlebot"}},
	{Token: "GPTBot", Operator: "OpenAI", Category: "ai-training", AI: true},
	{Token: "ChatGPT-User", Operator: "OpenAI", Category: "ai-assistant", AI: true},
	{Token: "OAI-SearchBot", Operator: "OpenAI", Category: "search", AI: true},
	{Token: "webzio", Operator: "Webz.io", Category: "none", AI: true},
	{Token: "ClaudeBot", Operator: "Anthropic", Category: "ai-training", AI: true},
	{Token: "CCBot", Operator: "Common Crawl", Category: "ai-training", AI: true},
	{Token: "AhrefsBot", Operator: "Ahrefs", Category: "seo"},
	{Token: "archive.org_bot", Operator: "Internet Archive", Category: "archive"},
}

// Each case is a goal of an author, the rules for it, and questions with the answers that the author wants. The answers
// were written before the rules were evaluated. A question has the form CRAWLER [USAGE:]PATH-or-//HOST/PATH, followed
// by "open" or "closed". For the two questions marked with "!", the author wanted "open", but the result is "closed".
// In these cases, loading the policy file results in a hint.
func TestIntentions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, rules, questions string }{
		{
			"all AI out, search stays",
			"category:ai: -crawl /",
			"GPTBot /x closed, OAI-SearchBot /x closed, ChatGPT-User /x closed, webzio /x closed, Google-Extended /x closed, Googlebot /x open, Bingbot /x open, AhrefsBot /x open, Unknown /x open",
		},
		{
			"all AI out, except assistants, and one search engine for AI",
			"category:ai: -crawl /\ncategory:ai-assistant: +crawl /\nOAI-SearchBot: +crawl /",
			"GPTBot /x closed, ChatGPT-User /x open, OAI-SearchBot /x open, webzio /x closed, Googlebot /x open",
		},
		{
			"all AI out, search engines may read news: those for AI stay out, because that does not say that they may",
			"category:ai: -crawl /\ncategory:search: +crawl /news/",
			"OAI-SearchBot /news/x closed, Googlebot /news/x open, GPTBot /news/x closed",
		},
		{
			"all AI out, whatever an operator's other crawlers may do",
			"category:ai: -crawl /\noperator:OpenAI: +crawl /",
			"GPTBot /x closed, OAI-SearchBot /x closed",
		},
		{
			"nothing for all, AI may read the press releases",
			"everyone: -crawl /\ncategory:ai: +crawl /press/",
			"GPTBot /press/x open, OAI-SearchBot /press/x open, Googlebot /press/x closed, GPTBot /x closed",
		},
		{
			"no training, AI may read the press releases, which says nothing of training",
			"category:ai-training: -crawl /\ncategory:ai: +crawl /press/",
			"GPTBot /press/x closed, OAI-SearchBot /press/x open",
		},
		{
			"members and staging closed to all, search in",
			"everyone: -crawl /members/\ncategory:search: +crawl /\neveryone@staging.example.com: -crawl /",
			"Googlebot /members/x closed, Googlebot /news open, Googlebot //staging.example.com/ closed, Unknown /members/ closed, Unknown /x open, GPTBot //staging.example.com/a closed",
		},
		{
			"a newspaper: administration closed, no training, search in",
			"everyone: -crawl /admin/; -crawl /api/; -crawl /search?q=\ncategory:ai-training: -crawl /\ncategory:search: +crawl /",
			"Googlebot /admin/ closed, Googlebot /news/ open, Googlebot /search?q=x closed, GPTBot /news/ closed, GPTBot /admin/ closed, Unknown /news/ open, Google-Extended /news/ closed",
		},
		{
			"only Googlebot",
			"everyone: -crawl /\nGooglebot: +crawl /",
			"Googlebot /x open, Bingbot /x closed, Googlebot-Image /x open, Unknown / closed, Googlebot /robots.txt open, Bingbot /robots.txt open, Applebot /x closed",
		},
		{
			"no PDF files, and reports for Googlebot, which says nothing of PDF files",
			"everyone: -crawl /*.pdf$\nGooglebot: +crawl /reports/",
			"Googlebot /reports/a.pdf closed, Googlebot /reports/a open, Googlebot /x.pdf closed, Bingbot /reports/a.pdf closed, Unknown /reports/a open",
		},
		{
			"the PDF files of reports for Googlebot",
			"everyone: -crawl /*.pdf$\nGooglebot: +crawl /reports/*.pdf$",
			"Googlebot /reports/a.pdf open, Googlebot /x.pdf closed, Bingbot /reports/a.pdf closed, Googlebot /reports/a open, Unknown /reports/a open",
		},
		{
			"a shop: no facets for anybody, nothing for SEO tools",
			"everyone: -crawl /cart; -crawl /checkout; -crawl /*?sort=; -crawl /*&sort=\ncategory:search: +crawl /products/\ncategory:seo: -crawl /",
			"Googlebot /products/?sort=up closed, Googlebot /products/a open, Googlebot /cart closed, AhrefsBot /products/ closed, Unknown /products/?sort=a closed, Googlebot /products/?a&sort=b closed",
		},
		{
			"style sheets for Googlebot, also of the closed application",
			"everyone: -crawl /app/\nGooglebot: +crawl /*.css$; +crawl /*.js$",
			"Googlebot /app/a.css !closed, Googlebot /app/x closed, Bingbot /app/a.css closed, Googlebot /a.css open, Unknown /a.css open",
		},
		{
			"WordPress",
			"everyone: -crawl /wp-admin/; +crawl /wp-admin/admin-ajax.php\ncategory:ai-training: -crawl /",
			"Googlebot /wp-admin/admin-ajax.php open, Googlebot /wp-admin/x closed, GPTBot /wp-admin/admin-ajax.php closed, Unknown / open, GPTBot / closed",
		},
		{
			"nothing for Google, news for search engines",
			"operator:Google: -crawl /\ncategory:search: +crawl /news/",
			"Googlebot /news/a closed, Googlebot /x closed, Bingbot /news/a open, Google-Extended /news/ closed, Bingbot /x open",
		},
		{
			"no training, but OpenAI may read the press pages",
			"category:ai-training: -crawl /\noperator:OpenAI: +crawl /press/",
			"GPTBot /press/x !closed, GPTBot /x closed, ClaudeBot /press/ closed, ChatGPT-User /x open",
		},
		{
			"news for Google, no training",
			"operator:Google: +crawl /news/\ncategory:ai-training: -crawl /",
			"Googlebot /news/ open, Google-Extended /news/ closed, GPTBot /news/ closed, Google-Extended /x closed",
		},
		{
			"only www of many hosts",
			"everyone@*.example.com: -crawl /\neveryone@www.example.com: +crawl /",
			"Googlebot //www.example.com/ open, Googlebot //dev.example.com/ closed, Unknown //a.b.example.com/ closed, GPTBot //www.example.com/x open",
		},
		{
			"GPTBot stays out of the open host too",
			"GPTBot: -crawl /\neveryone@open.example.com: +crawl /",
			"GPTBot //open.example.com/ closed, Googlebot //open.example.com/ open, GPTBot / closed, Unknown / open",
		},
		{
			"training with the data host only",
			"category:ai-training: -crawl /\ncategory:ai-training@data.example.com: +crawl /",
			"GPTBot //data.example.com/ open, GPTBot / closed, Googlebot / open, CCBot //data.example.com/x open",
		},
		{
			"the intranet for a partner, but for its administration",
			"everyone@intra.example.com: -crawl /\nPartnerBot@intra.example.com: +crawl /\neveryone: -crawl /admin/",
			"PartnerBot //intra.example.com/x open, PartnerBot //intra.example.com/admin/ closed, Googlebot //intra.example.com/x closed, PartnerBot /x open, PartnerBot /admin/ closed",
		},
		{
			"archives may preserve what is public",
			"everyone: -crawl /paid/; -preserve /paid/\ncategory:archive: +preserve /\nPartnerBot: +crawl /paid/",
			"archive.org_bot preserve:/paid/a closed, archive.org_bot preserve:/x open, PartnerBot /paid/a open, Googlebot /paid/a closed, archive.org_bot /paid/a closed",
		},
		{
			"an imported file: Google and Bing, and nobody else",
			"everyone-else: -crawl /\nGooglebot: +crawl /; -crawl /search\nBingbot: -crawl /search; +crawl /",
			"Googlebot /x open, Googlebot /search closed, Bingbot /x open, Unknown /x closed, Googlebot-Image /search closed, Googlebot-Image /x open",
		},
		{
			"everyone else out, Googlebot in on one host",
			"everyone-else: -crawl /\nGooglebot@news.example.com: +crawl /",
			"Googlebot //news.example.com/ open, Googlebot //www.example.com/ closed, Unknown //news.example.com/ closed",
		},
		{
			"overlapping wildcards",
			"everyone: -crawl /*/private/\nGooglebot: +crawl /*/docs/",
			"Googlebot /a/docs/private/x closed, Googlebot /a/private/docs/x closed, Googlebot /a/docs/ open, Bingbot /a/private/ closed, Googlebot /a/private/ closed",
		},
		{
			"a member section with a landing page and a free part",
			"everyone: -crawl /members/; +crawl /members/$\nGooglebot: +crawl /members/free/",
			"Unknown /members/ open, Unknown /members/a closed, Googlebot /members/free/a open, Googlebot /members/a closed, Bingbot /members/free/a closed",
		},
		{
			"one host opens a path",
			"everyone: -crawl /tmp/\neveryone@www.example.com: +crawl /tmp/",
			"Googlebot //www.example.com/tmp/a open, Googlebot //x.example.com/tmp/ closed, GPTBot //www.example.com/tmp/ open",
		},
		{
			"/* is /",
			"everyone: -crawl /a/\ncategory:search: +crawl /*",
			"Googlebot /a/x closed, Googlebot /b open, Unknown /a/x closed",
		},
		{
			"drafts are not indexed",
			"everyone: -index /drafts/\ncategory:search: +index /",
			"Googlebot index:/drafts/a closed, Googlebot index:/x open, Bingbot index:/drafts/ closed, Unknown index:/drafts/ closed",
		},
		{
			"no images for Google, the private section for Googlebot",
			"everyone: -crawl /private/\nGooglebot-Image: -crawl /\nGooglebot: +crawl /private/",
			"Googlebot /private/ open, Googlebot-Image /x closed, Googlebot-Image /private/ closed, Googlebot-News /private/ open, Bingbot /private/ closed",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := spec(t, c.rules)
			s.Crawlers = realCrawlers
			p := policy.Compile(s)
			for asked := range strings.SplitSeq(c.questions, ", ") {
				f := strings.Fields(asked)
				q := policytest.Question{Token: f[0], Path: f[1], Host: "any.example.org", Now: policytest.Now}
				if name, path, ok := strings.Cut(f[1], ":"); ok {
					q.Usage, _ = policy.ParseUsage(name)
					q.Path = path
				}
				if rest, ok := strings.CutPrefix(q.Path, "//"); ok {
					q.Host, q.Path, _ = strings.Cut(rest, "/")
					q.Path = "/" + q.Path
				}
				d := p.Decide(queryOf(p, q))
				if closed := d.Verdict == policy.Disallowed; closed != strings.HasSuffix(f[2], "closed") {
					t.Errorf("%s: %v by %+v", asked, d.Verdict, d.Statement)
				}
				if a := policytest.Decide(s, q); a.Verdict != d.Verdict {
					t.Errorf("%s: the naive evaluator says %v", asked, a.Verdict)
				}
			}
		})
	}
}
