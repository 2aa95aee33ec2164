// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// sameName is a resolver that answers every reverse lookup with the same name, like a captive portal.
type sameName struct{ fakeDNS }

func (*sameName) LookupAddr(context.Context, string) ([]string, error) {
	return []string{"portal.example."}, nil
}

// Negative answers are not used until the resolver has answered a probe correctly.
func TestNegativeAnswersNeedAWorkingResolver(t *testing.T) {
	const crawler, other = "198.51.100.1", "198.51.100.2"
	works := &fakeDNS{}
	for name, tt := range map[string]struct {
		dns  Resolver
		want answer
	}{
		"works":                       {works, no},
		"answers not found to all":    {&fakeDNS{lies: true}, silent},
		"answers one name to all":     {&sameName{fakeDNS{lies: true}}, silent},
		"cannot look the probes up":   {&fakeDNS{lies: true, errs: map[string]error{"8.8.8.8": errors.New("x"), "1.1.1.1": errors.New("x"), "9.9.9.9": errors.New("x")}}, silent},
		"knows only the own crawlers": {&fakeDNS{lies: true, names: map[string][]string{crawler: {"c.crawl.example."}}, addrs: map[string][]string{"c.crawl.example": {crawler}}}, silent},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNames(DNSOptions{Resolver: tt.dns})
				n.ask(t.Context(), []string{".crawl.example"}, netip.MustParseAddr(crawler))
				time.Sleep(probeInterval)
				if got, _ := n.ask(t.Context(), []string{".crawl.example"}, netip.MustParseAddr(other)); got != tt.want {
					t.Errorf("%d, want %d", got, tt.want)
				}
			})
		})
	}
}

// liar is a resolver that from some point on answers every lookup with "not found", or with the same name.
type liar struct {
	fakeDNS
	lying atomic.Bool
	name  string // the name in wrong answers, or "" for the answer "not found"
}

func (l *liar) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	if !l.lying.Load() {
		return l.fakeDNS.LookupAddr(ctx, addr)
	}
	if l.name == "" {
		return nil, &net.DNSError{Err: "no such host", Name: addr, IsNotFound: true}
	}
	return []string{l.name}, nil
}

