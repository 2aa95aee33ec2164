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

// An Explainer decides whether a client is the crawler with the given facts. The address of the client is not a
// parameter, because the function that returned the Explainer, such as ExplainRunning, got this address. The second
// result is a sentence with the reason for the decision.
type Explainer = func(crawlers.Verification) (policy.Identity, string)

// ExplainEmbedded returns an Explainer for a client at addr. The Explainer uses only the embedded address lists whose
// URLs are in urls. It does not use the network.
func ExplainEmbedded(urls []string, addr netip.Addr) Explainer {
	lists := verify.NewLists(urls, verify.ListOptions{})
	return func(facts crawlers.Verification) (policy.Identity, string) {
		return explain(&engine{methods: Methods{Enabled: true}, lists: lists, verifier: verify.New(lists, verify.DNSOptions{})}, facts, addr)
	}
}

// ExplainRunning returns an Explainer for a client at addr. The Explainer uses the lists and cached answers of the
// running server. It does not wait for lookups.
func ExplainRunning(addr netip.Addr) Explainer {
	return func(facts crawlers.Verification) (identity policy.Identity, evidence string) {
		evidence = "this server does not verify crawlers (verify off)"
		for _, e := range engines.All() {
			identity, evidence = explain(e, facts, addr)
			if card := e.card(facts); card != (webbotauth.Card{}) {
				evidence += "; the owner of the keys that sign the crawler's requests states: " + card.String()
			}
			if identity != policy.Unknown {
				return identity, evidence
			}
		}
		return identity, evidence
	}
}

// CardOf returns a signer's description of itself, or an empty Card if the description has not been fetched. facts
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

// explain checks whether addr belongs to the crawler with the given facts. It returns the identity of a client at addr,
// and a sentence that describes the result.
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

// whyUndecided returns a clause that says why the lists at urls do not prove that addr belongs to an impostor.
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

// asOf returns a phrase with the date of the list at url, to be appended to the name of the list. If the list has no
// prefixes, the phrase says that the list is not available.
func asOf(url string, lists []verify.ListStatus) string {
	for _, l := range lists {
		if l.URL == url && l.Prefixes > 0 {
			return " of " + l.Date.Format(time.DateOnly)
		}
	}
	return ", which is not available here"
}
