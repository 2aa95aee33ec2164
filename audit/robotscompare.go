// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/internal/rfc9309"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// compareRobots compares served, the site's robots.txt, with the robots.txt that the policy makes. It compares the
// lines first. If the lines differ, it compares the paths that each crawler may fetch, and returns a finding about the
// difference. It returns true only if the lines do not differ.
func (a *auditor) compareRobots(served []byte) (Finding, bool) {
	at := a.robotsURL().String()
	file, _ := robotsserve.Render(a.o.Policy.Policy, a.base.Host, robotsserve.Options{Scheme: a.base.Scheme})
	missing, added := lineDifference(file.Body, served)
	if len(missing) == 0 && len(added) == 0 {
		return Finding{}, true
	}
	const fix = "find out what changes or replaces robots.txt: a setting of the CDN, a plugin, or a file with the same name"
	d, ok := a.decisionDifference(a.readRobots(file.Body), a.readRobots(served))
	if d == "" && !ok {
		return finding("robots-not-compared", at, "", "robots.txt differs from what the policy publishes; whether it has the same meaning cannot be judged, because there are too many rules", fix), false
	}
	if d != "" {
		return finding("robots-rewritten", at, "", "robots.txt differs from what the policy publishes: "+d, fix), false
	}
	if records := slices.DeleteFunc(missing, func(l string) bool { return !isRecord(l) }); len(records) > 0 {
		return finding("robots-rewritten", at, "", fmt.Sprintf("robots.txt lacks %s", countLines(records)), fix), false
	}
	f := finding("robots-changed", at, "", fmt.Sprintf("robots.txt differs from what the policy publishes, but has the same meaning for crawling. The policy does not publish %s", countLines(added)), "")
	if len(added) == 0 {
		f.Message = "robots.txt lacks comments of the policy, but has the same meaning"
	}
	return f, false
}

// isRecord reports whether a line must be compared as text. This is true for all lines with a key, except Allow,
// Disallow and User-agent lines. For these three, compareRobots compares the meaning.
func isRecord(line string) bool {
	key, _, ok := strings.Cut(line, ":")
	switch strings.ToLower(strings.TrimSpace(key)) {
	case "allow", "disallow", "user-agent":
		return false
	}
	return ok && !strings.HasPrefix(line, "#")
}

func countLines(lines []string) string {
	s := "the line " + shorten(lines[0])
	if len(lines) > 1 {
		s = fmt.Sprintf("%d lines, the first %s", len(lines), shorten(lines[0]))
	}
	return s
}

// lineDifference returns the lines that only one of two files has. It trims white space and ignores empty lines.
func lineDifference(want, got []byte) (missing, added []string) {
	count := map[string]int{}
	for line := range strings.Lines(string(want)) {
		count[strings.TrimSpace(line)]++
	}
	for line := range strings.Lines(strings.TrimPrefix(string(got), "\ufeff")) {
		line = strings.TrimSpace(line)
		if count[line]--; count[line] < 0 && line != "" {
			added = append(added, line)
		}
	}
	for line := range strings.Lines(string(want)) {
		if line = strings.TrimSpace(line); line != "" && count[line] > 0 {
			count[line]--
			missing = append(missing, line)
		}
	}
	return missing, added
}

// reader is a crawler, or a class of crawlers that robots.txt cannot distinguish.
type reader struct {
	name        string
	names       []string // the crawler obeys the group for the first of these names that has a group
	ignoresStar bool
}

// decisionDifference describes which crawlers may fetch different paths under two robots.txt files, or returns "". ok
// is false if the comparison would take too long.
func (a *auditor) decisionDifference(want, got *robotsTxt) (text string, ok bool) {
	var crawlers []rfc9309.Crawler
	for _, c := range a.o.Policy.Policy.Crawlers {
		crawlers = append(crawlers, rfc9309.Crawler{Names: append([]string{c.Token}, c.Follows...), IgnoresStar: c.IgnoresStar})
	}
	c := rfc9309.Compare(want.File, got.File, crawlers)
	who, example := map[bool][]string{}, map[bool]string{}
	type reading struct {
		name  string
		laxer bool
	}
	named := map[reading]bool{} // a crawler may have thousands of differences
	for _, d := range c.Differences {
		laxer := d.Laxer()
		if a.o.Merged && !laxer {
			continue
		}
		example[laxer] = cmp.Or(example[laxer], d.Path)
		for _, name := range d.Crawlers {
			if name == rfc9309.Other {
				name = otherCrawler
			}
			if r := (reading{name, laxer}); !named[r] {
				named[r] = true
				who[laxer] = append(who[laxer], name)
			}
		}
	}
	var parts []string
	for laxer, does := range map[bool]string{true: "may fetch paths that the policy disallows", false: "may not fetch paths that the policy allows"} {
		if names := who[laxer]; names != nil {
			parts = append(parts, fmt.Sprintf("%s %s, such as %s", whichReaders(names, c.Crawlers), does, example[laxer]))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "; "), c.Complete
}

// whichReaders returns a text that names some of the readers, the best known first. all is the total number of readers.
func whichReaders(some []string, all int) string {
	if len(some) == all {
		return "every crawler"
	}
	known := func(name string) int {
		if i := slices.Index([]string{"Googlebot", "Bingbot", "GPTBot", otherCrawler}, name); i >= 0 {
			return i
		}
		return 4
	}
	slices.SortStableFunc(some, func(a, b string) int { return known(a) - known(b) })
	return names(some)
}

func names(all []string) string { return english.Some(all, 4) }
