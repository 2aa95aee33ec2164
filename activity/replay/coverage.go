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

// unsaid names data about requests a search engine may lose that the traffic lacks.
type unsaid struct {
	crawler  string
	identity policy.Identity
	gap      string
}

// The names of the gaps that a replay finds. The close of each says what the user can do.
const (
	gapHosts     = "unlogged-hosts"
	gapQueries   = "unstored-queries"
	gapFolded    = "summed-paths"
	gapSilence   = "no-traffic"
	gapTrafficTo = "traffic-ends"
	gapFuture    = "future-traffic"
	gapRepeated  = "repeated-requests" // counted twice
)

var unsaidWords = map[string]struct{ what, fix string }{
	gapHosts:   {"without a host in the log", "name the host with --host"},
	gapQueries: {"whose query was not stored", "replay the access log instead"},
	gapFolded:  {"whose paths were summed up", "give the option activity more rows_per_hour"},
}

// maxGap is the time that a small site may be without a request.
const maxGap = 36 * time.Hour

// A clock may be ahead by maxAhead.
const maxAhead = time.Hour

// coverage says what the traffic covers, and what it lacks.
func (t *tally) coverage(o *Options, read accesslog.Result) claim.Coverage {
	c := claim.Unite(read.Coverage(), t.stored)
	c.Items, c.From, c.To = t.requests, t.first, t.last // those within the time that was asked for
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
	if o.Since.IsZero() || t.requests == 0 {
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

// missingHosts returns a gap for each host where search engines lose something and that has no request in the logs. A store
// has the requests of all hosts.
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
				Name: gapHosts, Host: string(f.Host), What: "no request for " + string(f.Host) + " is in the log, and search engines may lose something there",
				Close: "add the log of this host",
			})
		}
	}
	return gaps
}

func day(at time.Time) string { return at.UTC().Format("2 January 2006") }

// periodWords says when the traffic was, for a sentence.
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
