// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Enforced lists the rules that disallow crawling in three groups. They are grouped by what the server does with a
// disallowed request: it blocks the request, only logs that it would, or does neither. A rule is listed with the number
// of its line in the policy file.
type Enforced struct {
	Blocked []int `json:"blocked_by_lines,omitempty"` // the server blocks the request
	Logged  []int `json:"logged_by_lines,omitempty"`  // the server only logs that it would block the request
	Asked   []int `json:"asked_by_lines,omitempty"`   // only robots.txt states the rule
}

// Enforced returns the rules of the policy that disallow crawling.
func (f *File) Enforced() (e Enforced) {
	for i := range f.Spec.Rules {
		r := &f.Spec.Rules[i]
		if !slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return !s.Allow && s.Usage == policy.Crawl }) {
			continue
		}
		lines := &e.Asked
		switch f.Policy.Mode(policy.Decision{Rule: r}) {
		case policy.ModeBlock:
			lines = &e.Blocked
		case policy.ModeLog:
			lines = &e.Logged
		case policy.ModeOff, policy.ModeUnset:
		}
		*lines = append(*lines, r.Pos.Line)
	}
	return e
}

// EnforcedText returns the result of Enforced as the command "check" prints it. It returns "" if the policy does not
// disallow crawling.
func (f *File) EnforcedText() string {
	e, how := f.Enforced(), f.Spec.Enforcement
	answer := fmt.Sprintf("get %d", cmp.Or(how.Status, http.StatusForbidden))
	if how.Close {
		answer = "are disconnected"
	}
	var text string
	switch {
	case len(e.Blocked) > 0 && len(e.Logged)+len(e.Asked) > 0:
		text = fmt.Sprintf("known crawlers %s because of the %s; the other rules are not enforced", answer, rulesIn(e.Blocked))
	case len(e.Blocked) > 0 && f.Effect.Below != nil:
		text = fmt.Sprintf("known crawlers %s because of the %s; the site's own robots.txt is not enforced", answer, rulesIn(e.Blocked))
	case len(e.Blocked) > 0 && f.Policy.DemandsIdentity():
		text = fmt.Sprintf("known crawlers with the required identity %s because of the %s", answer, rulesIn(e.Blocked))
	case len(e.Blocked) > 0:
		text = "known crawlers " + answer + " wherever they may not crawl"
	case len(e.Logged) > 0:
		text = `no client yet; the log shows which clients would be blocked. To answer 403, change "log" to "block"`
	case len(e.Asked) > 0:
		text = `no client; robots.txt only asks crawlers to stay away. To answer 403, add "enforce: block" to a rule`
	default:
		return ""
	}
	if how.Impostors != policy.ModeBlock {
		return text
	}
	if len(e.Blocked) > 0 {
		return text + "; impostors " + answer + " everywhere"
	}
	return "only impostors" + strings.TrimPrefix(text, "no client")
}

func rulesIn(lines []int) string {
	words := make([]string, len(lines))
	for i, n := range lines {
		words[i] = fmt.Sprint(n)
	}
	if len(words) == 1 {
		return "rule in line " + words[0]
	}
	return "rules in lines " + english.Some(words, 4)
}

// MaxMode returns the strictest mode that a server could apply under the policy. It considers the rules that disallow
// crawling, and the setting for impostors. Without any of them, it returns ModeOff.
func (f *File) MaxMode() policy.Mode {
	mode := max(f.Spec.Enforcement.Impostors, policy.ModeOff)
	closes := func(s policy.Statement) bool { return s.Usage == policy.Crawl && (!s.Allow || s.Qualifiers != nil) }
	for i := range f.Spec.Rules {
		if r := &f.Spec.Rules[i]; slices.ContainsFunc(r.Statements, closes) {
			mode = max(mode, f.Policy.Mode(policy.Decision{Rule: r}))
		}
	}
	return mode
}
