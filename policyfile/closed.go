// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Closed is what a Summary leaves out.
type Closed struct {
	Crawl []string `json:"crawl,omitempty"` // patterns that some or all may not crawl, besides whole hosts
	Index []string `json:"index,omitempty"` // or may not index
	Open  []string `json:"open,omitempty"`  // that some or all may crawl
	// Refused are the lines of the rules whose prohibitions to crawl the server enforces,
	// Logged those in dry run, and Asked those that robots.txt only asks crawlers to obey.
	Refused []int `json:"refused_by_lines,omitempty"`
	Logged  []int `json:"logged_by_lines,omitempty"`
	Asked   []int `json:"asked_by_lines,omitempty"`
}

// Closed says which paths rules close, and which rules are enforced.
func (f *File) Closed() (c Closed) {
	add := func(list *[]string, s *policy.Statement) {
		if text := s.Pattern.String(); text != "/" && !slices.Contains(*list, text) {
			*list = append(*list, text)
		}
	}
	for i := range f.Spec.Rules {
		r := &f.Spec.Rules[i]
		closes := false
		for j := range r.Statements {
			switch s := &r.Statements[j]; {
			case s.Allow && s.Usage == policy.Crawl:
				add(&c.Open, s)
			case s.Allow:
			case s.Usage == policy.Crawl:
				closes = true
				add(&c.Crawl, s)
			case s.Usage == policy.Index:
				add(&c.Index, s)
			}
		}
		if !closes {
			continue
		}
		lines := &c.Asked
		switch f.Policy.Mode(policy.Decision{Rule: r}) {
		case policy.ModeBlock:
			lines = &c.Refused
		case policy.ModeLog:
			lines = &c.Logged
		case policy.ModeOff, policy.ModeUnset:
		}
		*lines = append(*lines, r.Pos.Line)
	}
	return c
}

// ClosedText is Closed as check prints it, with a few of the paths. It is empty if no rule
// closes anything.
func (f *File) ClosedText(now time.Time, paths int) string {
	c := f.Closed()
	x := newEvaluator(f.Policy, now)
	text := f.pathsText("  apart from:    ", c.Crawl, paths, func(pattern string, host policy.Host) string {
		return "closed to " + x.answers(host.Example(), examplePath(pattern), policy.Crawl).mayNot()
	})
	open := c.Open[:0:0]
	for _, pattern := range c.Open {
		host := f.hostOf(pattern).Example()
		if !slices.Contains(c.Crawl, pattern) && x.answers(host, examplePath(pattern), policy.Crawl).may() != x.answers(host, plainPage, policy.Crawl).may() {
			open = append(open, pattern)
		}
	}
	text += f.pathsText("  but open:      ", open, paths, func(pattern string, host policy.Host) string {
		return "to " + x.answers(host.Example(), examplePath(pattern), policy.Crawl).may()
	})
	text += f.pathsText("  not indexed:   ", c.Index, paths, func(pattern string, host policy.Host) string {
		return "by " + x.answers(host.Example(), examplePath(pattern), policy.Index).mayNot()
	})
	if refused := c.refused(f.Spec.Enforcement); refused != "" {
		text += "  refused:       " + refused + "\n"
	}
	return text
}

// may says who may, and mayNot who may not.
func (s Answers) may() string    { return side(s.May, s.MayNot, s.Unknown) }
func (s Answers) mayNot() string { return side(s.MayNot, s.May, !s.Unknown) }

func side(these, others []CategoryCount, unknown bool) string {
	switch {
	case !unknown:
		return countText(these, false)
	case len(others) > 0:
		return "everyone except " + countText(others, false)
	}
	return "everyone"
}

// pathsText writes what is so of paths, a line for each.
func (f *File) pathsText(head string, patterns []string, most int, who func(pattern string, host policy.Host) string) string {
	var b strings.Builder
	for i, pattern := range patterns[:min(len(patterns), most)] {
		host, where, more := f.hostOf(pattern), "", ""
		if host != "" {
			where = " on " + string(host)
		}
		if n := len(patterns) - most; i == most-1 && n > 0 {
			more = fmt.Sprintf(" (and %s)", english.Count(n, "more path"))
		}
		fmt.Fprintf(&b, "%s%s%s, %s%s\n", head, pattern, where, who(pattern, host), more)
		head = strings.Repeat(" ", len(head))
	}
	return b.String()
}

// hostOf is a host of the first rule that speaks of a pattern, "" for every host.
func (f *File) hostOf(pattern string) policy.Host {
	for i := range f.Spec.Rules {
		r := &f.Spec.Rules[i]
		if len(r.Hosts) > 0 && slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Pattern.String() == pattern }) {
			return r.Hosts[0]
		}
	}
	return ""
}

// examplePath is a path that a pattern matches and that others match only in general.
func examplePath(pattern string) string {
	path, anchored := strings.CutSuffix(pattern, "$")
	if !anchored {
		path += "%01"
	}
	if path[0] == '*' {
		path = "/" + path
	}
	return strings.ReplaceAll(path, "*", "%02")
}

func (c *Closed) refused(e policy.Enforcement) string {
	answer := fmt.Sprintf("get %d", cmp.Or(e.Status, http.StatusForbidden))
	if e.Close {
		answer = "are disconnected"
	}
	who := nobody
	if e.Impostors == policy.ModeBlock {
		who = "only impostors"
	}
	switch {
	case len(c.Refused) > 0 && len(c.Logged)+len(c.Asked) == 0:
		return "known crawlers " + answer + " wherever they may not crawl"
	case len(c.Refused) > 0:
		return fmt.Sprintf("known crawlers %s by the %s; the other rules are not enforced", answer, rulesIn(c.Refused))
	case len(c.Logged) > 0:
		return who + ` yet; the log says who would be. To answer 403, change "log" to "block"`
	case len(c.Asked) > 0:
		return who + `; robots.txt asks crawlers to stay away. To answer 403, add "enforce: block" to a rule`
	}
	return ""
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

// MaxMode returns the most that a server could do about a request under the policy:
// ModeLog or ModeBlock if some rule that disallows crawling, or the setting for
// impostors, asks for it, else ModeOff.
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
