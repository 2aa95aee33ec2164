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

// KeepsSubject is the subject of [SearchKeeps].
type KeepsSubject struct {
	// Comparison has what search engines lose anywhere.
	Comparison claim.Known[*compare.Losses] `gap:"comparison" what:"the two policies were not compared"`
	// Traffic has what search engines lose of what they requested. If it was not read, or has no request, any loss of
	// the comparison counts.
	Traffic  claim.Known[*SearchLoss] `gap:"-"`
	First    bool                     // there is no previous policy
	Limit    int64                    // how many requests of the traffic search engines may lose
	Accepted []string                 // search engines whose losses are accepted
}

// SearchKeeps is the claim that search engines lose nothing, except by rules that say that this is intended.
//
// With traffic, a search engine loses what it requested; of what it did not request, only nearly a whole host counts,
// and exceeds every limit. For a first policy too, only nearly a whole host counts.
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
	if s.First {
		whole = slices.DeleteFunc(whole, isStaging)
	}
	f := claim.Finding{
		Unjudged: "It cannot be judged whether search engines lose anything",
		Matters: func(g claim.Gap) bool {
			if g.Name == gapRepeated { // who loses nothing of what is counted twice loses nothing
				return false
			}
			return slices.ContainsFunc(found, func(f compare.Found) bool { return g.Crawler == "" || f.Crawler == g.Crawler }) || isOfComparison(g)
		},
	}
	traffic, covered := s.Traffic.Get()
	switch {
	case len(whole) > 0:
		f.Fails, f.Text, f.Details = true, "Search engines lose nearly a whole host", losses.WordsOf(whole)
		if covered.Items > 0 {
			f.Details = append(f.Details, traffic.details()...)
		}
	case s.First:
		f.Text, f.Details = "No search engine loses nearly a whole host", asked(losses.WordsOf(found))
		if covered.Items > 0 {
			f.Details = traffic.details()
		}
		f.Matters = isOfComparison
	case covered.Items == 0:
		f.Fails, f.Text, f.Details = len(found) > 0, "Search engines lose something", losses.WordsOf(found)
		if !f.Fails {
			f.Text = "Search engines lose nothing, by comparison of the two policies"
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

// isStaging reports whether a first policy keeps hosts that a rule names out of the results, and asks for no more. The
// safety checks at load let such a rule pass.
func isStaging(f compare.Found) bool {
	return f.Loss&(effect.LossBlocked|effect.LossCrawl) == 0 && f.Rule != nil && len(f.Rule.Hosts) > 0
}

// isOfComparison reports whether a gap is one of the comparison, which always matters.
func isOfComparison(g claim.Gap) bool {
	return slices.Contains([]string{compare.GapTooLarge, compare.GapReverified, compare.GapUnread, "comparison"}, g.Name)
}

// ofTraffic judges by the requests of search engines.
func (s *KeepsSubject) ofTraffic(f *claim.Finding, traffic *SearchLoss, covered claim.Coverage) {
	lost := int64(0)
	for _, c := range traffic.Crawlers {
		if !c.Intended && !slices.Contains(s.Accepted, c.Crawler) {
			lost = traffic.Requests // a request may be lost in several ways, so the sum of them is not the number
		}
	}
	switch {
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
			f.Text += fmt.Sprintf(", apart from %s that are intended", english.Number(traffic.Intended))
		}
	}
	for _, g := range covered.Gaps {
		if g.Name == gapRepeated {
			f.Details = append(f.Details, "the numbers are too high: "+g.What)
		}
	}
	if traffic.Unverified > 0 {
		f.Details = append(f.Details, "not counted: "+plural(traffic.Unverified, "request")+" of unverified search engines")
	}
}

// details lists what each search engine loses, and the line to write if it is intended.
func (s *SearchLoss) details() (lines []string) {
	for _, c := range s.Crawlers {
		line := fmt.Sprintf("%s: %s of %s %s", c.Crawler, plural(c.Requests, "request"), plural(int64(c.Paths), "path"), c.Loss)
		if len(c.Rules) > 0 {
			line += " by " + strings.Join(c.Rules, ", ")
		}
		switch {
		case c.Intended:
			line += ", as intended"
		case c.Site:
			line += ", because the new policy no longer allows it"
		default:
			line += fmt.Sprintf("; if this is intended, write %q into the rule", c.Loss.Intended())
		}
		lines = append(lines, line)
	}
	return lines
}

// shownElsewhere bounds the losses that are listed although they do not count.
const shownElsewhere = 5

func asked(words []string) []string { return listed("the policy asks for it: ", words) }

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

// Keeps judges without traffic whether search engines lose something by a policy. old is the previous policy, nil for
// the first one; below finds the robots.txt of the site itself, and is nil if the server does not merge it.
func Keeps(old, now *site.Site, below site.Below, accepted []string) claim.Claim {
	return KeepsBy(compare.Sites(old, now, compare.Options{Below: below}).Losses, old == nil, accepted)
}

// KeepsBy is Keeps with the losses of an earlier comparison. first says that there is no previous policy.
func KeepsBy(losses *compare.Losses, first bool, accepted []string) claim.Claim {
	return claim.Judge(SearchKeeps, KeepsSubject{Comparison: losses.Known(), First: first, Accepted: accepted}, accepted...)
}

// Keeps judges whether search engines lose more requests than a limit. accepted are names of search engines whose
// losses are accepted, and of gaps.
func (r *Report) Keeps(limit int64, accepted []string) claim.Claim {
	return claim.Judge(SearchKeeps, KeepsSubject{
		Comparison: r.losses.Known(), Traffic: claim.Read(&r.SearchLoss, r.Coverage), First: r.Old == "", Limit: limit, Accepted: accepted,
	}, accepted...)
}
