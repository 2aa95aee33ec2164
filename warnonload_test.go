// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// Enforcement that the configuration requests and no rule asks for is reported, once.
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
