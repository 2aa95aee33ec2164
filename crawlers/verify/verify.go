// SPDX-License-Identifier: Apache-2.0

// Package verify finds out whether a client that claims to be a crawler is that
// crawler. There are three answers: verified, impostor and unknown.
//
// It uses what operators publish: lists of their addresses, which [Lists] refreshes in the background, and host names
// that their addresses resolve to and that resolve back to them. It needs the address of the client itself. Behind a
// proxy the caller has to determine that first, or every crawler would be an impostor.
package verify

import (
	"context"
	"net/netip"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// Status says whether a client is the crawler it claims to be. The zero value is [Unknown].
type Status uint8

const (
	// Unknown: nothing is published, or not everything could be checked. It must not be held against the client.
	Unknown Status = iota
	// Verified: the address is on a published list, or has a published name that resolves back to it.
	Verified
	// Impostor: everything that is published could be checked and rules the address out.
	Impostor
)

// String returns the status in lower case.
func (s Status) String() string { return [...]string{"unverified", "verified", "impostor"}[s] }

// Result is a [Status] and its evidence.
type Result struct {
	Status   Status
	By       string // "address-list", "reverse-dns", or empty for [Unknown] and [Impostor]
	Evidence string // the list's URL or the host name
}

// Verifier verifies the addresses of all crawlers. It is safe for concurrent use.
type Verifier struct {
	lists *Lists
	names *names
}

// New returns a verifier that uses lists and a resolver with the given options. It opens no connection.
func New(lists *Lists, options DNSOptions) *Verifier {
	return &Verifier{lists: lists, names: newNames(options)}
}

// Check reports whether an address is one of the crawler with these facts. It waits for the resolver no longer than
// [DNSOptions.Timeout] and until ctx is done; the answer is [Unknown] then. If ctx is done already it does not wait
// at all: it answers from the cache and looks the address up in the background.
//
// Address lists and reverse DNS are alternatives: one of them verifies. An impostor is ruled out by each that is
// published. A list rules an address out only if it is fresh (see [ListOptions.MaxAge]) and complete (see
// [ListStatus.Incomplete]) and has other addresses of the same family. DNS does so only if the resolver has been seen
// to work. A matching name that does not resolve at all is not enough to rule an address out, because some operators
// do not maintain the forward records.
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
	case name == no && (list == no || len(facts.AddressLists) == 0), name == noForward && list == no:
		return Result{Status: Impostor}
	}
	return Result{}
}

type answer uint8

const (
	silent answer = iota
	yes
	no
	noForward // a matching name that does not resolve
)

// isPublic reports whether an address can be a crawler's: it is not private or local.
func isPublic(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.IsPrivate() && !cgnat.Contains(a)
}

// cgnat is the shared address space of RFC 6598.
var cgnat = netip.MustParsePrefix("100.64.0.0/10")
