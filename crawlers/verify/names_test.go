// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fakeDNS is a resolver that answers from maps. For a missing entry, it answers "not found". It answers probes
// correctly unless lies is set.
type fakeDNS struct {
	names   map[string][]string
	addrs   map[string][]string
	errs    map[string]error // errors, keyed by address or host
	lies    bool
	wait    time.Duration
	lookups atomic.Int64
}

func (d *fakeDNS) pause(ctx context.Context) error {
	d.lookups.Add(1)
	if d.wait == 0 {
		return nil
	}
	select {
	case <-time.After(d.wait):
		return nil
	case <-ctx.Done():
		return &net.DNSError{Err: "timeout", IsTimeout: true}
	}
}

func (d *fakeDNS) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	if addr == probes[0].addr && !d.lies && d.wait == 0 {
		return []string{"dns" + probes[0].suffix + "."}, nil
	}
	if err := d.pause(ctx); err != nil {
		return nil, err
	}
	if err := d.errs[addr]; err != nil {
		return nil, err
	}
	if names := d.names[addr]; names != nil {
		return names, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: addr, IsNotFound: true}
}

func (d *fakeDNS) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if host == "dns"+probes[0].suffix && !d.lies && d.wait == 0 {
		return []netip.Addr{netip.MustParseAddr(probes[0].addr)}, nil
	}
	if err := d.pause(ctx); err != nil {
		return nil, err
	}
	if err := d.errs[host]; err != nil {
		return nil, err
	}
	var found []netip.Addr
	for _, a := range d.addrs[host] {
		found = append(found, netip.MustParseAddr(a))
	}
	if found == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return found, nil
}

func TestNames(t *testing.T) { synctest.Test(t, testNames) }

func testNames(t *testing.T) {
	dns := &fakeDNS{
		names: map[string][]string{
			"66.249.66.1":       {"crawl-66-249-66-1.googlebot.com."},
			"66.249.66.2":       {"Crawl-66-249-66-2.GoogleBot.com."},
			"66.249.66.3":       {"crawl-66-249-66-1.googlebot.com."},
			"66.249.66.4":       {"crawl-66-249-66-4.googlebot.com."},
			"66.249.66.5":       {"crawl-66-249-66-5.googlebot.com."},
			"66.249.66.6":       {"crawl.googlebot.com.evil.example."},
			"66.249.66.7":       {"googlebot.com."},
			"66.249.66.8":       {"evilgooglebot.com."},
			"66.249.66.9":       {"other.example.", "crawl-9.googlebot.com."},
			"66.249.66.10":      {"a.example.", "b.example.", "c.example.", "d.example.", "crawl-10.googlebot.com."},
			"66.249.66.12":      {"w.googlebot.com.", "w.googlebot.com.", "w.googlebot.com.", "w.googlebot.com.", "crawl-12.googlebot.com."},
			"2001:4860:4801::1": {"crawl-v6.googlebot.com."},
			"66.102.6.1":        {"google-proxy-66-102-6-1.google.com."},
			"66.102.6.2":        {"google-proxy-66.102.google.com."},
			"66.102.6.3":        {"google-proxy-.google.com."},
		},
		addrs: map[string][]string{
			"crawl-66-249-66-1.googlebot.com":    {"66.249.66.1"},
			"crawl-66-249-66-2.googlebot.com":    {"::ffff:66.249.66.2"},
			"crawl.googlebot.com.evil.example":   {"66.249.66.6"},
			"googlebot.com":                      {"66.249.66.7"},
			"evilgooglebot.com":                  {"66.249.66.8"},
			"crawl-9.googlebot.com":              {"66.249.66.99", "66.249.66.9"},
			"crawl-10.googlebot.com":             {"66.249.66.10"},
			"w.googlebot.com":                    {"66.249.66.99"},
			"crawl-12.googlebot.com":             {"66.249.66.12"},
			"crawl-v6.googlebot.com":             {"2001:4860:4801::1"},
			"google-proxy-66-102-6-1.google.com": {"66.102.6.1"},
			"google-proxy-66.102.google.com":     {"66.102.6.2"},
			"google-proxy-.google.com":           {"66.102.6.3"},
		},
		errs: map[string]error{
			"66.249.66.20":                    &net.DNSError{Err: "server misbehaving", IsTemporary: true},
			"66.249.66.21":                    errors.New("no route"),
			"crawl-66-249-66-5.googlebot.com": &net.DNSError{Err: "timeout", IsTimeout: true},
		},
	}
	n := newNames(DNSOptions{Resolver: dns})
	patterns := []string{".googlebot.com", "google-proxy-*.google.com"}
	for _, tt := range []struct {
		name, addr string
		want       answer
	}{
		{"confirmed", "66.249.66.1", yes},
		{"letter case, address in IPv6", "66.249.66.2", yes},
		{"resolves to another address", "66.249.66.3", no},
		{"no forward record", "66.249.66.4", noForward},
		{"forward lookup times out", "66.249.66.5", silent},
		{"suffix in the middle", "66.249.66.6", no},
		{"the domain itself", "66.249.66.7", no},
		{"no dot before the suffix", "66.249.66.8", no},
		{"second name, second address", "66.249.66.9", yes},
		{"the operator's name after many others", "66.249.66.10", yes},
		{"more of the operator's names than are looked up", "66.249.66.12", no},
		{"IPv6", "2001:4860:4801::1", yes},
		{"star", "66.102.6.1", yes},
		{"star over a dot", "66.102.6.2", no},
		{"star over nothing", "66.102.6.3", no},
		{"no name", "66.249.66.11", no},
		{"temporary failure", "66.249.66.20", silent},
		{"other failure", "66.249.66.21", silent},
	} {
		if got, _ := n.ask(t.Context(), patterns, netip.MustParseAddr(tt.addr)); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
	if _, host := n.ask(t.Context(), patterns, netip.MustParseAddr("66.249.66.1")); host != "crawl-66-249-66-1.googlebot.com" {
		t.Errorf("host %q", host)
	}
	time.Sleep(rateWindow) // wait until the timers of all lookups have ended
}

func TestNamesAreCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := &fakeDNS{
			names: map[string][]string{"66.249.66.1": {"c.googlebot.com."}},
			addrs: map[string][]string{"c.googlebot.com": {"66.249.66.1"}},
			errs:  map[string]error{"66.249.66.3": errors.New("x")},
		}
		n := newNames(DNSOptions{Resolver: dns})
		ask := func(addr string, patterns ...string) int64 {
			before := dns.lookups.Load()
			n.ask(t.Context(), patterns, netip.MustParseAddr(addr))
			synctest.Wait()
			return dns.lookups.Load() - before
		}
		for _, tt := range []struct {
			name string
			wait time.Duration
			addr string
			want int64
		}{
			{"first", 0, "66.249.66.1", 2},
			{"again", 0, "66.249.66.1", 0},
			{"yes, nearly a day later", keepYes - time.Second, "66.249.66.1", 0},
			{"yes, a day later", time.Second, "66.249.66.1", 2},
			{"no", 0, "66.249.66.2", 1},
			{"no, nearly an hour later", keepNo - time.Second, "66.249.66.2", 0},
			{"no, an hour later", time.Second, "66.249.66.2", 1},
			{"failure", 0, "66.249.66.3", 1},
			{"failure, soon", keepSilent - time.Second, "66.249.66.3", 0},
			{"failure, a minute later", time.Second, "66.249.66.3", 1},
		} {
			time.Sleep(tt.wait)
			if got := ask(tt.addr, ".googlebot.com"); got != tt.want {
				t.Errorf("%s: %d lookups, want %d", tt.name, got, tt.want)
			}
		}
		if got := ask("66.249.66.1", ".example.com"); got != 1 {
			t.Errorf("other patterns: %d lookups", got)
		}
	})
}

