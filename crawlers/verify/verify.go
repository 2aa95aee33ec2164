// SPDX-License-Identifier: Apache-2.0

// Package verify finds out whether a client that claims to be a crawler is that crawler. There are three answers:
// verified, impostor and unknown.
//
// It uses the facts that operators publish. These are lists of their addresses, which [Lists] refreshes in the
// background, and host names to which their addresses resolve and which resolve back. The package needs the address
// of the client itself. Behind a proxy the caller must find out this address first, because otherwise every crawler
// would be an impostor.
package verify

import (
	"context"
	"net/netip"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// Status is the result of verifying a client. The zero value is [Unknown].
type Status uint8

const (
	// Unknown means that the operator publishes nothing, or that not everything could be checked. It says nothing
	// against the client.
	Unknown Status = iota
	// Verified means that the address is on a published list, or has a published host name that resolves back to
	// it.
	Verified
	// Impostor means that every published fact could be checked, and none includes the address.
	Impostor
)

// String returns the status in lower case.
func (s Status) String() string { return [...]string{"unverified", "verified", "impostor"}[s] }

// Result is a [Status] with its evidence.
type Result struct {
	Status   Status
	By       string // "address-list", "reverse-dns", or empty for [Unknown] and [Impostor]
	Evidence string // the URL of the list, or the host name
}

// Verifier verifies the addresses of all crawlers. It is safe for concurrent use.
type Verifier struct {
	lists *Lists
	names *names
}

// New returns a verifier with these lists and options. It opens no connection.
func New(lists *Lists, options DNSOptions) *Verifier {
	return &Verifier{lists: lists, names: newNames(options)}
}

// Check decides whether an address belongs to the crawler with these facts. It waits for the resolver until a
// timeout has passed or ctx is done. The status is [Unknown] then. If ctx is already done, Check does not wait: it
// answers from the cache, and looks up the address in the background.
//
// To be verified, an address must be on one published list or pass reverse DNS. To be an impostor, it must be on no
// published list and fail reverse DNS, as far as these are published. A missing address counts only if the list is
// fresh and complete (see [ListStatus.Fresh] and [ListStatus.Incomplete]) and has other addresses of the same
// family. A negative answer of DNS counts only if the resolver is known to work. It does not count if a matching
// name does not resolve at all, because some operators do not maintain the forward records.
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
	noForward // a matching name does not resolve
)

// isPublic reports whether an address can belong to a crawler, because it is neither private nor local.
func isPublic(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.IsPrivate() && !cgnat.Contains(a)
}

// cgnat is the shared address space of RFC 6598.
var cgnat = netip.MustParsePrefix("100.64.0.0/10")
