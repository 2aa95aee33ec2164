// SPDX-License-Identifier: Apache-2.0

package firstpolicy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/cli/policyinput"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// builder creates the Spec of a policy from answers.
type builder struct {
	answers      Answers
	spec         *policy.Spec
	comments     map[int]string
	lineComments map[int]string
}

// ErrContradictory means that the answers contradict each other, so that a policy cannot satisfy all of them.
var ErrContradictory = errors.New("the answers contradict each other")

// Contradiction is a test that fails because an existing robots.txt and an answer of the user contradict each other.
// The test is left out of the policy.
type Contradiction struct {
	Test     string
	Instead  string // the actual decision with its line: "GPTBot may crawl /, because of line 38"
	Answered bool   // true if robots.txt overrides the answers; false if an answer overrides robots.txt
}

// Built holds a policy that was made from answers.
type Built struct {
	Text           []byte
	Site           *site.Site
	Contradictions []Contradiction
	Notes          []robotstxt.Note // notes about the existing robots.txt
	answers        Answers          // the answers, with defaults
}

// Build creates the policy for the answers. The rules and tests from an existing robots.txt come first, with the
// comments of that file.
func Build(a Answers) (*Built, error) {
	a, err := a.complete()
	if err != nil {
		return nil, err
	}
	b, err := build(a, nil)
	switch {
	case err != nil:
		return b, err
	case len(b.Contradictions) > 0:
		return b, fmt.Errorf("%w: a policy with all these answers fails its test \"%s\"; leave out the path or host that causes this", ErrContradictory, b.Contradictions[0].Test)
	case a.Robots == nil:
		return b, nil
	}
	c, err := policyinput.Convert(a.From, a.Robots)
	if err != nil {
		return nil, err
	}
	b, err = build(a, c.Imported)
	b.Notes = c.Notes
	return b, err
}

func build(a Answers, imported *robotstxt.Imported) (*Built, error) {
	empty, _ := policyfile.Load("an empty policy", []byte("version: 1\n"))
	b := &builder{answers: a, spec: &policy.Spec{Publish: empty.Spec.Publish}, comments: map[int]string{}}
	tests := 0 // number of tests from the robots.txt
	if imported != nil {
		b.spec, b.lineComments = imported.Spec, imported.LineComments
		tests = len(b.spec.Expect)
		maps.Copy(b.comments, imported.Comments)
		for _, f := range rights.Vocabularies {
			if f.On(&empty.Spec.Publish) {
				f.Switch(&b.spec.Publish)
			}
		}
		if a.To[Training] == No || a.To[AIAnswers] == No {
			b.spec.Publish.Controls = empty.Spec.Publish.Controls
		}
		if len(b.spec.Rules) > 0 {
			b.comments[0] = strings.TrimSpace("From " + a.From + ".\n" + b.comments[0])
		}
	}
	for t, answer := range a.To {
		switch answer {
		case Yes:
			b.yes(Topic(t))
		case No:
			b.no(Topic(t))
		case Unanswered:
		}
	}
	b.closed()
	b.staging()
	built := &Built{answers: a}
	for {
		built.Text = policyfile.PrintWith(b.spec, policyfile.PrintOptions{Header: b.header(), Comments: b.comments, LineComments: b.lineComments})
		var ds policyfile.Diagnostics
		if built.Site, ds = site.Load("the new policy", built.Text); built.Site != nil {
			return built, nil
		}
		failed, instead := b.failedTest(ds)
		if failed < 0 {
			return built, fmt.Errorf("the policy does not load:\n%w", ds)
		}
		built.Contradictions = append(built.Contradictions, Contradiction{Test: b.spec.Expect[failed].String(), Instead: instead, Answered: failed >= tests})
		b.spec.Expect = slices.Delete(b.spec.Expect, failed, failed+1)
		if failed < tests {
			tests--
		}
	}
}

// failedTest returns the index of the first test that fails, and the actual decision. The index is -1 if the
// diagnostics ds do not contain a failed test.
func (b *builder) failedTest(ds policyfile.Diagnostics) (i int, instead string) {
	for _, d := range ds {
		for i, e := range b.spec.Expect {
			if d.Code == "expectation-failed" && strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(d.Line), "- ")) == e.String() {
				_, instead, _ = strings.Cut(d.Message, ", but ")
				return i, instead
			}
		}
	}
	return -1, ""
}

