// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// KeepsSubject holds the data for the claim [SearchKeeps].
type KeepsSubject struct {
	// Comparison holds the losses of search engines that a comparison of the previous and the new policy found, on all
	// hosts and paths.
	Comparison claim.Known[*compare.Losses] `gap:"comparison" what:"the two policies were not compared"`
	// Traffic holds the search engines' requests that would be lost. If the traffic was not read or has no requests,
	// only Comparison decides whether the claim fails.
	Traffic  claim.Known[*SearchLoss] `gap:"-"`
	First    bool                     // there is no previous policy
	Limit    int64                    // number of requests in the traffic that search engines may lose
	Accepted []string                 // names of search engines whose losses are accepted
}

// SearchKeeps is the claim that search engines lose nothing, except because of rules whose author intended the loss. If
// there is traffic, the claim fails if more requests are lost than a limit allows. It also fails if a search engine
// loses nearly a whole host (see [compare.Losses.Whole]), even if the traffic has no request for that host. For a first
// policy, such a loss is the only reason why the claim can fail.
var SearchKeeps = claim.Register("search-keeps", judgeKeeps)

func judgeKeeps(s KeepsSubject) claim.Finding {
	losses, _ := s.Comparison.Get()
	if losses == nil {
		losses = new(compare.Losses)
	}
	notAccepted := func(all []compare.Found) []compare.Found {
		return slices.DeleteFunc(slices.Clone(all), func(f compare.Found) bool { return slices.Contains(s.Accepted, f.Crawler) })
	}
	found, whole := notAccepted(losses.Found), notAccepted(losses.Whole())
	var staging []string
	if s.First {
		whole = slices.DeleteFunc(whole, func(f compare.Found) bool {
			named := isStaging(f)
			if host := string(f.Host); named && !slices.Contains(staging, host) {
				staging = append(staging, host)
			}
			return named
		})
	}
	f := claim.Finding{
		Unjudged: "It cannot be judged whether search engines lose anything",
		Matters: func(g claim.Gap) bool {
			if g.Name == gapRepeated { // a request counted twice cannot hide a loss; but see ofTraffic
				return false
			}
			return slices.ContainsFunc(found, func(f compare.Found) bool { return g.Crawler == "" || f.Crawler == g.Crawler }) || isOfComparison(g)
		},
	}
	traffic, covered := s.Traffic.Get()
	switch {
	case len(whole) > 0:
		f.Fails, f.Text, f.Details = true, "Search engines lose nearly all pages of a host", losses.WordsOf(whole)
		if covered.Items > 0 {
			f.Details = append(f.Details, traffic.details()...)
		}
	case s.First:
		f.Text, f.Details = "No search engine loses nearly all pages of a host", asked(losses.WordsOf(found))
		if len(staging) > 0 {
			f.Text += ", apart from hosts that a rule keeps out of search results: " + english.Some(staging, 3)
		}
		if covered.Items > 0 {
			f.Details = traffic.details()
		}
		f.Matters = isOfComparison
	case covered.Items == 0:
		f.Fails, f.Text, f.Details = len(found) > 0, "Search engines lose something", losses.WordsOf(found)
		if !f.Fails {
			f.Text = "Search engines do not lose anything, according to a comparison of the two policies"
		}
	default:
		s.ofTraffic(&f, traffic, covered)
		if traffic.Requests == 0 {
			f.Details = append(f.Details, notRequested(losses.WordsOf(found))...)
		}
	}
	if f.Details = append(f.Details, listed("AI search: ", losses.WordsOf(losses.AI))...); len(losses.AI) > 0 && !f.Fails {
		f.Text += "; AI search loses something"
	}
	return f
}

// isStaging reports whether the loss f comes from a rule that names hosts, and only removes their pages from search
// results, without disallowing or blocking requests. In a first policy, the safety checks at load allow such a rule,
// for example for a staging server.
func isStaging(f compare.Found) bool {
	return f.Loss&(effect.LossBlocked|effect.LossCrawl) == 0 && f.Rule != nil && len(f.Rule.Hosts) > 0
}

// isOfComparison reports whether the gap g means that the comparison of the two policies is incomplete, in contrast to
// a gap in the traffic. Such a gap matters even if the comparison found no loss.
func isOfComparison(g claim.Gap) bool {
	return slices.Contains([]string{compare.GapTooLarge, compare.GapReverified, compare.GapUnread, "comparison"}, g.Name)
}

