// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

var methodNames = []string{"embedded", "lists", "dns", "signatures", "off"}

// Methods are the methods of verification that `verify` and `verify_from` select. The zero value leaves all clients
// unverified.
type Methods struct {
	// Enabled is false for `verify off`. If Enabled is true, the embedded address lists are always used.
	Enabled       bool
	Lists         bool           // fetch the address lists that operators publish
	DNS           bool           // look up the client's address in DNS (forward-confirmed reverse DNS)
	Signatures    bool           // check Web Bot Auth signatures, and fetch the keys
	AllowedRanges []netip.Prefix // non-public addresses that may serve lists and keys
}

// ParseMethods parses the values of `verify`, which default to `embedded`, and the ranges of `verify_from` in CIDR
// notation.
func ParseMethods(names, ranges []string) (Methods, error) {
	var m Methods
	if len(names) == 0 {
		names = []string{"embedded"}
	}
	for _, name := range names {
		switch {
		case !slices.Contains(methodNames, name):
			return m, fmt.Errorf("invalid verify %q: must be off, embedded, or one or more of lists, dns and signatures", name)
		case (name == "off" || name == "embedded") && len(names) > 1:
			return m, fmt.Errorf("\"verify %s\" cannot be combined with other values", name)
		}
	}
	m.Enabled = names[0] != "off"
	m.Lists = slices.Contains(names, "lists")
	m.DNS = slices.Contains(names, "dns")
	m.Signatures = slices.Contains(names, "signatures")
	for _, r := range ranges {
		p, err := netip.ParsePrefix(r)
		if err != nil {
			return m, fmt.Errorf("invalid verify_from %q: must be an address range such as 10.0.0.0/8", r)
		}
		m.AllowedRanges = append(m.AllowedRanges, p)
	}
	return m, nil
}

// DetectsImpostors reports whether impostors can be detected permanently. If neither Lists nor DNS is true, impostors
// are detected only until the embedded address lists are too old.
func (m Methods) DetectsImpostors() bool { return m.Lists || m.DNS }

// askable returns the part of facts that a server with these methods checks: it leaves out the host names if DNS is
// off. all reports whether nothing was left out. If all is false, a client must not be treated as an impostor, because
// the host names might have proved its identity.
func (m Methods) askable(facts crawlers.Verification) (_ crawlers.Verification, all bool) {
	if m.DNS || len(facts.ReverseDNS) == 0 {
		return facts, true
	}
	facts.ReverseDNS = nil
	return facts, false
}

// NoImpostors is the message to users for the case that DetectsImpostors returns false.
const NoImpostors = `impostors are not detected: the embedded address lists identify impostors only while the lists are at most 7 days old; add "verify lists dns"`
