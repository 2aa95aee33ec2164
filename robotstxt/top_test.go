// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Each group gets the preferences above the first group. For a file with many groups and many such preferences, this
// must not take too much memory. The lines that exceed the limits are replaced with a single line, which applies to the
// whole site.
func TestPreferencesAboveManyGroups(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 2_000 {
		fmt.Fprintf(&b, "Content-Usage: /p%d/ train-ai=n\n", i)
	}
	fmt.Fprintf(&b, "Content-Usage: /%s train-ai=n\n", strings.Repeat("x", 1000))
	for i := range 2_000 {
		fmt.Fprintf(&b, "User-agent: bot%c%d\nDisallow: /a/\n", 'a'+i%26, i)
	}
	f := read([]byte(b.String())).withTop()
	lines, bytes := 0, 0
	for _, g := range f.Groups {
		lines += len(g.lines)
		for _, l := range g.lines {
			bytes += len(l.value)
		}
	}
	if want := (maxTop + 1) * 2_001; lines != want || bytes > want*maxTopLine {
		t.Errorf("%d groups have %d lines of %d bytes, want %d lines of at most %d bytes", len(f.Groups), lines, bytes, want, maxTopLine)
	}
	if f.TooLong {
		t.Error("lines above the groups must not count as lines of groups")
	}
}

// Preferences above the first group apply to all crawlers, but Parse does not add a group for them. Below and an import
// add a group of "*", which contains only these preferences, so each crawler may still fetch the same paths.
func TestPreferencesAboveNoGroup(t *testing.T) {
	t.Parallel()
	const top = "Content-Usage: train-ai=n\n"
	for _, groups := range []string{"", "User-agent: Bingbot\nDisallow: /b/\n"} {
		f := Parse([]byte(top + groups))
		without := Parse([]byte(groups))
		if f.Empty() || f.Unreadable() != nil || f.Group("*") != nil || len(f.Groups) != len(without.Groups) {
			t.Errorf("%q: groups %v, %v", groups, f.Groups, f.Unreadable())
		}
		if f.Sum == without.Sum {
			t.Error("a file with other preferences has the same sum")
		}
		below := f.Below(policy.Compile(&policy.Spec{})).Policy
		for _, name := range []string{"Bingbot", "FooBot"} {
			c := policy.Crawler{Token: name}
			if said := f.Agent(c).Said("/").ContentUsage; said != "train-ai=n" {
				t.Errorf("%s reads %q", name, said)
			}
			for _, path := range []string{"/", "/b/"} {
				want := without.Agent(c).Allowed(path)
				decided := below.Decide(policy.Query{Crawler: below.Crawler(name), Path: path}).Verdict != policy.Disallowed
				if f.Agent(c).Allowed(path) != want || decided != want {
					t.Errorf("%s may crawl %s: %v, want %v", name, path, !want, want)
				}
			}
		}
	}
}
