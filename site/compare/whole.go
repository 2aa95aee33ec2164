// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Whole returns the losses of search engines that lose nearly all paths of a host. It leaves out hosts that were
// already disallowed for the search engine in the old policy.
func (l *Losses) Whole() []Found { return l.whole }

// findWhole finds the losses for Whole among all losses.
func (a *asker) findWhole() {
	type host struct {
		crawler string
		host    policy.Host
		loss    effect.Loss
	}
	asked := map[host]bool{}
	for i := range a.losses.Found {
		f := &a.losses.Found[i]
		for _, loss := range f.Loss.Each() {
			at := host{f.Crawler, f.Host, loss}
			if asked[at] {
				continue
			}
			asked[at] = true
			if a.takesWhole(f, loss) {
				whole := *f
				whole.Loss = loss
				a.losses.whole = append(a.losses.whole, whole)
			}
		}
	}
}

func (a *asker) takesWhole(f *Found, loss effect.Loss) bool {
	was, is := a.queries(page{f.Crawler, f.Host, f.Path})
	if effect.TakesWhole(a.old.Engine, a.now.Engine, was, is, loss) {
		return true
	}
	was.Identity, is.Identity = policy.Unknown, policy.Unknown
	return a.now.Verification(is.Crawler).IsEmpty() && effect.TakesWhole(a.old.Engine, a.now.Engine, was, is, loss)
}

// These are the names of gaps in a comparison.
const (
	GapTooLarge   = "too-large"
	GapReverified = "verified-otherwise"
	GapUnread     = "site-robots-txt"
)

// Known returns the losses together with the gaps in the comparison. If l is nil, the losses are not known.
func (l *Losses) Known() claim.Known[*Losses] {
	if l == nil {
		return claim.Known[*Losses]{}
	}
	var c claim.Coverage
	if !l.Complete {
		c.Gaps = append(c.Gaps, claim.Gap{Name: GapTooLarge, What: tooLarge, Close: "use fewer paths with * in rules for named crawlers"})
	}
	for _, u := range l.Unread {
		c.Gaps = append(c.Gaps, u.gap())
	}
	for i, words := range l.unproven() {
		c.Gaps = append(c.Gaps, claim.Gap{Name: GapReverified, What: words, Crawler: l.Reverified[i]})
	}
	return claim.Read(l, c)
}
