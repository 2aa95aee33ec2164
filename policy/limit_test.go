// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// If several rules set a rate limit for a query, the narrowest audience wins, then the narrowest host, then the
// strictest limit.
func TestLimit(t *testing.T) {
	t.Parallel()
	f, ds := policyfile.Load("policy.yaml", []byte(`version: 1
rules:
  - for: everyone
    limit: 100/m
  - for: category:ai-training
    limit: 60/m
  - for: operator:OpenAI
    limit: {rate: 60/m, burst: 10}
  - for: CCBot
    limit: none
  - for: ClaudeBot
    hosts: shop.example.com
    limit: 5/d
  - for: AhrefsBot
    identity: verified
    limit: 7/s
`))
	if f == nil {
		t.Fatal(ds.Text())
	}
	for _, tt := range []struct {
		crawler, host string
		identity      policy.Identity
		want          string
		burst         int
	}{
		{"SemrushBot", "www.example.com", policy.Unknown, "100/m", 100},
		{"GPTBot", "www.example.com", policy.Unknown, "60/m", 10},
		{"Bytespider", "www.example.com", policy.Unknown, "60/m", 60},
		{"CCBot", "www.example.com", policy.Unknown, "", 0},
		{"ClaudeBot", "www.example.com", policy.Unknown, "60/m", 60},
		{"ClaudeBot", "shop.example.com", policy.Unknown, "5/d", 5},
		{"AhrefsBot", "www.example.com", policy.Unknown, "100/m", 100},
		{"AhrefsBot", "www.example.com", policy.Verified, "7/s", 7},
	} {
		got, burst := "", 0
		if r := f.Policy.Limit(policy.Query{Crawler: f.Policy.Crawler(tt.crawler), Host: tt.host, Identity: tt.identity, Path: "/", Now: time.Now()}); r != nil {
			got, burst = r.Limit.String(), r.Limit.Burst
		}
		if got != tt.want || burst != tt.burst {
			t.Errorf("%s (%v) on %s: %q %d, want %q %d", tt.crawler, tt.identity, tt.host, got, burst, tt.want, tt.burst)
		}
	}
}
