// SPDX-License-Identifier: Apache-2.0

package firstpolicy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/cli/policyinput"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// builder makes the Spec of a policy from answers.
type builder struct {
	answers      Answers
	spec         *policy.Spec
	comments     map[int]string
	lineComments map[int]string
}

// ErrContradictory: no policy says what all answers say.
var ErrContradictory = errors.New("the answers contradict each other")

// Contradiction is a test on which an existing robots.txt and the answers disagree, and which
// the policy leaves out.
type Contradiction struct {
	Test     string
	Instead  string // what holds, with the line: "GPTBot may crawl /, by line 38"
	Answered bool   // the answers want it, and robots.txt stays; otherwise an answer overrides robots.txt
}

// Build returns the text of the policy for the answers. imported is the policy of
// an existing robots.txt, or nil; its rules and tests come first, with its comments.
func Build(a Answers, imported *robotstxt.Imported) (text []byte, s *site.Site, contradictions []Contradiction, err error) {
	a = a.withDefaults()
	if err := a.checkStaging(); err != nil {
		return nil, nil, nil, err
	}
	text, s, contradictions, err = build(a, nil)
	switch {
	case err != nil:
		return text, nil, nil, err
	case len(contradictions) > 0:
		return text, nil, nil, fmt.Errorf("%w: with all of them, this does not hold: %s; leave out the path or host that prevents it", ErrContradictory, contradictions[0].Test)
	case imported == nil:
		return text, s, nil, nil
	}
	return build(a, imported)
}

func build(a Answers, imported *robotstxt.Imported) (text []byte, s *site.Site, contradictions []Contradiction, err error) {
	empty, ds := policyfile.Load("an empty policy", []byte("version: 1\n"))
	if empty == nil {
		return nil, nil, nil, ds
	}
	b := &builder{answers: a, spec: &policy.Spec{Publish: empty.Spec.Publish}, comments: map[int]string{}}
	tests := 0 // of the robots.txt
	if imported != nil {
		b.spec, b.lineComments = imported.Spec, imported.LineComments
		tests = len(b.spec.Expect)
		maps.Copy(b.comments, imported.Comments)
		b.spec.Publish.ContentUsage = empty.Spec.Publish.ContentUsage
		if a.Training == No || a.AIAnswers == No {
			b.spec.Publish.ControlTokens = empty.Spec.Publish.ControlTokens
		}
		if len(b.spec.Rules) > 0 {
			b.comments[0] = strings.TrimSpace("From " + a.From + ".\n" + b.comments[0])
		}
	}
	b.search()
	b.training()
	b.aiAnswers()
	b.closed()
	b.staging()
	for {
		text = policyfile.PrintWith(b.spec, policyfile.PrintOptions{Header: b.header(), Comments: b.comments, LineComments: b.lineComments})
		var ds policyfile.Diagnostics
		if s, ds = site.Load("the new policy", text); s != nil {
			return text, s, contradictions, nil
		}
		failed, instead := b.failedTest(ds)
		if failed < 0 {
			return text, nil, nil, fmt.Errorf("the policy does not load:\n%w", ds)
		}
		contradictions = append(contradictions, Contradiction{Test: b.spec.Expect[failed].String(), Instead: instead, Answered: failed >= tests})
		b.spec.Expect = slices.Delete(b.spec.Expect, failed, failed+1)
		if failed < tests {
			tests--
		}
	}
}

