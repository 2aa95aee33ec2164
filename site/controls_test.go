// SPDX-License-Identifier: Apache-2.0

package site

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
)

// told has a field for each control of an operator, which is true if the operator finds this control in the robots.txt
// or the pages of a site. The test decides this separately for each operator, only from the documentation of this
// operator.
type told struct {
	google, apple   bool // the group of Google-Extended or Applebot-Extended disallows the page
	bing, amazon    bool // noarchive reaches the crawler both by a header and by a meta tag
	openai, claude  bool // the group of GPTBot or ClaudeBot disallows the page
	perplexity      bool // PerplexityBot may not crawl the page
	meta            bool // meta-externalagent may not crawl the page
	bingCrawl       bool // Bingbot may not crawl the page
	googleNoArchive bool // noarchive for Googlebot, which Google does not need
}

func readOperators(s *Site, path string) told {
	robots, _ := s.Robots.Text("www.example.com")
	read := crawlertest.ReadRobotsTxt(robots)
	closed := func(token string) bool { return !read.Allowed(token, path) }
	page := s.Page("www.example.com", path, time.Now())
	var lines []string
	if h := page.header(); h != nil {
		lines = h[http.CanonicalHeaderKey("X-Robots-Tag")]
	}
	archive := func(agent string) bool { return !crawlertest.EvaluateX(lines, agent).Archive }
	named := func(agent string) bool {
		tags := strings.ToLower(page.Elements.HTML())
		return strings.Contains(tags, `name="`+agent+`" content="noarchive`) || strings.Contains(tags, `name="robots" content="noarchive`)
	}
	return told{
		google: closed("Google-Extended"), apple: closed("Applebot-Extended"),
		bing: archive("bingbot") && named("bingbot"), amazon: archive("amazonbot") && named("amazonbot"),
		openai: closed("GPTBot"), claude: closed("ClaudeBot"),
		perplexity: closed("PerplexityBot"), meta: closed("meta-externalagent"),
		bingCrawl: closed("Bingbot"), googleNoArchive: archive("googlebot"),
	}
}

// Each case has the goal of a publisher in words, the policy for it, and the controls that the operators must find.
// They must not find other controls.
func TestOperatorsControls(t *testing.T) {
	for _, c := range []struct {
		words, policy string
		want          told
	}{
		{"nothing is said", `rules: [{for: GPTBot, disallow: {crawl: /private/}}]`, told{}},
		{"nobody may train", `rules: [{for: everyone, disallow: {train-ai: /}}]`, told{google: true, apple: true, amazon: true}},
		{"Google may show us, not train", `rules: [{for: Googlebot, disallow: {train-ai: /}}]`, told{google: true}},
		{"search engines may not train", `rules: [{for: category:search, disallow: {train-ai: /}}]`, told{google: true, apple: true}},
		{"Google may not train", `rules: [{for: "operator:Google", disallow: {train-ai: /}}]`, told{google: true}},
		{"nobody but Google may train", `rules: [{for: everyone, disallow: {train-ai: /}}, {for: Google-Extended, allow: {train-ai: /}}]`, told{apple: true, amazon: true}},
		{"nobody may train, but Googlebot may", `rules: [{for: everyone, disallow: {train-ai: /}}, {for: Googlebot, allow: {train-ai: /}}]`, told{apple: true, amazon: true}},
		{"nobody may train, but Googlebot may; the token may not", `rules: [{for: everyone, disallow: {train-ai: /}}, {for: Googlebot, allow: {train-ai: /}}, {for: Google-Extended, disallow: {train-ai: /}}]`, told{google: true, apple: true, amazon: true}},
		{"Bing and Amazon may not train or answer", `rules: [{for: [Bingbot, Amazonbot], disallow: {train-ai: /, ai-use: /}}]`, told{amazon: true}},
		{"not in Copilot, whatever it costs", "publish: {controls: {Bingbot: noarchive}}\nrules: [{for: Bingbot, disallow: {ai-use: /}}]", told{bing: true}},
		{"no training, no answers, no copies by Bing", `rules: [{for: Bingbot, disallow: {train-ai: /, ai-use: /, preserve: /}}]`, told{bing: true}},
		{"no training, but no tag for Amazon", "publish: {controls: {Amazonbot: off}}\nrules: [{for: everyone, disallow: {train-ai: /}}]", told{google: true, apple: true}},
		{"no training, but Google may ground answers", "publish: {controls: {Google-Extended: off}}\nrules: [{for: everyone, disallow: {train-ai: /}}]", told{apple: true, amazon: true}},
		{"no training, but nothing that an operator has for itself", "publish: {controls: off}\nrules: [{for: everyone, disallow: {train-ai: /}}]", told{}},
		{"no training with another part of the site", `rules: [{for: everyone, disallow: {train-ai: /archive/}}]`, told{}},
		{
			"no AI at all, search stays", "publish: {controls: {Bingbot: noarchive}}\nrules: [{for: category:ai, disallow: {crawl: /}}, {for: everyone, disallow: {train-ai: /, ai-use: /}}]",
			told{google: true, apple: true, bing: true, openai: true, claude: true, perplexity: true, meta: true},
		},
		{
			"no AI at all but Perplexity, which links to us", `rules: [{for: category:ai, disallow: {crawl: /}}, {for: PerplexityBot, allow: {crawl: /}}]`,
			told{google: true, apple: true, openai: true, claude: true, meta: true},
		},
	} {
		t.Run(c.words, func(t *testing.T) {
			s, ds := Load("policy.yaml", []byte("version: 1\n"+c.policy+"\n"))
			if s == nil {
				t.Fatal(ds)
			}
			if got := readOperators(s, "/news/1"); got != c.want {
				robots, _ := s.Robots.Text("www.example.com")
				t.Errorf("got %+v\nwant %+v\n%s\n%v", got, c.want, robots, s.Page("www.example.com", "/news/1", time.Now()).header())
			}
		})
	}
}

