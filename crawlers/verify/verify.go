// SPDX-License-Identifier: Apache-2.0

// Package verify finds out whether a client that claims to be a crawler is that crawler. There are three answers:
// verified, impostor and unverified.
//
// The package uses two kinds of facts that operators publish. The first kind is lists of addresses, which [Lists]
// refreshes in the background. The second kind is host names: the crawler's addresses resolve to these names, and the
// names resolve back to the addresses. The package needs the IP address of the client. Behind a proxy, the caller must
// determine the client's address first, because the proxy's address would make every crawler an impostor.
package verify

import (
	"context"
	"net/netip"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Result is the identity of a client, with its evidence. The client is unverified if the operator does not publish
// facts, or if some facts could not be checked. It is an impostor if all facts could be checked, and none of them fits.
type Result struct {
	Identity policy.Identity
	By       string // "address-list" or "reverse-dns"; empty if the client is not verified
	Evidence string // the URL of the list, or the host name
}

// Verifier verifies the addresses of all crawlers. It is safe for concurrent use.
type Verifier struct {
	lists *Lists
	names *names
}

// New returns a Verifier that uses lists, and looks up names as options say. It does not open connections.
func New(lists *Lists, options DNSOptions) *Verifier {
	return &Verifier{lists: lists, names: newNames(options)}
}

// Check decides whether addr belongs to the crawler with the given facts. Check waits for the resolver until a timeout
// has passed or ctx is done. If the resolver has not answered by then, the client is unverified. If ctx is already
// done, Check does not wait. It uses the cache, and looks up the address in the background.
//
// An address is verified if it is on a published list or passes reverse DNS. An address belongs to an impostor if it is
// missing from every published list and fails reverse DNS. If the operator publishes only one kind of facts, only that
// kind is checked. A missing address is evidence only if the list is fresh and complete (see [ListStatus.Fresh] and
// [ListStatus.Incomplete]) and has other addresses of the same family (IPv4 or IPv6). A negative DNS answer is evidence
// only if the resolver is known to work. If a matching host name does not resolve to any address, this is evidence only
// together with the lists, because some operators do not maintain these records.
func (v *Verifier) Check(ctx context.Context, facts crawlers.Verification, addr netip.Addr) Result {
	addr = addr.Unmap().WithZone("")
	if !isPublic(addr) {
		return Result{}
	}
	list := silent
	if len(facts.AddressLists) > 0 {
		var url string
		if list, url = v.lists.ask(facts.AddressLists, addr); list == yes {
			return Result{policy.Verified, "address-list", url}
		}
	}
	if len(facts.ReverseDNS) == 0 {
		if list == no {
			return Result{Identity: policy.Impostor}
		}
		return Result{}
	}
	name, host := v.names.ask(ctx, facts.ReverseDNS, addr)
	switch {
	case name == yes:
		return Result{policy.Verified, "reverse-dns", host}
	case name == no && (list == no || len(facts.AddressLists) == 0), name == noForward && list == no:
		return Result{Identity: policy.Impostor}
	}
	return Result{}
}

type answer uint8

const (
	silent answer = iota
	yes
	no
	noForward // a matching host name does not resolve to an address
)

// isPublic reports whether an address can belong to a crawler, because it is neither private nor local.
func isPublic(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.IsPrivate() && !cgnat.Contains(a)
}

// cgnat is the shared address space of RFC 6598.
var cgnat = netip.MustParsePrefix("100.64.0.0/10")
