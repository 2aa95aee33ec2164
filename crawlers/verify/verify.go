// SPDX-License-Identifier: Apache-2.0

// Package verify tells whether a request that carries a crawler's name comes
// from that crawler. There are three answers: verified, impostor, and unknown.
//
// It asks what operators publish: lists of their addresses, which [Lists]
// refreshes in the background, and names that their addresses resolve to and
// that resolve back to them. It needs the address of the client itself; behind
// a proxy, the caller has to find that out first, since the proxy's own address
// would make an impostor of every crawler.
package verify

import (
	"context"
	"net/netip"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// Status is the answer to whether a crawler is what it says. The zero value is
// [Unknown].
type Status uint8

const (
	// Unknown: nothing is published, or not all of it could be asked. It is
	// never to be held against anybody.
	Unknown Status = iota
	// Verified: the address is on a published list, or has a published name that
	// resolves back to it.
	Verified
	// Impostor: all that is published could be asked and says no.
	Impostor
)

// String returns the status in the words of the documentation.
func (s Status) String() string {
	switch s {
	case Verified:
		return "verified"
	case Impostor:
		return "impostor"
	}
	return "unknown"
}

// Result is a [Status] and what it rests on.
type Result struct {
	Status Status
	// By is "address-list", "reverse-dns", or empty for [Unknown] and [Impostor].
	By string
	// Evidence is the list's URL or the host name.
	Evidence string
}

// Verifier answers for all crawlers. It is safe for concurrent use.
type Verifier struct {
	lists *Lists
	names *names
}

// New returns a verifier that asks lists, which may be nil, and a resolver with
// the given options. It opens no connection.
func New(lists *Lists, options DNSOptions) *Verifier {
	return &Verifier{lists: lists, names: newNames(options)}
}

// Check tells whether a client address is one of the crawler's that published
// facts. It waits for the resolver no longer than [DNSOptions.Timeout] or the
// context lasts; the answer then is [Unknown]. With a context that has ended it
// does not wait at all: it tells what is known, and has the rest looked up for the
// next time.
//
// Address lists and reverse DNS are alternatives: one yes verifies. An impostor
// is only who gets a no from each that is published. A list says no only while
// it is fresh (see [ListOptions.MaxAge]). A name that fits but does not resolve
// at all is no evidence against anybody, unless a list says no as well: some
// operators do not maintain the way back.
func (v *Verifier) Check(ctx context.Context, facts crawlers.Verification, addr netip.Addr) Result {
	addr = addr.Unmap().WithZone("")
	if !isPublic(addr) {
		return Result{}
	}
	list := silent
	if len(facts.AddressLists) > 0 {
		var url string
		if list, url = v.lists.ask(facts.AddressLists, addr); list == yes {
			return Result{Verified, "address-list", url}
		}
	}
	if len(facts.ReverseDNS) == 0 {
		if list == no {
			return Result{Status: Impostor}
		}
		return Result{}
	}
	name, host := v.names.ask(ctx, facts.ReverseDNS, addr)
	switch {
	case name == yes:
		return Result{Verified, "reverse-dns", host}
	case name == no && (list == no || len(facts.AddressLists) == 0), name == noWayBack && list == no:
		return Result{Status: Impostor}
	}
	return Result{}
}

// answer is what one kind of evidence says.
type answer uint8

const (
	silent answer = iota
	yes
	no
	noWayBack // the name fits, but does not resolve
)

// isPublic reports whether an address can be a crawler's: not one of the own
// network or machine.
func isPublic(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.IsPrivate() && !cgnat.Contains(a)
}

// cgnat is the shared address space of RFC 6598.
var cgnat = netip.MustParsePrefix("100.64.0.0/10")
