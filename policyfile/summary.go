// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// HostSummary says who may crawl the pages of some hosts and who may not: pages
// about which the policy states nothing by their path.
type HostSummary struct {
	Hosts []string // as the policy writes them, or "any other host" or "every host"
	More  int      // hosts that are not in Hosts
	// In and Out count the known crawlers by category, the largest first.
	In, Out []CategoryCount
	// Unknown says whether a crawler that nothing is known about may crawl.
	Unknown bool
}

// CategoryCount is how many crawlers of a category get an answer.
type CategoryCount struct {
	Category string   // "other" for crawlers without one
	Count    int      // with this answer
	Total    int      // of the category
	Names    []string // up to three, where it is not the whole category
}

// maxSummaryHosts bounds the hosts that a summary asks about.
const maxSummaryHosts = 50

// Summary says for each host that the policy names, and for every other, who may
// come in. Hosts with the same answer are together.
func (f *File) Summary(now time.Time) []HostSummary {
	var hosts []string
	seen := map[string]bool{}
	for i := range f.Spec.Rules {
		for _, h := range f.Spec.Rules[i].Hosts {
			if !seen[string(h)] {
				seen[string(h)] = true
				hosts = append(hosts, string(h))
			}
		}
	}
	asked := append(slices.Clone(hosts[:min(len(hosts), maxSummaryHosts)]), "")
	var all []HostSummary
	at := map[string]int{}
	for _, host := range asked {
		s := f.summary(exampleHost(policy.Host(host)), now)
		key := fmt.Sprint(s)
		i, ok := at[key]
		if !ok {
			i = len(all)
			at[key] = i
			all = append(all, s)
		}
		switch {
		case host != "":
			all[i].Hosts = append(all[i].Hosts, host)
		case len(hosts) > 0:
			all[i].Hosts = append(all[i].Hosts, "any other host")
		default:
			all[i].Hosts = append(all[i].Hosts, "every host")
		}
	}
	all[len(all)-1].More = len(hosts) + 1 - len(asked)
	return all
}

// plainPage is a page about which no policy states anything by its path.
const plainPage = "/%01"

func (f *File) summary(host string, now time.Time) (s HostSummary) {
	may := func(id policy.CrawlerID) bool {
		q := policy.Query{Crawler: id, Identity: policy.Verified, Host: host, Path: plainPage, Usage: policy.Crawl, Now: now}
		return f.Policy.Decide(q).Verdict != policy.Disallowed
	}
	total := map[string]int{}
	names := map[bool]map[string][]string{true: {}, false: {}}
	for _, class := range f.Policy.Classes(host)[1:] {
		answer := may(class.Crawlers[0])
		for _, id := range class.Crawlers {
			c := f.Policy.CrawlerInfo(id)
			names[answer][c.Kind] = append(names[answer][c.Kind], c.Token)
		}
	}
	s.Unknown = may(0)
	listed := map[string]bool{}
	for _, byKind := range names {
		for _, tokens := range byKind {
			for _, t := range tokens {
				listed[t] = true
			}
		}
	}
	for _, c := range f.Policy.Crawlers {
		total[c.Kind]++
		if !listed[c.Token] { // treated like an unknown one
			names[s.Unknown][c.Kind] = append(names[s.Unknown][c.Kind], c.Token)
		}
	}
	s.In, s.Out = counts(names[true], total), counts(names[false], total)
	return s
}

func counts(names map[string][]string, total map[string]int) (counts []CategoryCount) {
	for kind, tokens := range names {
		c := CategoryCount{Category: cmp.Or(kind, "other"), Count: len(tokens), Total: total[kind]}
		if c.Count < c.Total {
			slices.SortFunc(tokens, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
			c.Names = tokens[:min(len(tokens), 3)]
		}
		counts = append(counts, c)
	}
	slices.SortFunc(counts, func(a, b CategoryCount) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(a.Category, b.Category))
	})
	return counts
}

// SummaryText writes a summary as check prints it: the hosts, and two lines.
func SummaryText(all []HostSummary) string {
	var b strings.Builder
	for _, s := range all {
		hosts := join(s.Hosts, 3)
		if s.More > 0 {
			hosts += fmt.Sprintf(" (and %d more hosts, which are not summed up)", s.More)
		}
		in, out := countText(s.In, s.Unknown), countText(s.Out, !s.Unknown)
		switch {
		case len(s.Out) == 0 && s.Unknown:
			in = everyoneText(s.In)
		case len(s.In) == 0 && !s.Unknown:
			out = everyoneText(s.Out)
		}
		fmt.Fprintf(&b, "%s:\n  may crawl:     %s\n  may not crawl: %s\n", hosts, in, out)
	}
	return b.String()
}

// ClosedText adds what the summary leaves out, as check prints it: the paths that rules
// close, and whether anyone is refused. It is empty if no rule closes anything.
func (f *File) ClosedText() string {
	var paths []string
	closes := false
	for i := range f.Spec.Rules {
		for _, st := range f.Spec.Rules[i].Statements {
			if st.Usage != policy.Crawl || st.Allow {
				continue
			}
			closes = true
			if text := st.Pattern.String(); text != "/" && !slices.Contains(paths, text) {
				paths = append(paths, text)
			}
		}
	}
	text := ""
	if len(paths) > 0 {
		text = fmt.Sprintf("  apart from:    %s, closed to some or all of them\n", join(paths, 4))
	}
	if closes && f.MaxMode() < policy.ModeLog {
		text += "  refused:       nobody; robots.txt asks crawlers to stay away. To answer 403, add \"enforce: block\" to a rule\n"
	}
	return text
}

func everyoneText(counts []CategoryCount) string {
	n := 0
	for _, c := range counts {
		n += c.Count
	}
	return fmt.Sprintf("everyone (%d known crawlers, and unknown ones)", n)
}

func join(words []string, n int) string {
	if len(words) <= n {
		return list(words, "and")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:n-1], ", "), len(words)-n+1)
}

func countText(counts []CategoryCount, unknown bool) string {
	var parts []string
	for _, c := range counts {
		switch {
		case c.Count == c.Total:
			parts = append(parts, fmt.Sprintf("%s (all %d)", c.Category, c.Count))
		case c.Count <= len(c.Names):
			parts = append(parts, fmt.Sprintf("%s (%d of %d: %s)", c.Category, c.Count, c.Total, strings.Join(c.Names, ", ")))
		default:
			parts = append(parts, fmt.Sprintf("%s (%d of %d)", c.Category, c.Count, c.Total))
		}
	}
	if unknown {
		parts = append(parts, "unknown crawlers")
	}
	if len(parts) == 0 {
		return "nobody"
	}
	return strings.Join(parts, ", ")
}
