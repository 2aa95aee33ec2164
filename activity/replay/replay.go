// SPDX-License-Identifier: Apache-2.0

// Package replay applies policies to past traffic. It shows the effect that a policy would have had on past requests,
// or the different effects of two policies. It also counts losses: a search engine loses a request if the new policy
// blocks or disallows it, or restricts the search results for its page, and the old policy did not.
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

// Options configures a replay.
type Options struct {
	New   *site.Site
	Old   *site.Site // previous policy; nil means that no request was blocked
	Files []string   // logs, as [accesslog.Expand] returns them
	// Stored reads the rows of an activity database between two times. If Stored is nil, only logs are read. StoreName
	// is the name of the database in the report.
	Stored    Stored
	StoreName string
	Parser    accesslog.Parser // if nil, the format of each line is detected
	Stdin     io.Reader        // standard input, for the file name "-"; default os.Stdin
	// Host is the host to assume for records without a host. If it is empty, only rules for every host apply to such
	// records.
	Host string
	// Since and Until limit the period of the requests. A zero time means that there is no limit.
	Since, Until time.Time
	Workers      int      // number of goroutines; default: number of CPUs
	Accept       []string // names of accepted gaps, and of search engines whose losses are accepted
	// Hosts are the hosts for which the policies are compared; nil means all hosts.
	Hosts []policy.Host
	// Below, if not nil, finds the robots.txt of the site itself, which applies where the policy has no rule.
	Below site.Below
	// Decided is called with each request of a crawler in a log, and with the new policy's decision on this request.
	// Calls may be concurrent. Decided may be nil.
	Decided func(*accesslog.Record, Verdict)

	losses func() *compare.Losses // returns the losses that a comparison of the policies finds
}

// Verdict is a policy's decision on a request.
type Verdict struct {
	Crawler  string // product token of the crawler whose rules decided
	Identity policy.Identity
	Decision activity.Decision
	Rule     string // name or audience of the rule, or enforcement.impostors; empty if no rule decided
}

// Run replays logs, an activity database, or both. It returns an error if the logs or the database cannot be read.
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

// identifier determines the identities of past clients. It uses the results that the server logged, or the built-in
// address lists.
type identifier struct {
	verifier *verify.Verifier
	day      time.Time // the day whose address lists are used
	known    map[identityKey]identity
}

type identityKey struct {
	site    *site.Site
	crawler policy.CrawlerID
	addr    netip.Addr
	day     int64
	// preview means that the client may be a link preview on a user's device. unsigned means that the request had no
	// signature.
	preview, unsigned bool
}

type identity struct {
	policy.Identity
	liveOnly bool // the operator publishes a proof that can only be checked while the request is served
	unproven bool // if the client is unverified, reports whether the identity could not have been verified
}

// recorded returns the identity that a server recorded. ok is false if the text is not an identity.
func recorded(text string) (_ identity, ok bool) {
	for _, i := range []policy.Identity{policy.Unknown, policy.Impostor, policy.Verified} {
		if text == i.String() {
			return identity{Identity: i, unproven: i == policy.Unknown}, true
		}
	}
	return identity{unproven: true}, false
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

// identify determines whether the client of a record is the crawler that it claims to be. id is the crawler's ID in the
// policy of s. addr is the client's address; it is not valid if the record does not have an address.
func (i *identifier) identify(r *accesslog.Record, addr netip.Addr, c *client, s *site.Site, id policy.CrawlerID) identity {
	if len(r.Identity) > 0 && (len(r.Crawler) == 0 || s.Policy.Crawler(string(r.Crawler)) == id) {
		if found, ok := recorded(string(r.Identity)); ok {
			return found
		}
	}
	// Without a public address, the client cannot be verified: a private address belongs to a proxy, not to a crawler.
	if !addr.IsValid() || addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast() {
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
	case r.Identity == policy.Verified:
		return identity{Identity: policy.Verified}
	case live: // the client may have proven its identity by DNS or a signature, so it may not be an impostor
		return identity{liveOnly: true, unproven: unproven}
	case r.Identity == policy.Impostor && !k.preview:
		return identity{Identity: policy.Impostor}
	}
	return identity{unproven: unproven}
}
