// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

func runCrawlers(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := crawlersCommand()
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestCrawlersCommand(t *testing.T) {
	all, err := runCrawlers(t)
	if lines := strings.Count(all, "\n"); err != nil || lines < 151 {
		t.Errorf("%d lines, %v", lines, err)
	}
	training, err := runCrawlers(t, "ai-training")
	if err != nil || !strings.Contains(training, "GPTBot") || strings.Contains(training, "Bingbot") || strings.Count(training, "\n") >= strings.Count(all, "\n") {
		t.Errorf("%v\n%s", err, training)
	}
	one, err := runCrawlers(t, "gptbot")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"GPTBot (OpenAI)\n", "ai-training: ", "https://openai.com/gptbot.json", "for: category:ai-training", "for: operator:OpenAI", "for: category:ai,", "as of"} {
		if !strings.Contains(one, want) {
			t.Errorf("%s is missing:\n%s", want, one)
		}
	}
	control, err := runCrawlers(t, "Google-Extended")
	if err != nil || !strings.Contains(control, "cannot be blocked") {
		t.Errorf("%v\n%s", err, control)
	}
	text, err := runCrawlers(t, "--json", "category:search")
	var list []map[string]any
	if err != nil || json.Unmarshal([]byte(text), &list) != nil || len(list) < 5 || list[0]["category"] != "search" {
		t.Errorf("%v\n%s", err, text)
	}
	if _, err := runCrawlers(t, "nobody-at-all"); err == nil {
		t.Error("an unknown name is found")
	}
	known, err := crawlers.Default()
	if err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{
		"claudbot": `did you mean "ClaudeBot"?`, "ai-traning": `did you mean "ai-training"?`, "Gogle": `did you mean "Google"?`, "zzzzzz": "the categories are search, ",
	} {
		if err := unknownName(known, name); !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if dual, err := runCrawlers(t, "Applebot"); err != nil || !strings.Contains(dual, "follows the group of Googlebot") || !strings.Contains(dual, "the robots.txt token Applebot-Extended: against train-ai") {
		t.Errorf("%v\n%s", err, dual)
	}
	if _, err := runCrawlers(t, "a", "b"); err == nil {
		t.Error("two arguments are accepted")
	}
}

// The command crawlers suggests rules for a crawler. A policy with such a rule loads, and the rule applies to the
// crawler.
func TestAdvisedLinesLoad(t *testing.T) {
	t.Parallel()
	known, err := crawlers.Default()
	if err != nil {
		t.Fatal(err)
	}
	loaded := map[string]*policyfile.File{}
	for _, c := range known.All() {
		for _, line := range (described{Crawler: c}).audiences() {
			f, ok := loaded[line]
			if !ok {
				var ds policyfile.Diagnostics
				f, ds = policyfile.Load("policy.yaml", []byte("version: 1\nrules:\n  - "+line+"\n    disallow: {index: /a/}\n"))
				if f == nil || ds.HasErrors() {
					t.Errorf("%s: %s is advised: %v", c.Token, line, ds)
				}
				loaded[line] = f
			}
			if f == nil {
				continue
			}
			if d := f.Policy.Decide(policy.Query{Crawler: f.Policy.Crawler(c.Token), Path: "/a/", Usage: policy.Index}); d.Verdict != policy.Disallowed {
				t.Errorf("%s: %s does not reach it", c.Token, line)
			}
		}
	}
}

func TestCrawlersOfAnOperator(t *testing.T) {
	t.Parallel()
	text, err := runCrawlers(t, "operator:openai")
	if err != nil || !strings.Contains(text, "GPTBot") || strings.Contains(text, "ClaudeBot") {
		t.Errorf("%v\n%s", err, text)
	}
	text, err = runCrawlers(t, "category:ai")
	if err != nil || !strings.Contains(text, "PerplexityBot") || strings.Contains(text, "Googlebot") {
		t.Errorf("%v\n%s", err, text)
	}
}
