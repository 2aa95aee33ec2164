// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/webbotauth"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// An Explainer returns the identity of a client that claims to be the crawler with these facts. The client's address is
// fixed. The second result is a sentence with the reason.
type Explainer = func(crawlers.Verification) (policy.Identity, string)

// ExplainEmbedded returns an Explainer that uses only embedded address lists whose URLs are in urls. It does not use
// the network.
func ExplainEmbedded(urls []string, addr netip.Addr) Explainer {
	lists := verify.NewLists(urls, verify.ListOptions{})
	return func(facts crawlers.Verification) (policy.Identity, string) {
		return explain(&engine{methods: Methods{Enabled: true}, lists: lists, verifier: verify.New(lists, verify.DNSOptions{})}, facts, addr)
	}
}

// ExplainRunning returns an Explainer that uses the lists and cached answers of this running server. The Explainer does
// not wait for lookups.
func ExplainRunning(addr netip.Addr) Explainer {
	return func(facts crawlers.Verification) (identity policy.Identity, evidence string) {
		evidence = "this server does not verify crawlers (verify off)"
		for _, e := range engines.All() {
			identity, evidence = explain(e, facts, addr)
			if card := e.card(facts); card != (webbotauth.Card{}) {
				evidence += "; the owner of the crawler's keys describes itself as: " + card.String()
			}
			if identity != policy.Unknown {
				return identity, evidence
			}
		}
		return identity, evidence
	}
}

// CardOf returns the signer's description of itself, or an empty Card if the description has not been fetched. facts
// contain the signer's key directory.
func CardOf(facts crawlers.Verification) (card webbotauth.Card) {
	for _, e := range engines.All() {
		card = cmp.Or(card, e.card(facts))
	}
	return card
}

func (e *engine) card(facts crawlers.Verification) webbotauth.Card {
	if e.signatures == nil || facts.WebBotAuth == "" {
		return webbotauth.Card{}
	}
	return e.signatures.Card(facts.WebBotAuth)
}

// explain checks whether an address belongs to the crawler with these facts. It returns the identity of a client at
// this address, and a sentence that describes the result.
func explain(e *engine, facts crawlers.Verification, addr netip.Addr) (policy.Identity, string) {
	facts, all := e.methods.askable(facts)
	result, lists := e.verifier.Check(canceledCtx, facts, addr), e.lists.Status()
	switch {
	case result.Identity == policy.Verified && result.By == "address-list":
		return policy.Verified, fmt.Sprintf("%s is on the list %s%s", addr, result.Evidence, asOf(result.Evidence, lists))
	case result.Identity == policy.Verified:
		return policy.Verified, fmt.Sprintf("%s resolves to %s, which resolves back to it", addr, result.Evidence)
	case result.Identity == policy.Impostor && all:
		return policy.Impostor, fmt.Sprintf("%s is not among the addresses that the operator publishes", addr)
	case len(facts.AddressLists) == 0 && len(facts.ReverseDNS) == 0:
		return policy.Unknown, fmt.Sprintf("the operator does not publish anything that lets this server verify %s", addr)
	case len(facts.AddressLists) == 0:
		return policy.Unknown, fmt.Sprintf("reverse DNS has no answer for %s yet", addr)
	}
	text := fmt.Sprintf("%s is not on %s%s", addr, facts.AddressLists[0], asOf(facts.AddressLists[0], lists))
	if !all {
		return policy.Unknown, text + "; reverse DNS was not checked"
	}
	return policy.Unknown, text + whyUndecided(facts.AddressLists, addr, lists)
}

// whyUndecided returns a clause that says why the lists do not prove that the address belongs to an impostor.
func whyUndecided(urls []string, addr netip.Addr, lists []verify.ListStatus) string {
	for _, l := range lists {
		if slices.Contains(urls, l.URL) && l.Prefixes > 0 && l.Fresh && l.Incomplete != "" {
			return "; the list does not prove that the client is an impostor: " + l.Incomplete
		}
		if slices.Contains(urls, l.URL) && !l.Fresh {
			return "; the list is too old to prove that the client is an impostor"
		}
	}
	return "; the list has only addresses of the other family (IPv4 or IPv6), so it does not prove that the client is an impostor"
}

// asOf returns a phrase with the age of a list, to be appended to a sentence.
func asOf(url string, lists []verify.ListStatus) string {
	for _, l := range lists {
		if l.URL == url && l.Prefixes > 0 {
			return " of " + l.Date.Format(time.DateOnly)
		}
	}
	return ", which is not available here"
}
