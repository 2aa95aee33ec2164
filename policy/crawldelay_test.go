// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// A rule with "crawl-delay: none" removes the delay that a rule for a wider audience sets. It does not remove a delay
// that another rule for the same audience sets.
func TestNoCrawlDelay(t *testing.T) {
	token := func(name string) []policy.Audience {
		return []policy.Audience{{Kind: policy.ForToken, Name: name}}
	}
	p := policy.Compile(&policy.Spec{Rules: []policy.Rule{
		{For: []policy.Audience{{}}, CrawlDelay: 10 * time.Second},
		{For: token("Bingbot"), NoCrawlDelay: true},
		{For: token("Slurp"), NoCrawlDelay: true},
		{For: token("Slurp"), CrawlDelay: 2 * time.Second},
	}})
	for name, want := range map[string]time.Duration{"": 10 * time.Second, "Bingbot": 0, "Slurp": 2 * time.Second} {
		var got time.Duration
		r := p.CrawlDelay(policy.Query{Crawler: p.Crawler(name)})
		if r != nil {
			got = r.CrawlDelay
		}
		if got != want || want == 0 && r != nil {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