// failedTest is the index of the first test that fails, and what holds instead. It is -1 if
// the diagnostics have other errors.
func (b *builder) failedTest(ds policyfile.Diagnostics) (i int, instead string) {
	for _, d := range ds {
		if d.Severity == policy.Error && d.Code != "expectation-failed" {
			return -1, ""
		}
	}
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
		policyinput.Modeline, "", "What crawlers may do with " + cmp.Or(b.answers.Host, "this site") + ".",
		"After a change: caddy robots-policy check FILE",
		"To keep out changes by which search engines lose pages: max_search_loss 0, in the Caddyfile under activity",
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

// expect appends a test. The place is a path of the site, or a URL of another host.
func (b *builder) expect(agent string, allowed bool, u policy.Usage, host, path string) {
	b.spec.Expect = append(b.spec.Expect, policy.Expectation{
		Anyone: true, Agent: policy.ParseAudience(agent), Allowed: allowed, Usage: u, Host: host, Path: path,
	})
}

func (b *builder) search() {
	host := b.answers.siteHost()
	switch b.answers.Search {
	case Yes:
		b.expect("category:search", true, policy.Crawl, host, "/")
		b.expect("category:search", true, policy.Index, host, "/")
		b.expect("category:preview", true, policy.Crawl, host, "/")
	case No:
		b.rule("Search engines do not list the site. They may read its pages: only a crawler that\nreads a page can see that it may not be listed.", policy.Rule{
			Name: "not in search engines", For: everyone(), Statements: wholeSite(false, policy.Index, policy.Search),
			IntendedGuards: []string{"site-not-indexed"},
		})
		b.expect("everyone", false, policy.Index, "", "/")
	case Unanswered:
	}
}

func (b *builder) training() {
	host := b.answers.siteHost()
	switch b.answers.Training {
	case Yes:
		b.rule("AI may be trained with this site.", policy.Rule{
			Name: "AI training", For: everyone(), Statements: wholeSite(true, policy.TrainAI),
		})
		b.expect("category:ai-training", true, policy.Crawl, host, "/")
	case No:
		b.rule("No AI training. This says so to everyone who reads the site, search engines included.", policy.Rule{
			Name: "no AI training", For: everyone(), Statements: wholeSite(false, policy.TrainAI),
		})
		b.rule("Crawlers that collect mainly for training are refused. Without the line with\n\"enforce\" robots.txt only asks them to stay away.", policy.Rule{
			Name: "crawlers for AI training", For: category(crawlers.KindAITraining), Statements: wholeSite(false, policy.Crawl), Enforce: policy.ModeBlock,
		})
		b.expect("category:ai-training", false, policy.Crawl, "", "/")
		b.expect("everyone", false, policy.TrainAI, "", "/")
	case Unanswered:
	}
}

func (b *builder) aiAnswers() {
	host := b.answers.siteHost()
	switch b.answers.AIAnswers {
	case Yes:
		b.expect("category:ai-input", true, policy.Crawl, host, "/")
		b.expect("category:ai-assistant", true, policy.Crawl, host, "/")
	case No:
		b.rule("No answers from AI products with the contents of this site.", policy.Rule{
			Name: "no AI answers", For: everyone(), Statements: wholeSite(false, policy.AIUse),
		})
		b.rule("Crawlers that collect for such answers, and assistants that fetch a page because\nsomeone asks about it. Many assistants do not obey robots.txt; the server refuses them.", policy.Rule{
			Name: "crawlers for AI answers", For: category(crawlers.KindAIInput, crawlers.KindAIAssistant), Statements: wholeSite(false, policy.Crawl), Enforce: policy.ModeBlock,
		})
		b.expect("category:ai-input", false, policy.Crawl, "", "/")
		b.expect("category:ai-assistant", false, policy.Crawl, "", "/")
	case Unanswered:
	}
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
	b.rule("Parts that no crawler may read. This keeps honest crawlers out; what must stay secret\nneeds a login as well.", policy.Rule{
		Name: "closed to crawlers", For: everyone(), Statements: statements,
	})
}

func (b *builder) staging() {
	a := b.answers
	if len(a.Staging) == 0 {
		return
	}
	usages := []policy.Usage{policy.Follow}
	if a.Search != No {
		usages = append([]policy.Usage{policy.Index}, usages...)
	}
	if a.Training != No {
		usages = append(usages, policy.TrainAI)
	}
	b.rule("Staging hosts must not be found. Their pages may be read: only a crawler that reads a\npage can see that it may not be listed. What nobody may read needs a login.", policy.Rule{
		Name: "staging", For: everyone(), Hosts: a.Staging, Statements: wholeSite(false, usages...),
	})
	for _, h := range a.Staging {
		b.expect("everyone", false, policy.Index, exampleOf(h), "/")
	}
}

// exampleOf is a host that a host pattern matches.
func exampleOf(h policy.Host) string { return strings.Replace(string(h), "*", "www", 1) }

func everyone() []policy.Audience { return []policy.Audience{{Kind: policy.ForEveryone}} }

func category(kinds ...crawlers.Kind) (as []policy.Audience) {
	for _, k := range kinds {
		as = append(as, policy.Audience{Kind: policy.ForCategory, Name: string(k)})
	}
	return as
}

// wholeSite allows or disallows usages of every path.
func wholeSite(allow bool, usages ...policy.Usage) (statements []policy.Statement) {
	for _, u := range usages {
		statements = append(statements, policy.Statement{Allow: allow, Usage: u, Pattern: pathpattern.All})
	}
	return statements
}