func (b *builder) header() string {
	lines := []string{
		policyinput.Modeline, "", "Rules for crawlers on " + cmp.Or(b.answers.Host, "this site") + ".",
		"After a change, run: caddy robots-policy check FILE",
		"To reject changes that take pages away from search engines, write max_search_loss 0 under activity in the Caddyfile",
	}
	if len(b.spec.Sitemaps) == 0 {
		lines = append(lines, "If the site has a sitemap, name it here: sitemaps: /sitemap.xml")
	}
	return strings.Join(lines, "\n")
}

// rule appends a rule with a comment.
func (b *builder) rule(comment string, r policy.Rule) {
	b.comments[len(b.spec.Rules)] = comment
	b.spec.Rules = append(b.spec.Rules, r)
}

// expect appends a test for a path on a host. If host is "", the test must pass on every host (see policy.Expectation).
func (b *builder) expect(agent string, allowed bool, u policy.Usage, host, path string) {
	b.spec.Expect = append(b.spec.Expect, policy.Expectation{
		Anyone: true, Agent: policy.ParseAudience(agent), Allowed: allowed, Usage: u, Host: host, Path: path,
	})
}

// yes appends the rules and tests for a topic with the answer yes.
func (b *builder) yes(t Topic) {
	host := b.answers.siteHost()
	may := func(agent string, u policy.Usage) { b.expect(agent, true, u, host, "/") }
	switch t {
	case Search:
		if b.answers.To[AIAnswers] == No || b.answers.To[Images] == No { // not every crawler of the category is allowed
			may("Googlebot", policy.Crawl)
			may("Bingbot", policy.Crawl)
		} else {
			may("category:search", policy.Crawl)
		}
		may("category:search", policy.Index)
	case Training:
		b.rule("AI may be trained with this site.", policy.Rule{
			Name: "AI training", For: everyone(), Statements: wholeSite(true, policy.TrainAI),
		})
		may("category:ai-training", policy.Crawl)
	case Rights:
		channels.Reserving()[0].Switch(&b.spec.Publish)
	case AIAnswers:
		may("category:ai-input", policy.Crawl)
		may("category:ai-assistant", policy.Crawl)
	case AISearch:
		if b.answers.To[AIAnswers] == No {
			may(answerEngines()[0], policy.Crawl)
		}
	case Images:
		may("Googlebot-Image", policy.Crawl)
	case Archives:
		may("category:archive", policy.Crawl)
	case Previews:
		may("category:preview", policy.Crawl)
	}
}

// no appends the rules and tests for a topic with the answer no.
func (b *builder) no(t Topic) {
	mayNot := func(agent string, u policy.Usage) { b.expect(agent, false, u, "", "/") }
	refuse := func(comment, name string, guard []string, who ...policy.Audience) {
		b.rule(comment, policy.Rule{Name: name, For: who, Statements: wholeSite(false, policy.Crawl), Enforce: policy.ModeBlock, IntendedChecks: guard})
	}
	switch t {
	case Search:
		b.rule("Search engines must not list the site. They may read its pages: only a crawler that\nreads a page can see that the page must not be listed.", policy.Rule{
			Name: "not in search engines", For: everyone(), Statements: wholeSite(false, policy.Index, policy.Search),
			IntendedChecks: []string{"site-not-indexed"},
		})
		mayNot("everyone", policy.Index)
	case Training:
		b.rule("No AI training. This rule is for all crawlers, including search engines.", policy.Rule{
			Name: "no AI training", For: everyone(), Statements: wholeSite(false, policy.TrainAI),
		})
		if !b.closesAI() {
			refuse("Crawlers that collect pages mainly for AI training are blocked. Without the line\n\"enforce: block\", robots.txt only asks them to stay away.",
				"crawlers for AI training", nil, category(crawlers.CategoryAITraining)...)
		}
		mayNot("category:ai-training", policy.Crawl)
		mayNot("everyone", policy.TrainAI)
	case AIAnswers:
		b.rule("AI products may not use the contents of this site to answer questions.", policy.Rule{
			Name: "no AI answers", For: everyone(), Statements: wholeSite(false, policy.AIUse),
		})
		if !b.closesAI() {
			refuse("This rule blocks crawlers that collect pages for AI answers, and assistants that fetch a page\nbecause someone asks about it. Many assistants do not obey robots.txt.",
				"crawlers for AI answers", nil, category(crawlers.CategoryAIInput, crawlers.CategoryAIAssistant)...)
		}
		mayNot("category:ai-input", policy.Crawl)
		mayNot("category:ai-assistant", policy.Crawl)
		mayNot("everyone", policy.AIUse)
	case AISearch:
		if b.closesAI() {
			refuse("Every crawler for AI is blocked: crawlers for training and for answers, assistants, agents,\nand search engines that feed AI answers. Without the line \"enforce: block\", robots.txt only\nasks them to stay away. Google and Bing also feed AI answers. But if you block their\ncrawlers, the pages also drop out of Google's and Bing's search results.",
				"crawlers for AI", []string{"blocks-search"}, policy.ParseAudience("category:ai"))
			mayNot(answerEngines()[0], policy.Crawl)
			return
		}
		refuse("This rule blocks search engines that feed AI answers. Google and Bing also feed them.\nBut if you block their crawlers, the pages also drop out of Google's and Bing's search results.",
			"search engines that feed AI answers", []string{"blocks-search"}, tokens(answerEngines())...)
		mayNot(answerEngines()[0], policy.Crawl)
	case Images:
		b.rule("Image search does not show the pictures: crawlers for image search may not\ncrawl, and everyone is asked not to show small images of the pages.", policy.Rule{
			Name: "no image search", For: tokens(imageCrawlers()), Statements: wholeSite(false, policy.Crawl), IntendedChecks: []string{"disallows-search"},
		})
		b.rule("", policy.Rule{Name: "no small images", For: everyone(), Statements: wholeSite(false, policy.PresentThumbnail)})
		mayNot("Googlebot-Image", policy.Crawl)
		mayNot("everyone", policy.PresentThumbnail)
	case Archives:
		refuse("No copies in archives.", "archives", nil, category(crawlers.CategoryArchive)...)
		mayNot("category:archive", policy.Crawl)
	case Previews:
		refuse("No previews of links in messengers and social networks.", "link previews", []string{"blocks-search"}, category(crawlers.CategoryPreview)...)
		mayNot("category:preview", policy.Crawl)
	case Rights:
	}
}

