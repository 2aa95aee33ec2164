// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"net/netip"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/accesslog"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// identifier finds who the clients of records were, as far as that can be known
// afterwards: by what the server itself had found and logged, or by the address
// lists that came with the program, as of the record's day.
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
	// What rules out, or can be, a proof that the log does not have.
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
		urls = append(urls, s.File.Catalogue.AddressLists()...)
	}
	i.verifier = verify.New(verify.NewLists(urls, verify.ListOptions{Now: func() time.Time { return i.day }}), verify.DNSOptions{})
	return i
}

// maxIdentities bounds how many clients a worker remembers.
const maxIdentities = 100_000

// identify finds who sent a record's request, as the crawler id of a site. The address
// is the client's, invalid if the record has none.
func (i *identifier) identify(r *accesslog.Record, addr netip.Addr, c *client, s *site.Site, id policy.CrawlerID) identity {
	if len(r.Identity) > 0 && (len(r.Crawler) == 0 || s.Policy.Crawler(string(r.Crawler)) == id) {
		switch string(r.Identity) {
		case "unknown":
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

// ended is a context in which nothing is looked up.
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
