// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

func TestSigners(t *testing.T) {
	t.Parallel()
	const text = `version: 1
crawlers:
  OwnAgent: {operator: Own Ltd, category: ai-agent, signature-directory: "https://www.own.example"}
  OneBot: {operator: Two Ltd, category: seo, signature-directory: "https://two.example"}
  OtherBot: {operator: Two Ltd, category: feed, signature-directory: "https://two.example"}
  PathBot: {operator: Path Ltd, category: ai-agent, signature-directory: "https://keys.example/path"}
  RoadBot: {operator: Road Ltd, category: ai-agent, signature-directory: "https://keys.example/road"}
rules:
  - for: [signed:own.example, signed:keys.example, "Signed:TWO.example", signed:browserbase.com, signed:stranger.example]
    disallow: {crawl: /x/}
expect: signed:stranger.example may not crawl /x/
`
	f, ds := Load("policy.yaml", []byte(text))
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	for token, want := range map[string]struct{ kind, operator, follows, directory string }{
		"signed:own.example":      {"ai-agent", "Own Ltd", "OwnAgent", "https://www.own.example"},
		"signed:two.example":      {"", "Two Ltd", "", "https://two.example"},
		"signed:browserbase.com":  {"ai-agent", "Browserbase", "Browserbase", "https://www.browserbase.com"},
		"signed:stranger.example": {"", "", "", "https://stranger.example"},
		"signed:keys.example":     {"", "", "", "https://keys.example"},
	} {
		c := f.Policy.CrawlerInfo(f.Policy.Crawler(token))
		row, ok := f.Catalog.Lookup(token)
		if !ok || c.Category != want.kind || c.Operator != want.operator || strings.Join(c.Follows, " ") != want.follows || row.Verification.WebBotAuth != want.directory {
			t.Errorf("%s: %+v %+v", token, c, row)
		}
		if !c.Signer || c.IsStranger() != (want.operator == "") || len(row.Patterns()) > 0 {
			t.Errorf("%s: signer %v, stranger %v, found as %q", token, c.Signer, c.IsStranger(), row.Patterns())
		}
	}
	if again, ds := Load("again.yaml", Print(f.Spec)); len(ds) > 0 || again.Policy.Crawler("signed:stranger.example") == 0 {
		t.Errorf("printed and read again: %v\n%s", ds, Print(f.Spec))
	}
	many := "version: 1\nrules:\n  - disallow: {crawl: /}\n    for:\n"
	for i := range maxSigners + 1 {
		many += "      - signed:h" + strings.Repeat("x", i) + ".example\n"
	}
	for text, says := range map[string]string{
		"version: 1\nrules:\n  - for: signed:own.example\n    identity: verified\n    allow: {crawl: /x/}\n": "put signed:HOST in a separate rule",
		"version: 1\nrules:\n  - for: signed:https://own.example\n    allow: {crawl: /x/}\n":                 "is not a host",
		"version: 1\nrules:\n  - for: signed:own.example/keys\n    allow: {crawl: /x/}\n":                    "is not a host",
		"version: 1\nrules:\n  - for: signed:*.example\n    allow: {crawl: /x/}\n":                           "is not a host",
		"version: 1\nrules:\n  - for: signd:own.example\n    allow: {crawl: /x/}\n":                          "signed:own.example",
		many: "at most 32 different hosts",
	} {
		if _, ds := Load("policy.yaml", []byte(text)); ds.Count(policy.Error) == 0 || !strings.Contains(fmt.Sprint(ds), says) {
			t.Errorf("%s\n%v", text, ds)
		}
	}
}
