// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// from is a request of a client address, as Caddy determines it.
func from(addr string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	return r.WithContext(context.WithValue(r.Context(), caddyhttp.VarsCtxKey, map[string]any{caddyhttp.ClientIPVarKey: addr}))
}

// lyingDNS answers late, wrongly or rightly.
type lyingDNS struct {
	wait  time.Duration
	names []string
	back  []netip.Addr
	err   error
}

func (d *lyingDNS) LookupAddr(ctx context.Context, _ string) ([]string, error) {
	select {
	case <-time.After(d.wait):
		return d.names, d.err
	case <-ctx.Done():
		return nil, &net.DNSError{Err: "timeout", IsTimeout: true}
	}
}

func (d *lyingDNS) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return d.back, d.err
}

var crawlFacts = crawlers.Verification{ReverseDNS: []string{".crawl.example"}}

// No request waits for the resolver; what it says, if it says anything, is known to
// the next request. Resolvers that hang and fail leave everybody unknown.
func TestIdentifyByDNS(t *testing.T) {
	const addr = "20.0.0.1"
	for name, c := range map[string]struct {
		dns  lyingDNS
		want policy.Identity
	}{
		"right":       {lyingDNS{time.Second, []string{"a.crawl.example."}, []netip.Addr{netip.MustParseAddr(addr)}, nil}, policy.Verified},
		"a liar":      {lyingDNS{time.Second, []string{"a.crawl.example."}, []netip.Addr{netip.MustParseAddr("20.0.0.2")}, nil}, policy.Impostor},
		"another":     {lyingDNS{time.Second, []string{"a.evil.example."}, nil, nil}, policy.Impostor},
		"hanging":     {lyingDNS{wait: time.Hour}, policy.Unknown},
		"out of work": {lyingDNS{err: errors.New("server failure")}, policy.Unknown},
	} {
		synctest.Test(t, func(t *testing.T) {
			v, err := parseVerification([]string{"dns"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			c1 := newChecker(v, nil, verify.DNSOptions{Resolver: &c.dns})
			before := time.Now()
			first := c1.identify(from(addr), crawlFacts)
			if time.Since(before) != 0 || first != policy.Unknown {
				t.Errorf("%s: at first %s, after %s", name, first, time.Since(before))
			}
			time.Sleep(5 * time.Second)
			before = time.Now()
			if got := c1.identify(from(addr), crawlFacts); got != c.want || time.Since(before) != 0 {
				t.Errorf("%s: then %s", name, got)
			}
			if err := c1.Destruct(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A signature that counts for nothing leaves it to the address; one that cannot be
// checked says nothing against anybody.
func TestIdentifyBySignatureAndAddress(t *testing.T) {
	const own = "https://keys.crawl.example"
	facts := crawlers.Verification{ReverseDNS: []string{".crawl.example"}, WebBotAuth: own}
	const covered = `sig1=("@authority" "signature-agent";key="sig1");tag="web-bot-auth";keyid="k"`
	signature := "sig1=:" + base64.StdEncoding.EncodeToString(make([]byte, 64)) + ":"
	for name, c := range map[string]struct {
		agent, input, signature string
		off                     bool
		want                    policy.Identity
	}{
		"no signature":                {"", "", "", false, policy.Impostor},
		"no signature of a bot":       {`"x"`, "x", "x", false, policy.Impostor},
		"of another kind":             {`sig1="` + own + `"`, `sig1=("@authority");created=1`, signature, false, policy.Impostor},
		"of another directory":        {`sig1="https://evil.example"`, covered, signature, false, policy.Impostor},
		"of another algorithm":        {`sig1="` + own + `"`, covered + `;alg="rsa-pss-sha512"`, signature, false, policy.Impostor},
		"keys that cannot be had":     {`sig1="` + own + `"`, covered, signature, false, policy.Unknown},
		"signatures are not asked":    {`sig1="` + own + `"`, covered, signature, true, policy.Unknown},
		"no signature, and not asked": {"", "", "", true, policy.Impostor},
	} {
		synctest.Test(t, func(t *testing.T) {
			words := []string{"dns", "signatures"}
			if c.off {
				words = words[:1]
			}
			v, err := parseVerification(words, nil)
			if err != nil {
				t.Fatal(err)
			}
			checker := newChecker(v, nil, verify.DNSOptions{Resolver: &lyingDNS{names: []string{"a.evil.example."}}})
			if checker.signatures != nil {
				checker.signatures.Close() // nothing is fetched
			}
			got := policy.Unknown
			for range 2 {
				r := from("20.0.0.1")
				if c.agent != "" {
					r.Header.Set("Signature-Agent", c.agent)
					r.Header.Set("Signature-Input", fmt.Sprintf("%s;created=%d;expires=%d", c.input, time.Now().Unix(), time.Now().Unix()+60))
					r.Header.Set("Signature", c.signature)
				}
				got = checker.identify(r, facts)
				time.Sleep(time.Second)
			}
			if got != c.want {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
			if err := checker.Destruct(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What is not asked, or cannot be, says nothing against anybody.
func TestIdentifyUnknown(t *testing.T) {
	known, err := crawlers.Default()
	if err != nil {
		t.Fatal(err)
	}
	google, _ := known.Lookup("Googlebot")
	v, err := parseVerification(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := newChecker(v, known.AddressLists(), verify.DNSOptions{Resolver: &lyingDNS{err: errors.New("asked, although dns is off")}})
	for addr, want := range map[string]policy.Identity{
		"66.249.66.1":  policy.Verified,
		"198.51.100.7": policy.Unknown, // reverse DNS might know better, and is not asked
		"127.0.0.1":    policy.Unknown,
		"10.0.0.1":     policy.Unknown,
		"":             policy.Unknown,
		"no address":   policy.Unknown,
	} {
		if got := c.identify(from(addr), google.Verification); got != want {
			t.Errorf("%q: %s", addr, got)
		}
	}
	if got := c.identify(from("66.249.66.1"), crawlers.Verification{}); got != policy.Unknown {
		t.Errorf("of whom nothing is published: %s", got)
	}
	if c.begun.Load() && v.lists {
		t.Error("lists are fetched")
	}
}

// Checkers are shared, survive a reload, and go with the last that uses them.
func TestIdentitiesAreShared(t *testing.T) {
	v, err := parseVerification([]string{"lists", "signatures"}, []string{"10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	urls := []string{"https://lists.example/shared.json"}
	key := listsKey(urls)
	before, after := &identities{verification: v}, &identities{verification: v}
	c := before.of(urls, key)
	if after.of(urls, key) != c || before.of(urls, key) != c {
		t.Error("not shared")
	}
	before.release()
	if before.of(urls, key) != nil {
		t.Error("taken after it was given back")
	}
	if refs, ok := checkers.References(after.poolKey(key)); !ok || refs != 1 {
		t.Errorf("%d references", refs)
	}
	c.begin()
	after.release()
	after.release()
	if _, ok := checkers.References(after.poolKey(key)); ok {
		t.Error("kept after everybody has gone")
	}
	c.begun.Store(false)
	c.begin() // a request that was under way: nothing may start again
	if !c.ended {
		t.Error("not ended")
	}
	off := &identities{}
	if off.of(urls, key) != nil {
		t.Error("verification is off")
	}
	var none *identities
	none.release()
}

func TestIdentitiesAreBounded(t *testing.T) {
	v, _ := parseVerification(nil, nil)
	ids := &identities{verification: v}
	defer ids.release()
	var wait sync.WaitGroup
	for i := range 2 * maxCheckers {
		wait.Go(func() { ids.of(nil, listsKey([]string{string(rune('a' + i))})) })
	}
	wait.Wait()
	if n := len(*ids.held.Load()); n != maxCheckers {
		t.Errorf("%d checkers", n)
	}
}

func TestParseVerification(t *testing.T) {
	for _, c := range []struct {
		words, ranges []string
		ok            bool
	}{
		{nil, nil, true}, {[]string{"off"}, nil, true}, {[]string{"lists", "dns", "signatures"}, []string{"10.0.0.0/8"}, true},
		{[]string{"off", "dns"}, nil, false}, {[]string{"embedded", "lists"}, nil, false}, {[]string{"on"}, nil, false}, {nil, []string{"10.0.0.1"}, false},
	} {
		if _, err := parseVerification(c.words, c.ranges); (err == nil) != c.ok {
			t.Errorf("%q %q: %v", c.words, c.ranges, err)
		}
	}
}
