// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// If the configuration requests enforcement, but no rule of the policy enforces anything, this is logged once.
func TestWarnOfEnforcementWithoutEffect(t *testing.T) {
	const rule = "version: 1\nrules: [{for: GPTBot, disallow: {crawl: /}}]\n"
	for _, tt := range []struct {
		enforce, policy string
		warns           bool
	}{
		{"block", rule, true},
		{"log", rule, true},
		{"", rule, false},
		{"off", rule, false},
		{"block", rule + "enforcement: log\n", false},
		{"block", "version: 1\nrules: [{for: GPTBot, limit: 60/h}]\n", false},
	} {
		t.Run(tt.enforce, func(t *testing.T) {
			core, logs := observer.New(zapcore.WarnLevel)
			warn := warnOnLoad(zap.New(core), tt.enforce, identity.New(identity.Methods{}, nil))
			s, err := source.Compile("policy.yaml", []byte(tt.policy))
			if err != nil {
				t.Fatal(err)
			}
			warn(s)
			warn(s)
			if n := logs.Len(); (n == 1) != tt.warns || n > 1 {
				t.Errorf("%d warnings", n)
			}
		})
	}
}

// A rule demands an identity that no method can prove, or that only the embedded address lists prove. The warning has
// the line and the hosts of the rule, and the day when the lists expire.
func TestWarnOfListsThatExpire(t *testing.T) {
	const demands = "version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: /m/}\n  - for: Googlebot\n    identity: verified\n    allow: {crawl: /m/}\n" +
		"  - for: Bingbot\n    hosts: a.example\n    identity: verified\n    allow: {crawl: /m/}\n"
	const own = "\ncrawlers: {NameBot: {operator: A, category: search, reverse-dns: .bot.example}, KeyBot: {operator: B, category: search, signature-directory: https://bot.example}}\n"
	const named = "version: 1\nrules:\n  - {for: [NameBot, KeyBot], identity: verified, allow: {crawl: /m/}}\n" + own
	const all = "[policy.yaml:5 policy.yaml:8 [a.example]]"
	for _, tt := range []struct {
		verify string
		policy string
		rules  string // the rules in the warning
		says   string
	}{
		{"embedded", demands, all, "only the address lists in this version"},
		{"lists", demands, "", ""},
		{"dns", demands, "", ""},
		{"signatures", demands, all, "only the address lists in this version"}, // neither crawler signs its requests, and only the embedded lists verify Bingbot and Googlebot
		{"off", demands, all, "verify off"},
		{"embedded", "version: 1\nrules: [{for: GPTBot, disallow: {crawl: /}}]\n", "", ""},
		{"embedded", named, "[policy.yaml:3]", `only with a method that is not configured, so the rule never applies; add "dns"`},
		{"lists", named, "[policy.yaml:3]", "only with a method that is not configured"},
		{"dns", named, "", ""},
		{"signatures", named, "", ""},
		{"lists", "version: 1\nrules:\n  - {for: Bytespider, identity: verified, allow: {crawl: /}}\n", "[policy.yaml:3]", "no published address list, host name or key to verify Bytespider"},
	} {
		core, logs := observer.New(zapcore.WarnLevel)
		methods, err := identity.ParseMethods([]string{tt.verify}, nil)
		if err != nil {
			t.Fatal(err)
		}
		v := identity.New(methods, func() *zap.Logger { return zap.NewNop() })
		t.Cleanup(v.Close)
		warn := warnOnLoad(zap.New(core), "", v)
		s, err := source.Compile("policy.yaml", []byte(tt.policy))
		if err != nil {
			t.Fatal(err)
		}
		warn(s)
		warn(s)
		lines := logs.All()
		if (len(lines) == 1) != (tt.rules != "") || tt.rules != "" && (fmt.Sprint(lines[0].ContextMap()["rules"]) != tt.rules || lines[0].ContextMap()["expire"] == "" || !strings.Contains(lines[0].Message, tt.says)) {
			t.Errorf("%s: %v", tt.verify, lines)
		}
	}
}
