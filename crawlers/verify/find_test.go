// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// For random addresses, the index finds the same lists as a search in every list.
func TestFindAgainstLists(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	addr := func() netip.Addr {
		if rng.IntN(2) == 0 {
			return netip.AddrFrom4([4]byte{255, 255, 255, byte(rng.IntN(256))})
		}
		return netip.AddrFrom16([16]byte{15: byte(rng.IntN(256))})
	}
	for range 500 {
		lists, index := map[string][]netip.Prefix{}, new(listsByPrefix)
		for i := range rng.IntN(5) {
			var prefixes []netip.Prefix
			for range rng.IntN(6) {
				a := addr()
				prefixes = append(prefixes, netip.PrefixFrom(a, a.BitLen()-rng.IntN(8)))
			}
			url := fmt.Sprint(i)
			lists[url] = prefixes
			index.add(url, newList(url, prefixes, time.Time{}).prefixes)
		}
		l := NewLists(nil, ListOptions{})
		index.version, index.built = l.version.Load(), time.Now()
		l.index.current.Store(index)
		for range 200 {
			a := addr()
			var want []string
			for url, prefixes := range lists {
				if slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) }) {
					want = append(want, url)
				}
			}
			got := slices.Clone(l.Find(a))
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("%s: %v, want %v", a, got, want)
			}
		}
	}
}

// Only lists that are fresh and complete attribute an address to a crawler.
func TestFind(t *testing.T) {
	run(t, &fakeServer{steps: []step{
		{status: 200, body: listOf(10)},
		{status: 200, body: listOf(10) + "198.18.300.0/24\n"},
		{status: 200, body: listOf(10)},
		{status: 500},
	}}, func(l *Lists) {
		for i, tt := range []struct {
			after time.Duration
			want  int
		}{
			{0, 0},                       // nothing was fetched yet
			{firstWait + time.Minute, 1}, // complete
			{24 * time.Hour, 0},          // malformed
			{24 * time.Hour, 1},          // complete again
			{6 * 24 * time.Hour, 1},      // later fetches failed, but the list is still fresh
			{2 * 24 * time.Hour, 0},      // stale
		} {
			time.Sleep(tt.after)
			l.Find(onList) // Find rebuilds the index after this time
			synctest.Wait()
			if got := l.Find(onList); len(got) != tt.want || tt.want > 0 && got[0] != testURL {
				t.Errorf("step %d: %v, want %d lists", i, got, tt.want)
			}
			if got := l.Find(notOnList); got != nil {
				t.Errorf("step %d: another address: %v", i, got)
			}
		}
	})
}

func BenchmarkFind(b *testing.B) {
	lists := NewLists(nil, ListOptions{})
	index := &listsByPrefix{version: lists.version.Load(), built: time.Now()}
	for url, s := range snapshot() {
		index.add(url, s.prefixes)
	}
	lists.index.current.Store(index)
	for name, addr := range map[string]string{"visitor": "203.0.113.77", "crawler": "66.249.66.1"} {
		a := netip.MustParseAddr(addr)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lists.Find(a)
			}
		})
	}
}