// If a path is too long to compare with patterns, its response has all controls that at least one other path on the
// host has.
func TestControlsOfLongPaths(t *testing.T) {
	s, _ := Load("policy.yaml", []byte("version: 1\nrules: [{for: everyone, disallow: {train-ai: /archive/}}]\n"))
	sent := s.Page("www.example.com", "/"+strings.Repeat("a%2f", 9000), time.Now()).header()["X-Robots-Tag"]
	if !slices.Contains(sent, "amazonbot: noarchive") {
		t.Errorf("%q", sent)
	}
}

// ControlStates lists every host of a rule.
func TestControlsOfSeveralHosts(t *testing.T) {
	t.Parallel()
	s, _ := Load("policy.yaml", []byte("version: 1\nrules: [{for: everyone, hosts: [www.example.com, news.example.com], disallow: {train-ai: /}}]\n"))
	for _, state := range s.ControlStates(ControlScope{}, time.Now()) {
		if want := []string{"/ on www.example.com", "/ on news.example.com"}; !slices.Equal(state.Where, want) && state.Sent != "" {
			t.Errorf("%s: %q, want %q", state.Operator, state.Where, want)
		}
	}
}

// ControlStates lists every control that the pages have, even if they have it because the policy disallows a usage that
// is not about AI, such as preserve. It also says which other usages and features the control takes away.
func TestControlsShowWhatIsSent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ policy, usage, sent, where, costs string }{
		{`rules: [{for: Bingbot, disallow: {ai-use: /, preserve: /}}]`, "ai-use", "noarchive to Bingbot", "/", "train-ai, links in answers of Copilot"},
		{`rules: [{for: Bingbot, disallow: {train-ai: [/a/, /b/], ai-use: [/b/, /a/], preserve: /a/b/}}]`, "train-ai", "noarchive to Bingbot", "/a/b/", "preserve, links in answers of Copilot"},
		{"publish: {controls: {Bingbot: off}}\nrules: [{for: everyone, disallow: {ai-use: /, train-ai: /, preserve: /}}]", "ai-use", "noarchive to Bingbot", "/", "links in answers of Copilot"},
		{`rules: [{for: Bingbot, disallow: {preserve: /news/}}]`, "preserve", "noarchive to Bingbot", "/news/", "train-ai, ai-use, links in answers of Copilot"},
		{`rules: [{for: Bingbot, robots-tag: noarchive, disallow: {ai-use: /}}]`, "ai-use", "noarchive to Bingbot", "/", "train-ai, preserve, links in answers of Copilot"},
		{`rules: [{for: Bingbot, disallow: {ai-use: /}}]`, "ai-use", "", "", "train-ai, preserve, links in answers of Copilot"},
	} {
		s, ds := Load("policy.yaml", []byte("version: 1\n"+tt.policy+"\n"))
		if s == nil {
			t.Fatal(ds.Error())
		}
		all := s.ControlStates(ControlScope{Crawler: "Bingbot"}, time.Now())
		at := slices.IndexFunc(all, func(x ControlState) bool { return x.Usage == tt.usage })
		if at < 0 || all[at].Sent != tt.sent || strings.Join(all[at].Where, " ") != tt.where || all[at].Costs != tt.costs {
			t.Errorf("%s: %+v", tt.policy, all)
		}
	}
}