// closesAI reports whether the answers disallow the site for all AI crawlers.
func (b *builder) closesAI() bool {
	to := &b.answers.To
	return to[Training] == No && to[AIAnswers] == No && to[AISearch] == No
}

func (b *builder) closed() {
	if len(b.answers.Closed) == 0 {
		return
	}
	var statements []policy.Statement
	for _, p := range b.answers.Closed {
		statements = append(statements, policy.Statement{Usage: policy.Crawl, Pattern: p})
		path := strings.TrimSuffix(strings.ReplaceAll(p.String(), "*", "x"), "$")
		b.expect("everyone", false, policy.Crawl, "", path)
	}
	b.rule("Parts that no crawler may read. This keeps honest crawlers out. Content that\nmust stay secret also needs a login.", policy.Rule{
		Name: "disallowed for crawlers", For: everyone(), Statements: statements,
	})
}

func (b *builder) staging() {
	a := b.answers
	if len(a.Staging) == 0 {
		return
	}
	usages := []policy.Usage{policy.Follow}
	if a.To[Search] != No {
		usages = append([]policy.Usage{policy.Index}, usages...)
	}
	if a.To[Training] != No {
		usages = append(usages, policy.TrainAI)
	}
	b.rule("Staging hosts must not be found. Crawlers may read their pages, because a crawler has to\nread a page to see that the page must not be listed. Pages that must stay secret need a login.", policy.Rule{
		Name: "staging", For: everyone(), Hosts: a.Staging, Statements: wholeSite(false, usages...),
	})
	for _, h := range a.Staging {
		b.expect("everyone", false, policy.Index, exampleOf(h), "/")
	}
}

// exampleOf returns a host that matches a host pattern.
func exampleOf(h policy.Host) string { return strings.Replace(string(h), "*", "www", 1) }

func everyone() []policy.Audience { return []policy.Audience{{Kind: policy.ForEveryone}} }

func category(kinds ...crawlers.Category) (as []policy.Audience) {
	for _, k := range kinds {
		as = append(as, policy.Audience{Kind: policy.ForCategory, Name: string(k)})
	}
	return as
}

func tokens(names []string) (as []policy.Audience) {
	for _, name := range names {
		as = append(as, policy.Audience{Kind: policy.ForToken, Name: name})
	}
	return as
}

// wholeSite returns statements that allow or disallow usages of every path.
func wholeSite(allow bool, usages ...policy.Usage) (statements []policy.Statement) {
	for _, u := range usages {
		statements = append(statements, policy.Statement{Allow: allow, Usage: u, Pattern: pathpattern.All})
	}
	return statements
}
