// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// If CanBeListed accepts a name, a policy file can list a crawler with this name, and use the name in rules and tests.
// This includes names such as "all" and "search", which mean groups of crawlers in files that do not list such a
// crawler.
func TestCanBeListed(t *testing.T) {
	for name, valid := range map[string]bool{
		"GPTBot": true, "HouseBot": true, "AI2000Bot": true, "Some Crawler": true,
		"Mozilla":  true, // browsers have the name in their User-Agent
		"X":        true, // also the name of an operator
		"OpenAI":   true, // the name of an operator
		"everyone": true, "Everyone-Else": true, "everyone2": true, "all": true, "bots": true, "ai": true, "search": true,
		"null": true, "yes": true, "1e3": true, "none": true, "any": true, "default": true,
		"category:search": false, "a*b": false, "": false,
	} {
		if crawlers.CanBeListed(name) != valid {
			t.Errorf("%q: valid %t", name, !valid)
		}
		agent := policy.Audience{Kind: policy.ForToken, Name: name}.String()
		text := fmt.Sprintf("version: 1\nrules:\n  - for: %q\n    disallow: {crawl: /}\ncrawlers:\n  %q: {robots-only: %t}\nexpect:\n  - %q\n",
			agent, name, crawlers.NamesBrowser(name), agent+" may not crawl /")
		f, ds := Load("names.yaml", []byte(text))
		switch {
		case (f != nil && !ds.HasErrors()) != valid:
			t.Errorf("%q: %v", name, ds)
		case valid && f.Policy.Decide(policy.Query{Crawler: f.Policy.Crawler(name), Path: "/"}).Verdict != policy.Disallowed:
			t.Errorf("%q may crawl", name)
		case valid && f.Policy.Decide(policy.Query{Path: "/"}).Verdict == policy.Disallowed:
			t.Errorf("%q disallows others", name)
		}
	}
}
