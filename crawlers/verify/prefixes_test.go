// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// For random addresses, a set of prefixes gives the same answer as checking every prefix.
func TestSetAgainstPrefixes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	addr4 := func() netip.Addr { return netip.AddrFrom4([4]byte{192, 0, byte(rng.IntN(3)), byte(rng.IntN(256))}) }
	addr6 := func() netip.Addr {
		return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 14: byte(rng.IntN(3)), 15: byte(rng.IntN(256))})
	}
	for range 300 {
		var prefixes []netip.Prefix
		for range rng.IntN(12) {
			if rng.IntN(2) == 0 {
				prefixes = append(prefixes, netip.PrefixFrom(addr4(), 20+rng.IntN(13)))
			} else {
				prefixes = append(prefixes, netip.PrefixFrom(addr6(), 116+rng.IntN(13)))
			}
		}
		set := newList("", prefixes, time.Time{}).prefixes
		for range 200 {
			a := addr4()
			if rng.IntN(2) == 0 {
				a = addr6()
			}
			want := slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
			if got := set.Contains(a); got != want {
				t.Fatalf("%s in %v: got %v", a, prefixes, got)
			}
		}
	}
}
