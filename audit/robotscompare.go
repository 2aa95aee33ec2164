// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// compareRobots compares a robots.txt with the policy's by lines and, where these differ, by what
// each crawler may fetch.
func (a *auditor) compareRobots(served []byte) (Finding, bool) {
	at := a.robotsURL().String()
	o := robotsserve.Options{Scheme: a.base.Scheme}
	file, _ := robotsserve.Render(a.o.Policy.Policy, a.base.Host, o)
	missing, added := lineDifference(file.Body, served)
	o.Short = true // as a server may that refuses
	if short, _ := robotsserve.Render(a.o.Policy.Policy, a.base.Host, o); len(missing) > 0 {
		if less, more := lineDifference(short.Body, served); len(less) < len(missing) {
			file, missing, added = short, less, more
		}
	}
	if len(missing) == 0 && len(added) == 0 {
		return Finding{}, true
	}
	const fix = "look for what rewrites robots.txt between the server and here: a CDN's setting for robots.txt, a plugin, a file of the same name"
	want, got := readRobots(file.Body), readRobots(served)
	d := a.decisionDifference(want, got)
	if want.work < 0 || got.work < 0 {
		return finding(codeNotCompared, at, "", "robots.txt is not what the policy publishes, and whether it says the same cannot be judged: both have too many rules to try them all", fix), false
	}
	if d != "" {
		return finding(codeRewritten, at, "", "robots.txt is not what the policy publishes: "+d, fix), false
	}
	if records := slices.DeleteFunc(missing, func(l string) bool { return !isRecord(l) }); len(records) > 0 {
		return finding(codeRewritten, at, "", fmt.Sprintf("robots.txt lacks %s", countLines(records)), fix), false
	}
	f := finding(codeChanged, at, "", fmt.Sprintf("robots.txt differs from what the policy publishes, but says the same about crawling; it has %s", countLines(added)), "")
	if len(added) == 0 {
		f.Message = "robots.txt lacks comments of the policy's; it says the same"
	}
	return f, false
}

// isRecord reports whether a line says something other than Allow, Disallow and User-agent, which
// are compared by what they mean.
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

// lineDifference returns the lines that only one of two files has, trimmed, without empty ones.
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

// reader is a crawler as far as robots.txt distinguishes crawlers.
type reader struct {
	name        string
	names       []string // whose group it obeys, the first that has one
	ignoresStar bool
}

// readers are all crawlers of the policy, and one that it does not know.
func (a *auditor) readers() []reader {
	all := []reader{{name: otherCrawler}}
	a.o.Policy.Policy.Crawlers(func(_ policy.CrawlerID, c policy.Crawler) bool {
		all = append(all, reader{c.Token, append([]string{c.Token}, c.Follows...), c.IgnoresStar})
		return true
	})
	return all
}

// decisionDifference describes what two files decide differently, or returns "". Each pattern of a
// crawler's groups is tried with a path that it matches.
func (a *auditor) decisionDifference(want, got *robotsTxt) string {
	var laxer, stricter []string
	example := map[bool]string{}
	all := a.readers()
	differences := map[[2]*group]difference{} // crawlers of the same groups are treated alike
	for _, r := range all {
		pair := [2]*group{want.groupOf(r.names, r.ignoresStar), got.groupOf(r.names, r.ignoresStar)}
		d, ok := differences[pair]
		if !ok {
			d = compare(want, got, r, pair)
			differences[pair] = d
		}
		if d.path == "" {
			continue
		}
		if example[d.laxer] == "" {
			example[d.laxer] = d.path
		}
		if d.laxer {
			laxer = append(laxer, r.name)
		} else if !a.o.Merged {
			stricter = append(stricter, r.name)
		}
	}
	var parts []string
	if len(laxer) > 0 {
		parts = append(parts, fmt.Sprintf("%s may fetch what the policy closes, such as %s", whichReaders(laxer, len(all)), example[true]))
	}
	if len(stricter) > 0 {
		parts = append(parts, fmt.Sprintf("%s may not fetch what the policy leaves open, such as %s", whichReaders(stricter, len(all)), example[false]))
	}
	return strings.Join(parts, "; ")
}

// difference is a path that only one of two files allows; "" for none.
type difference struct {
	path  string
	laxer bool // it is allowed as it is served
}

func compare(want, got *robotsTxt, r reader, pair [2]*group) difference {
	for _, path := range examplePaths(pair[:]) {
		w, g := want.decide(r.names, r.ignoresStar, path).allowed, got.decide(r.names, r.ignoresStar, path).allowed
		if want.work < 0 || got.work < 0 {
			break
		}
		if w != g {
			return difference{path, g}
		}
	}
	return difference{}
}

// whichReaders names some of all readers, the best known first.
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

func examplePaths(groups []*group) []string {
	paths := []string{"/"}
	for _, g := range groups {
		if g == nil {
			continue
		}
		for _, b := range g.blocks {
			for i := range b.rules {
				p := strings.TrimSuffix(strings.ReplaceAll(b.rules[i].pattern.String(), "*", "x"), "$")
				paths = append(paths, "/"+strings.TrimPrefix(p, "/"))
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
