// SPDX-License-Identifier: Apache-2.0

package console

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

func TestWordOf(t *testing.T) {
	closed := policy.Decision{Verdict: policy.Disallowed}
	for want, v := range map[string]site.Verdict{
		"allowed":    {Decision: policy.Decision{Verdict: policy.Allowed}, Mode: policy.ModeBlock},
		"disallowed": {Decision: closed, Mode: policy.ModeLog},
		"blocked":    {Decision: closed, Mode: policy.ModeBlock},
	} {
		if got := wordOf(v); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