// ofTraffic completes the finding f with the result from the traffic: how many requests search engines would lose.
func (s *KeepsSubject) ofTraffic(f *claim.Finding, traffic *SearchLoss, covered claim.Coverage) {
	lost := int64(0)
	for _, c := range traffic.Crawlers {
		if !c.Intended && !slices.Contains(s.Accepted, c.Crawler) {
			lost = traffic.Requests // not the sum of all losses, because a request may be lost in several ways
		}
	}
	repeated := slices.DeleteFunc(slices.Clone(covered.Gaps), func(g claim.Gap) bool { return g.Name != gapRepeated })
	// A request that n logs contain is a reason for at least n-1 of these gaps.
	copies := int64(len(repeated)) + 1
	atLeast := (lost + copies - 1) / copies
	switch {
	case lost > s.Limit && atLeast <= s.Limit && !slices.Contains(s.Accepted, gapRepeated):
		f.Unjudged, f.Details = "It cannot be judged whether search engines lose more than "+plural(s.Limit, "request"), traffic.details()
		others := f.Matters
		f.Matters = func(g claim.Gap) bool { return g.Name == gapRepeated || others(g) }
		repeated = nil // the claim lists these gaps
	case lost > s.Limit:
		f.Fails, f.Text, f.Details = true, "Search engines lose "+plural(lost, "request")+" "+periodWords(covered), traffic.details()
		if s.Limit > 0 {
			f.Text += ", and the limit is " + english.Number(s.Limit)
		}
	case lost > 0:
		f.Text, f.Details = fmt.Sprintf("Search engines lose %s %s, and the limit is %s", plural(lost, "request"), periodWords(covered), english.Number(s.Limit)), traffic.details()
	default:
		f.Text, f.Details = "Search engines lose none of their requests "+periodWords(covered), traffic.details()
		if traffic.Intended > 0 {
			f.Text += fmt.Sprintf(", apart from %s whose loss is intended", english.Number(traffic.Intended))
		}
	}
	for _, g := range repeated {
		f.Details = append(f.Details, "the numbers are too high: "+g.What)
	}
	if traffic.Unverified > 0 {
		f.Details = append(f.Details, "not counted: "+plural(traffic.Unverified, "request")+" of unverified search engines")
	}
}

// details lists the losses of each search engine, with the line to add to the policy if a loss is intended.
func (s *SearchLoss) details() (lines []string) {
	for _, c := range s.Crawlers {
		line := fmt.Sprintf("%s: %s for %s %s", c.Crawler, plural(c.Requests, "request"), plural(int64(c.Paths), "path"), c.Loss)
		if len(c.Rules) > 0 {
			line += " by " + strings.Join(c.Rules, ", ")
		}
		switch {
		case c.Intended:
			line += ", as intended"
		case c.Site:
			line += ", because the new policy no longer has an allow entry there"
		default:
			line += fmt.Sprintf("; if this is intended, write %q into the rule", c.Loss.Intended())
		}
		lines = append(lines, line)
	}
	return lines
}

// shownElsewhere is the maximum number of lines about losses on paths that the traffic does not have. Only the
// comparison of the policies finds these losses.
const shownElsewhere = 5

func asked(words []string) []string { return listed("the policy has this effect: ", words) }

func notRequested(words []string) []string {
	return listed("not requested in this traffic: ", words)
}

func listed(before string, words []string) (lines []string) {
	for i, w := range words {
		if i == shownElsewhere {
			return append(lines, before+"and "+plural(int64(len(words)-i), "more place"))
		}
		lines = append(lines, before+w)
	}
	return lines
}

// Keeps judges the claim that search engines lose nothing because of the policy now. It compares now with the previous
// policy old, which is nil if now is the first policy, and does not use traffic. below finds the site's own robots.txt;
// it is nil if the server does not merge that file. For accepted, see [Report.Keeps].
func Keeps(old, now *site.Site, below site.Below, accepted []string) claim.Claim {
	return KeepsBy(compare.Sites(old, now, compare.Options{Below: below}).Losses, old == nil, accepted)
}

// KeepsBy is like Keeps, but uses the losses of an earlier comparison. first is true if there is no previous policy.
func KeepsBy(losses *compare.Losses, first bool, accepted []string) claim.Claim {
	return claim.Judge(SearchKeeps, KeepsSubject{Comparison: losses.Known(), First: first, Accepted: accepted}, accepted...)
}

// Keeps judges the claim that search engines lose at most limit requests. accepted contains the names of search engines
// whose losses are accepted, and the names of accepted gaps.
func (r *Report) Keeps(limit int64, accepted []string) claim.Claim {
	return claim.Judge(SearchKeeps, KeepsSubject{
		Comparison: r.losses.Known(), Traffic: claim.Read(&r.SearchLoss, r.Coverage), First: r.Old == "", Limit: limit, Accepted: accepted,
	}, accepted...)
}
