// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"net/netip"
	"slices"
)

// ranges is a set of addresses: ranges that do not overlap, in order.
type ranges []addrRange

type addrRange struct{ from, to netip.Addr }

func newRanges(prefixes []netip.Prefix) ranges {
	all := make(ranges, 0, len(prefixes))
	for _, p := range prefixes {
		all = append(all, addrRange{p.Masked().Addr(), lastAddr(p)})
	}
	slices.SortFunc(all, func(a, b addrRange) int { return a.from.Compare(b.from) })
	merged := all[:0]
	for _, r := range all {
		if n := len(merged); n > 0 && merged[n-1].to.Compare(r.from) >= 0 {
			if merged[n-1].to.Less(r.to) {
				merged[n-1].to = r.to
			}
			continue
		}
		merged = append(merged, r)
	}
	return slices.Clip(merged)
}

func (rs ranges) contains(a netip.Addr) bool {
	i, found := slices.BinarySearchFunc(rs, a, func(r addrRange, a netip.Addr) int { return r.from.Compare(a) })
	return found || i > 0 && a.Compare(rs[i-1].to) <= 0
}

func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}
