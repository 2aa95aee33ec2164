// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// The cases are all combinations of answers from lists and from DNS.
func TestCheck(t *testing.T) { synctest.Test(t, testCheck) }

func testCheck(t *testing.T) {
	dns := &fakeDNS{
		names: map[string][]string{
			"198.51.100.1": {"a.crawl.example."}, "198.51.100.3": {"c.crawl.example."}, "198.51.100.4": {"d.crawl.example."},
		},
		addrs: map[string][]string{"a.crawl.example": {"198.51.100.1"}, "c.crawl.example": {"198.51.100.1"}},
		errs:  map[string]error{"198.51.100.5": errors.New("no resolver")},
	}
	now := time.Now()
	l := NewLists([]string{"https://a.example", "https://b.example", "https://stale.example", "https://none.example", "https://broken.example"}, ListOptions{})
	fill := func(url, prefix string, date time.Time) {
		l.set(l.source(url), newList(url, []netip.Prefix{netip.MustParsePrefix(prefix)}, date))
	}
	fill("https://a.example", "203.0.113.0/24", now)
	fill("https://b.example", "192.0.2.0/24", now)
	fill("https://stale.example", "192.88.99.0/24", now.Add(-30*24*time.Hour))
	broken := *l.source("https://b.example").current.Load()
	broken.Incomplete = "1 of 2 entries are invalid"
	l.set(l.source("https://broken.example"), &broken)
	v := New(l, DNSOptions{Resolver: dns})

	const (
		confirmed = "198.51.100.1" // the constants say how the resolver answers for their addresses
		nameless  = "198.51.100.2"
		lying     = "198.51.100.3"
		halfway   = "198.51.100.4"
		failing   = "198.51.100.5"
	)
	names := []string{".crawl.example"}
	fresh, both := []string{"https://a.example"}, []string{"https://a.example", "https://b.example"}
	stale, none := []string{"https://a.example", "https://stale.example"}, []string{"https://none.example"}
	unheard := []string{"https://never.example"}
	for _, tt := range []struct {
		name         string
		lists, names []string
		addr         string
		want         policy.Identity
		by           string
	}{
		{"nothing published", nil, nil, nameless, policy.Unknown, ""},
		{"on the list", fresh, nil, "203.0.113.5", policy.Verified, "address-list"},
		{"on the list, as IPv4 in IPv6", fresh, nil, "::ffff:203.0.113.5", policy.Verified, "address-list"},
		{"on the second list", both, nil, "192.0.2.5", policy.Verified, "address-list"},
		{"not on the list", fresh, nil, nameless, policy.Impostor, ""},
		{"not on either list", both, nil, nameless, policy.Impostor, ""},
		{"on a stale list", stale, nil, "192.88.99.5", policy.Verified, "address-list"},
		{"not on a stale list", stale, nil, nameless, policy.Unknown, ""},
		{"not on a stale list, nor on a fresh one after it", []string{"https://stale.example", "https://a.example"}, nil, nameless, policy.Unknown, ""},
		{"on an incomplete list", []string{"https://broken.example"}, nil, "192.0.2.5", policy.Verified, "address-list"},
		{"not on an incomplete list", []string{"https://broken.example"}, nil, nameless, policy.Unknown, ""},
		{"another address family", fresh, nil, "2a00::1", policy.Unknown, ""},
		{"another address family, and names no", fresh, names, "2a00::1", policy.Unknown, ""},
		{"list missing", none, nil, nameless, policy.Unknown, ""},
		{"list that is not acquired", unheard, nil, nameless, policy.Unknown, ""},
		{"names: confirmed", nil, names, confirmed, policy.Verified, "reverse-dns"},
		{"names: none", nil, names, nameless, policy.Impostor, ""},
		{"names: another address", nil, names, lying, policy.Impostor, ""},
		{"names: no forward record", nil, names, halfway, policy.Unknown, ""},
		{"names: failure", nil, names, failing, policy.Unknown, ""},
		{"list no, names yes", fresh, names, confirmed, policy.Verified, "reverse-dns"},
		{"list yes, names no", fresh, names, "203.0.113.5", policy.Verified, "address-list"},
		{"list no, names no", fresh, names, nameless, policy.Impostor, ""},
		{"list no, names: another address", fresh, names, lying, policy.Impostor, ""},
		{"list no, no forward record", fresh, names, halfway, policy.Impostor, ""},
		{"list no, names failure", fresh, names, failing, policy.Unknown, ""},
		{"list stale, names no", stale, names, nameless, policy.Unknown, ""},
		{"list missing, names no", none, names, nameless, policy.Unknown, ""},
		{"list missing, names yes", none, names, confirmed, policy.Verified, "reverse-dns"},
		{"list missing, no forward record", none, names, halfway, policy.Unknown, ""},
		{"loopback", fresh, names, "127.0.0.1", policy.Unknown, ""},
		{"private", fresh, names, "10.1.2.3", policy.Unknown, ""},
		{"link-local with zone", fresh, names, "fe80::1%eth0", policy.Unknown, ""},
		{"carrier-grade NAT", fresh, names, "100.64.1.1", policy.Unknown, ""},
	} {
		facts := crawlers.Verification{AddressLists: tt.lists, ReverseDNS: tt.names}
		time.Sleep(probeInterval)
		got := v.Check(t.Context(), facts, netip.MustParseAddr(tt.addr))
		if got.Identity != tt.want || got.By != tt.by || (got.Evidence != "") != (tt.want == policy.Verified) {
			t.Errorf("%s: got %+v, want %s", tt.name, got, tt.want)
		}
	}
	if got := v.Check(t.Context(), crawlers.Verification{AddressLists: fresh}, netip.Addr{}); got != (Result{}) {
		t.Errorf("no address: %+v", got)
	}
	if got := New(NewLists(nil, ListOptions{}), DNSOptions{Resolver: dns}).Check(t.Context(), crawlers.Verification{AddressLists: fresh, ReverseDNS: names}, netip.MustParseAddr(nameless)); got.Identity != policy.Unknown {
		t.Errorf("without lists: %+v", got)
	}
}

func TestSnapshotFitsTheCatalog(t *testing.T) {
	c, err := crawlers.Default()
	if err != nil {
		t.Fatal(err)
	}
	published := map[string]bool{}
	for _, url := range c.AddressLists() {
		published[url] = true
	}
	for url := range snapshot() {
		if !published[url] {
			t.Errorf("%s is in the snapshot, but not in the catalog", url)
		}
	}
	for _, token := range []string{"Googlebot", "Bingbot", "GPTBot", "ClaudeBot", "PerplexityBot", "Applebot", "DuckDuckBot", "AdsBot-Google"} {
		cr, ok := c.Lookup(token)
		if !ok {
			t.Fatalf("%s is missing", token)
		}
		for _, url := range cr.Verification.AddressLists {
			if snapshot()[url] == nil {
				t.Errorf("%s: %s is not in the snapshot", token, url)
			}
		}
	}
}

func BenchmarkCheckList(b *testing.B) {
	c, err := crawlers.Default()
	if err != nil {
		b.Fatal(err)
	}
	google, _ := c.Lookup("Googlebot")
	lists := NewLists(c.AddressLists(), ListOptions{Now: func() time.Time { return time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC) }})
	v := New(lists, DNSOptions{Resolver: &fakeDNS{}})
	a := netip.MustParseAddr("66.249.66.1")
	b.ReportAllocs()
	for b.Loop() {
		if v.Check(b.Context(), google.Verification, a).Identity != policy.Verified {
			b.Fatal("not verified")
		}
	}
}
