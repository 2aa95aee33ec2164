// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/accesslog"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// unsaid identifies requests of a crawler that lack some data in the traffic, such as the host. Without this data, it
// is unknown whether a search engine loses the requests.
type unsaid struct {
	crawler  string
	identity policy.Identity
	gap      string
}

// The names of the gaps that a replay finds.
const (
	gapHosts     = "unlogged-hosts"
	gapQueries   = "unstored-queries"
	gapFolded    = "summed-paths"
	gapSilence   = "no-traffic"
	gapTrafficTo = "traffic-ends"
	gapFuture    = "future-traffic"
	gapRepeated  = "repeated-requests" // requests counted twice
)

var unsaidWords = map[string]struct{ what, fix string }{
	gapHosts:   {"without a host in the log", "name the host with --host"},
	gapQueries: {"whose query was not stored", "replay the access log instead"},
	gapFolded:  {"whose paths were not stored", "in the option \"activity\", set a larger rows_per_hour"},
}

// maxGap is the longest time without a request that is normal even for a small site.
const maxGap = 36 * time.Hour

// maxAhead limits how far a server's clock may be ahead. Traffic with later times has the gap gapFuture.
const maxAhead = time.Hour

// coverage returns the period and the number of requests that the traffic covers, and the gaps in it.
func (t *tally) coverage(o *Options, read accesslog.Result) claim.Coverage {
	c := claim.Unite(claim.Coverage{Gaps: read.Gaps}, t.stored)
	c.Items, c.From, c.To = t.requests, t.first, t.last // only requests within the selected period
	verifiable := t.verifiable()
	for u, n := range t.unsaid {
		if u.identity == policy.Verified || u.identity == policy.Unknown && !verifiable[u.crawler] {
			words := unsaidWords[u.gap]
			c.Gaps = append(c.Gaps, claim.Gap{
				Name: u.gap, Crawler: u.crawler, Count: n, Close: words.fix,
				What: plural(n, "request") + " of " + u.crawler + " " + words.what,
			})
		}
	}
	c.Gaps = slices.Concat(c.Gaps, t.repeats, t.repeated(o.Files), t.missingHosts(o))
	slices.SortStableFunc(c.Gaps, func(a, b claim.Gap) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Crawler, b.Crawler))
	})
	if time.Until(t.last) > maxAhead {
		c.Gaps = append(c.Gaps, claim.Gap{
			Name: gapFuture, To: t.last, What: "the traffic has times in the future, up to " + t.last.UTC().Format("2 January 2006, 15:04") + " UTC",
			Close: "find out which server's clock or time zone is wrong",
		})
	}
	if t.requests == 0 {
		c.Gaps = append(c.Gaps, claim.Gap{Name: gapSilence, What: "the traffic has no requests", Close: "give logs that contain requests, or choose a longer period"})
		return c
	}
	if o.Since.IsZero() {
		return c
	}
	if from, to := t.gap(); !to.IsZero() {
		c.Gaps = append(c.Gaps, claim.Gap{
			Name: gapSilence, From: from, To: to, What: "there is no traffic from " + day(from) + " to " + day(to), Close: "add the logs of these days",
		})
	}
	if time.Since(t.last) > maxGap {
		c.Gaps = append(c.Gaps, claim.Gap{Name: gapTrafficTo, From: t.last, What: "the traffic ends on " + day(t.last), Close: "add newer logs"})
	}
	return c
}

// missingHosts returns a gap for each host where search engines lose something although the logs have no request for
// this host. An activity database contains the requests for all hosts, so it has no such gaps.
func (t *tally) missingHosts(o *Options) (gaps []claim.Gap) {
	if o.Old == nil || o.Stored != nil || t.requests == 0 || t.hostless > 0 || o.Host != "" || len(t.hosts) >= maxHosts {
		return nil
	}
	logged := func(h policy.Host) bool {
		for name := range t.hosts {
			if h.Covers(policy.NormalizeHost(name)) {
				return true
			}
		}
		return false
	}
	missing := map[policy.Host]bool{}
	for _, f := range o.losses().Found {
		if f.Host != "" && !missing[f.Host] && !logged(f.Host) {
			missing[f.Host] = true
			gaps = append(gaps, claim.Gap{
				Name: gapHosts, Host: string(f.Host), What: "the log has no request for " + string(f.Host) + ", so it does not show how many requests search engines may lose on this host",
				Close: "add the log of this host",
			})
		}
	}
	return gaps
}

func day(at time.Time) string { return at.UTC().Format("2 January 2006") }

// periodWords returns the period of the traffic as part of a sentence.
func periodWords(c claim.Coverage) string {
	if day(c.From) == day(c.To) {
		return "on " + day(c.From)
	}
	return "from " + day(c.From) + " to " + day(c.To)
}

func plural(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return english.Number(n) + " " + what
}
