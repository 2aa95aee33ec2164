// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

func TestMaxMode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]policy.Mode{
		"rules: [{for: GPTBot, disallow: {crawl: /}}]":                                               policy.ModeOff,
		"rules: [{for: GPTBot, disallow: {crawl: /}}]\nenforcement: log":                             policy.ModeLog,
		"rules: [{for: GPTBot, disallow: {crawl: /}, enforce: block}]":                               policy.ModeBlock,
		"rules: [{for: GPTBot, disallow: {crawl: /}, enforce: off}]\nenforcement: block":             policy.ModeOff,
		"rules: [{for: GPTBot, disallow: {index: /}, enforce: block}]":                               policy.ModeOff,
		"rules: [{for: GPTBot, allow: {crawl: /}}]\nenforcement: block":                              policy.ModeOff,
		"rules: [{for: GPTBot, allow: {crawl: /}}]\nenforcement: {mode: off, impostors: log}":        policy.ModeLog,
		"rules: [{for: [GPTBot], disallow: {crawl: /a/}, enforce: log}]\nenforcement: {mode: block}": policy.ModeLog,
	} {
		f, ds := Load("mode.yaml", []byte("version: 1\n"+text+"\n"))
		if f == nil {
			t.Errorf("%s: %v", text, ds.Error())
		} else if got := f.MaxMode(); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
