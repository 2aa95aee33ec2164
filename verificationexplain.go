// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// verifyByEmbedded answers for an address by the lists that came with the program:
// nothing goes out to the network.
func verifyByEmbedded(s *site.Site, addr netip.Addr) func(crawlers.Verification) (policy.Identity, string) {
	urls, _ := s.AddressLists()
	lists := verify.NewLists(urls, verify.ListOptions{})
	return func(facts crawlers.Verification) (policy.Identity, string) {
		others := len(facts.ReverseDNS) > 0
		facts.ReverseDNS = nil
		result := verify.New(lists, verify.DNSOptions{}).Check(over, facts, addr)
		return words(result, facts, others, addr, lists.Status())
	}
}

// verifyByHeld answers for an address by what this server knows now. What would have
// to be looked up first is not waited for.
func verifyByHeld(addr netip.Addr) func(crawlers.Verification) (policy.Identity, string) {
	return func(facts crawlers.Verification) (identity policy.Identity, evidence string) {
		evidence = "nothing is verified on this server (verify off)"
		for _, c := range heldCheckers() {
			asked := facts
			others := !c.dns && len(facts.ReverseDNS) > 0
			if !c.dns {
				asked.ReverseDNS = nil
			}
			identity, evidence = words(c.verifier.Check(over, asked, addr), asked, others, addr, c.lists.Status())
			if identity != policy.Unknown {
				return identity, evidence
			}
		}
		return identity, evidence
	}
}

// words puts what was found about an address into words. Others says that there is
// more to ask than was asked, so that nobody can be an impostor.
func words(r verify.Result, facts crawlers.Verification, others bool, addr netip.Addr, lists []verify.ListStatus) (policy.Identity, string) {
	switch {
	case r.Status == verify.Verified && r.By == "address-list":
		return policy.Verified, fmt.Sprintf("%s is on the list %s%s", addr, r.Evidence, asOf(r.Evidence, lists))
	case r.Status == verify.Verified:
		return policy.Verified, fmt.Sprintf("%s has the name %s, which leads back to it", addr, r.Evidence)
	case r.Status == verify.Impostor && !others:
		return policy.Impostor, fmt.Sprintf("%s is none of the addresses that its operator publishes", addr)
	case facts.IsEmpty():
		return policy.Unknown, "there is nothing that " + addr.String() + " could be looked up in"
	case len(facts.AddressLists) == 0:
		return policy.Unknown, "reverse DNS has no answer for " + addr.String() + " yet"
	}
	text := fmt.Sprintf("%s is not on %s%s", addr, facts.AddressLists[0], asOf(facts.AddressLists[0], lists))
	if others {
		return policy.Unknown, text + ", but its name was not asked for (reverse DNS)"
	}
	return policy.Unknown, text + ", which is not up to date, so that this says nothing against it"
}

// asOf is the date of a list, or that there is none.
func asOf(url string, lists []verify.ListStatus) string {
	for _, l := range lists {
		if l.URL == url && l.Prefixes > 0 {
			return " of " + l.Date.Format(time.DateOnly)
		}
	}
	return ", which this program has not got"
}