func TestNamesCacheIsBounded(t *testing.T) {
	n := newNames(DNSOptions{Resolver: &fakeDNS{}})
	n.cacheSize = 10
	a := netip.MustParseAddr("66.249.0.1")
	for range 1000 {
		n.ask(t.Context(), []string{".x.y"}, a)
		a = a.Next()
	}
	if size := len(n.recent) + len(n.earlier); size > 10 {
		t.Errorf("%d cached answers", size)
	}
}

// A caller never waits longer than the timeout, even with a slow resolver or many clients.
func TestNamesSlowResolver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := &fakeDNS{wait: time.Hour}
		n := newNames(DNSOptions{Resolver: dns})
		begin := time.Now()
		var wg sync.WaitGroup
		for i := range 2 * maxLookups {
			wg.Go(func() {
				addr := netip.AddrFrom4([4]byte{66, byte(i), 66, 1})
				if got, _ := n.ask(t.Context(), []string{".x.y"}, addr); got != silent {
					t.Errorf("got %d", got)
				}
			})
		}
		wg.Wait()
		if took := time.Since(begin); took != lookupTimeout {
			t.Errorf("it took %s", took)
		}
		if got := dns.lookups.Load(); got != maxLookups {
			t.Errorf("%d lookups at the same time", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.Sleep(2 * keepSilent)
		begin = time.Now()
		n.ask(ctx, []string{".x.y"}, netip.MustParseAddr("66.249.66.9"))
		if took := time.Since(begin); took != 0 {
			t.Errorf("a canceled request waited %s", took)
		}
		time.Sleep(5 * time.Second)
	})
}

// With a canceled context, ask does not wait, and returns cached answers.
func TestNamesWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := &fakeDNS{
			names: map[string][]string{"192.0.2.1": {"crawl.example.com."}},
			addrs: map[string][]string{"crawl.example.com": {"192.0.2.1"}},
			wait:  100 * time.Millisecond,
		}
		n := newNames(DNSOptions{Resolver: dns})
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		before := time.Now()
		if got, _ := n.ask(canceled, []string{".example.com"}, netip.MustParseAddr("192.0.2.1")); got != silent || time.Since(before) != 0 {
			t.Errorf("at first: %v after %s", got, time.Since(before))
		}
		time.Sleep(time.Second)
		for range 100 {
			if got, host := n.ask(canceled, []string{".example.com"}, netip.MustParseAddr("192.0.2.1")); got != yes || host != "crawl.example.com" {
				t.Fatalf("then: %v %s", got, host)
			}
		}
	})
}