func (l *liar) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if !l.lying.Load() {
		return l.fakeDNS.LookupNetIP(ctx, network, host)
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// A resolver has worked and suddenly returns wrong answers. These answers do not make any crawler an impostor. When the
// resolver works again, the addresses are looked up again.
func TestResolverThatStartsToLie(t *testing.T) {
	for _, name := range []string{"", "portal.example.", "dns.google."} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dns := &liar{name: name, fakeDNS: fakeDNS{names: map[string][]string{}, addrs: map[string][]string{}}}
				n := newNames(DNSOptions{Resolver: dns})
				ask := func(i int) answer {
					crawler, host := fmt.Sprintf("198.51.%d.1", i), fmt.Sprintf("c%d.crawl.example", i)
					dns.names[crawler], dns.addrs[host] = []string{host}, []string{crawler}
					got, _ := n.ask(t.Context(), []string{".crawl.example"}, netip.MustParseAddr(crawler))
					return got
				}
				stranger := func() answer {
					got, _ := n.ask(t.Context(), []string{".crawl.example"}, netip.MustParseAddr("203.0.113.1"))
					return got
				}
				if ask(0) != yes || stranger() != no {
					t.Fatal("the resolver does not work")
				}
				time.Sleep(time.Minute)
				dns.lying.Store(true)
				for i := range 20 {
					if got := ask(1 + i%10); got == no || got == noForward {
						t.Fatalf("crawler %d is denied after %d s", i, i*3)
					}
					time.Sleep(3 * time.Second)
				}
				dns.lying.Store(false)
				time.Sleep(2 * time.Minute)
				for i := range 20 { // twice for each crawler: the first lookups only start a probe
					ask(1 + i%10)
					stranger()
					time.Sleep(3 * time.Second)
				}
				for i := range 10 {
					if got := ask(1 + i); got != yes {
						t.Errorf("crawler %d is not verified again: %d", i, got)
					}
				}
				if stranger() != no {
					t.Error("an impostor is no longer detected")
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

// The resolver hangs, and many addresses of one network send requests. There must still be lookups for addresses of
// other networks.
func TestLookupsAreBoundedByNetwork(t *testing.T) {
	for _, network := range []string{"2a00:1:2:3::", "2a00:1:2::", "203.0.113.0"} {
		t.Run(network, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dns := &fakeDNS{
					names: map[string][]string{}, addrs: map[string][]string{}, wait: time.Hour,
				}
				n := newNames(DNSOptions{Resolver: dns})
				canceled, cancel := context.WithCancel(t.Context())
				cancel()
				from := netip.MustParseAddr(network)
				for i := range 1000 {
					b := from.AsSlice()
					b[len(b)-1], b[len(b)-2] = byte(i), b[len(b)-2]+byte(i>>8)
					if network == "2a00:1:2::" {
						b[7] = byte(i) // another /64 each time
					}
					a, _ := netip.AddrFromSlice(b)
					n.ask(canceled, []string{".x.y"}, a)
				}
				synctest.Wait()
				if got := dns.lookups.Load(); got > 16 {
					t.Errorf("%d lookups in flight for one network", got)
				}
				dns.wait = 0
				for i := range 19 {
					crawler, host := fmt.Sprintf("198.51.%d.1", 100+i), fmt.Sprintf("c%d.crawl.example", i)
					dns.names[crawler], dns.addrs[host] = []string{host}, []string{crawler}
					if got, _ := n.ask(t.Context(), []string{".crawl.example"}, netip.MustParseAddr(crawler)); got != yes {
						t.Errorf("crawler %d is not verified: %d", i, got)
					}
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if len(n.byPrefix) != 0 || n.inFlight != 0 {
					t.Errorf("%v, %d in flight", n.byPrefix, n.inFlight)
				}
			})
		})
	}
}

// One network cannot use up all lookups, whether the resolver is slow or fast. In this test, the clients in one /64
// network send 100 requests a second, each from another address. At the same time, some real crawlers in other networks
// send requests.
func TestLookupsUnderAFlood(t *testing.T) {
	for name, wait := range map[string]time.Duration{"a resolver that hangs": time.Hour, "a fast resolver": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const crawlers, perSecond = 19, 100
				flood := &fakeDNS{wait: wait}
				dns := &splitDNS{flood: flood, crawlers: &fakeDNS{names: map[string][]string{}, addrs: map[string][]string{}, wait: 20 * time.Millisecond}}
				n := newNames(DNSOptions{Resolver: dns})
				canceled, cancel := context.WithCancel(t.Context())
				cancel()
				a := netip.MustParseAddr("2001:db8::1")
				verified := 0
				named := func(i int) (crawler, host string) {
					return fmt.Sprintf("198.51.%d.1", 100+i), fmt.Sprintf("c%d.crawl.example", i)
				}
				for i := range crawlers { // the maps must be filled before the first lookup in the background
					crawler, host := named(i)
					dns.crawlers.names[crawler], dns.crawlers.addrs[host] = []string{host}, []string{crawler}
				}
				for i := range crawlers {
					for range perSecond {
						n.ask(canceled, []string{".x.y"}, a)
						a = a.Next()
						time.Sleep(time.Second / perSecond)
					}
					crawler, _ := named(i)
					if got, _ := n.ask(t.Context(), []string{".crawl.example"}, netip.MustParseAddr(crawler)); got == yes {
						verified++
					}
				}
				lookups, most := flood.lookups.Load(), int64(16*(crawlers+4))
				t.Logf("%d of %d crawlers verified, %d lookups for %d requests of the flood", verified, crawlers, lookups, crawlers*perSecond)
				if verified != crawlers || lookups > most {
					t.Errorf("want all verified, and at most %d lookups", most)
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

// splitDNS is a resolver that answers lookups for the flood from one fakeDNS, and lookups for crawlers from another.
type splitDNS struct{ flood, crawlers *fakeDNS }

func (d *splitDNS) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	if strings.HasPrefix(addr, "2001:db8:") {
		return d.flood.LookupAddr(ctx, addr)
	}
	return d.crawlers.LookupAddr(ctx, addr)
}

func (d *splitDNS) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	return d.crawlers.LookupNetIP(ctx, network, host)
}

// An answer that is used frequently stays in the cache, even if many other answers are added. While the resolver fails,
// a positive answer is used even after it has expired.
func TestAnswersInUseStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crawler = "198.51.100.1"
		dns := &fakeDNS{names: map[string][]string{crawler: {"c.crawl.example."}}, addrs: map[string][]string{"c.crawl.example": {crawler}}, errs: map[string]error{}}
		n := newNames(DNSOptions{Resolver: dns})
		n.cacheSize = 10
		ask := func(addr netip.Addr) answer {
			got, _ := n.ask(t.Context(), []string{".crawl.example"}, addr)
			synctest.Wait()
			return got
		}
		ask(netip.MustParseAddr(crawler))
		a := netip.MustParseAddr("203.0.113.1")
		for range 100 {
			before := dns.lookups.Load()
			if ask(netip.MustParseAddr(crawler)) != yes || dns.lookups.Load() != before {
				t.Fatal("looked up again")
			}
			ask(a)
			a = a.Next()
		}
		dns.errs[crawler] = errors.New("server failure")
		time.Sleep(keepYes)
		for range 10 {
			if got := ask(netip.MustParseAddr(crawler)); got != yes {
				t.Errorf("while the resolver fails: %d", got)
			}
			time.Sleep(time.Hour)
		}
		time.Sleep(keepStale)
		ask(netip.MustParseAddr(crawler))
		if got := ask(netip.MustParseAddr(crawler)); got != silent {
			t.Errorf("a day later: %d", got)
		}
	})
}
