// SPDX-License-Identifier: Apache-2.0

// Package replay decides real traffic again: it shows the effect that a policy, or the
// difference between two, would have had on the requests of access logs.
package replay

import (
	"context"
	"io"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/accesslog"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// Options configure a replay.
type Options struct {
	New   *site.Site
	Old   *site.Site // nil: nothing was blocked
	Files []string   // logs, as [accesslog.Expand] returns them
	// Stored reads the rows of a store between two times. It may be nil. StoreName is its name in the report.
	Stored    Stored
	StoreName string
	Parser    accesslog.Parser // nil: each file's format is found from its start
	Stdin     io.Reader        // for "-" among the files, by default os.Stdin
	// Host is the host of records without one. If it is empty, only rules for every host apply to them.
	Host string
	// Since and Until bound the time of the requests; the zero time does not.
	Since, Until time.Time
	Workers      int      // goroutines; by default one for each CPU
	Accept       []string // the names of gaps that are not to matter
	// Hosts bounds the comparison of the policies; nil means all hosts.
	Hosts []policy.Host
	// Below, if not nil, finds the robots.txt of the site itself, which decides where a policy says nothing.
	Below site.Below
	// Decided is called, concurrently, with each request of a crawler in a log and what the new policy
	// does about it. It may be nil.
	Decided func(*accesslog.Record, Verdict)

	losses func() *compare.Losses // what search engines may lose, found without traffic
}

// Verdict is a policy's decision on a request.
type Verdict struct {
	Crawler  string // the product token of the crawler that decided
	Identity policy.Identity
	Decision activity.Decision
	Rule     string // its name or audience; enforcement.impostors, or empty if there is none
}

// Run replays logs, or a store. An error is about reading these.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	o.losses = sync.OnceValue(func() *compare.Losses {
		return compare.Sites(o.Old, o.New, compare.Options{Hosts: o.Hosts, Below: o.Below}).Losses
	})
	workers := make([]*worker, o.Workers)
	for i := range workers {
		workers[i] = newWorker(&o)
	}
	reading := accesslog.Reading{Parser: o.Parser, Workers: o.Workers, Stdin: o.Stdin}
	result, err := reading.Read(ctx, o.Files, func(w int, r *accesslog.Record) { workers[w].record(r) })
	if err != nil {
		return nil, err
	}
	total := workers[0]
	for _, w := range workers[1:] {
		total.tally.merge(w.tally)
		total.queue.requests = append(total.queue.requests, w.queue.requests...)
		total.queue.dropped += w.queue.dropped
	}
	if o.Stored != nil {
		w := newWorker(&o)
		if err := w.store(ctx); err != nil {
			return nil, err
		}
		total.tally.repeats = total.tally.repeatedIn(&o, w.tally)
		total.tally.stored = w.tally.stored
		total.tally.merge(w.tally)
	}
	total.limitAll()
	return newReport(&o, result, total.tally), nil
}

// identifier finds who the clients of records were, as far as that can be known later: from what the
// server logged, or from the built-in address lists as of the record's day.
type identifier struct {
	verifier *verify.Verifier
	day      time.Time // on which the lists are asked
	known    map[identityKey]identity
}

type identityKey struct {
	site    *site.Site
	crawler policy.CrawlerID
	addr    netip.Addr
	day     int64
	// Facts that rule out a proof, or that can be a proof the log does not have.
	preview, unsigned bool
}

type identity struct {
	policy.Identity
	liveOnly bool // the crawler's operator publishes a proof that only a live check could use
	unproven bool // nothing could have verified it
}

func newIdentifier(sites ...*site.Site) *identifier {
	i := &identifier{known: map[identityKey]identity{}}
	var urls []string
	for _, s := range sites {
		urls = append(urls, s.File.Catalog.AddressLists()...)
	}
	i.verifier = verify.New(verify.NewLists(urls, verify.ListOptions{Now: func() time.Time { return i.day }}), verify.DNSOptions{})
	return i
}

const maxIdentities = 100_000

// identify finds who sent a record's request, as a crawler of a site. addr is the client's, invalid if
// the record has none.
func (i *identifier) identify(r *accesslog.Record, addr netip.Addr, c *client, s *site.Site, id policy.CrawlerID) identity {
	if len(r.Identity) > 0 && (len(r.Crawler) == 0 || s.Policy.Crawler(string(r.Crawler)) == id) {
		switch string(r.Identity) {
		case "unverified":
			return identity{unproven: true}
		case "verified":
			return identity{Identity: policy.Verified}
		case "impostor":
			return identity{Identity: policy.Impostor}
		}
	}
	if !addr.IsValid() || addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast() { // a proxy's, at best
		return identity{unproven: true}
	}
	k := identityKey{s, id, addr, r.Time.Unix() / 86400, c.preview, r.Unsigned}
	found, ok := i.known[k]
	if !ok {
		if len(i.known) >= maxIdentities {
			clear(i.known)
		}
		found = i.ask(k)
		i.known[k] = found
	}
	return found
}

var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func (i *identifier) ask(k identityKey) identity {
	facts := k.site.Verification(k.crawler)
	i.day = time.Unix(k.day*86400, 0)
	live := len(facts.ReverseDNS) > 0 || facts.WebBotAuth != "" && !k.unsigned
	r := i.verifier.Check(ended, crawlers.Verification{AddressLists: facts.AddressLists}, k.addr)
	unproven := len(facts.AddressLists) == 0 || i.day.After(verify.Expires(verify.SnapshotDate()))
	switch {
	case r.Status == verify.Verified:
		return identity{Identity: policy.Verified}
	case live: // a list alone does not make an impostor of it
		return identity{liveOnly: true, unproven: unproven}
	case r.Status == verify.Impostor && !k.preview:
		return identity{Identity: policy.Impostor}
	}
	return identity{unproven: unproven}
}
