// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/webbotauth"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// from returns a request whose client has the given address.
func from(addr string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = net.JoinHostPort(addr, "1024")
	return r
}

// server is a Server that clients reach directly.
type server struct{ vars map[string]any }

func (server) ClientIP(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}

func (server) TrustsProxy(*http.Request) bool { return false }

func (s server) Vars(*http.Request) map[string]any { return s.vars }

// identify returns the identity of a client whose User-Agent names a crawler. facts are the crawler's verification
// facts.
func identify(v *Verifier, r *http.Request, id *crawlers.Identities, facts crawlers.Verification) policy.Identity {
	known := oneCrawler{id, facts}
	clients, _ := Ask[int](v, Request{r, server{}, r.RequestURI}, known, []int{1}, nil)
	return clients[0].Identity
}

// oneCrawler is a Known that has a single crawler, with the ID 1.
type oneCrawler struct {
	identities *crawlers.Identities
	facts      crawlers.Verification
}

func (c oneCrawler) Identities() *crawlers.Identities { return c.identities }

func (oneCrawler) CrawlerOf(*crawlers.Crawler) (int, bool) { return 0, false }

func (c oneCrawler) Verification(int) crawlers.Verification { return c.facts }

// newTestVerifier returns a verifier with its own engine, which other verifiers do not share.
func newTestVerifier(m Methods, dns verify.DNSOptions) *Verifier {
	return &Verifier{methods: m, engine: newEngine(m, dns, nil)}
}

// fakeDNS is a resolver that always returns the same answer after a delay.
type fakeDNS struct {
	wait  time.Duration
	names []string
	back  []netip.Addr
	err   error
}

func (d *fakeDNS) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	if addr == "8.8.8.8" { // package verify looks up this address to check that the resolver works
		return []string{"dns.google."}, nil
	}
	select {
	case <-time.After(d.wait):
		return d.names, d.err
	case <-ctx.Done():
		return nil, &net.DNSError{Err: "timeout", IsTimeout: true}
	}
}

func (d *fakeDNS) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if host == "dns.google" {
		return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
	}
	return d.back, d.err
}

var crawlFacts = crawlers.Verification{ReverseDNS: []string{".crawl.example"}}

// No request waits for the resolver. Its answer is available for the next request. If the resolver hangs or fails,
// clients stay unverified.
func TestIdentifyByDNS(t *testing.T) {
	const addr = "20.0.0.1"
	for name, c := range map[string]struct {
		dns  fakeDNS
		want policy.Identity
	}{
		"confirmed":     {fakeDNS{time.Second, []string{"a.crawl.example."}, []netip.Addr{netip.MustParseAddr(addr)}, nil}, policy.Verified},
		"other address": {fakeDNS{time.Second, []string{"a.crawl.example."}, []netip.Addr{netip.MustParseAddr("20.0.0.2")}, nil}, policy.Impostor},
		"other name":    {fakeDNS{time.Second, []string{"a.evil.example."}, nil, nil}, policy.Impostor},
		"hangs":         {fakeDNS{wait: time.Hour}, policy.Unknown},
		"fails":         {fakeDNS{err: errors.New("server failure")}, policy.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newTestVerifier(Methods{Enabled: true, DNS: true}, verify.DNSOptions{Resolver: &c.dns})
				before := time.Now()
				first := identify(v, from(addr), new(crawlers.Identities), crawlFacts)
				if time.Since(before) != 0 || first != policy.Unknown {
					t.Errorf("first request: %s, after %s", first, time.Since(before))
				}
				time.Sleep(5 * time.Second)
				before = time.Now()
				if got := identify(v, from(addr), new(crawlers.Identities), crawlFacts); got != c.want || time.Since(before) != 0 {
					t.Errorf("second request: %s", got)
				}
				v.engine.close()
			})
		})
	}
}

// If a signature does not prove anything, the address decides. A signature that cannot be checked never makes a client
// an impostor.
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
		"no signature":      {"", "", "", false, policy.Impostor},
		"malformed":         {`"x"`, "x", "x", false, policy.Impostor},
		"without a tag":     {`sig1="` + own + `"`, `sig1=("@authority");created=1`, signature, false, policy.Impostor},
		"another directory": {`sig1="https://evil.example"`, covered, signature, false, policy.Impostor},
		"another algorithm": {`sig1="` + own + `"`, covered + `;alg="rsa-pss-sha512"`, signature, false, policy.Impostor},
		"keys unavailable":  {`sig1="` + own + `"`, covered, signature, false, policy.Unknown},
		"signatures off":    {`sig1="` + own + `"`, covered, signature, true, policy.Unknown},
		"no signature, off": {"", "", "", true, policy.Impostor},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newTestVerifier(Methods{Enabled: true, DNS: true, Signatures: !c.off}, verify.DNSOptions{Resolver: &fakeDNS{names: []string{"a.evil.example."}}})
				if v.engine.signatures != nil {
					v.engine.signatures.Close() // nothing is fetched
				}
				got := policy.Unknown
				for range 2 {
					r := from("20.0.0.1")
					if c.agent != "" {
						r.Header.Set("Signature-Agent", c.agent)
						r.Header.Set("Signature-Input", fmt.Sprintf("%s;created=%d;expires=%d", c.input, time.Now().Unix(), time.Now().Unix()+60))
						r.Header.Set("Signature", c.signature)
					}
					got = identify(v, r, new(crawlers.Identities), facts)
					time.Sleep(time.Second)
				}
				if got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
				v.engine.close()
			})
		})
	}
}

// A method that is not used, or that has no answer, never makes a client an impostor.
func TestIdentifyUnknown(t *testing.T) {
	known, err := crawlers.Default()
	if err != nil {
		t.Fatal(err)
	}
	google, _ := known.Lookup("Googlebot")
	v := newTestVerifier(Methods{Enabled: true}, verify.DNSOptions{Resolver: &fakeDNS{err: errors.New("looked up although DNS is off")}})
	if err := v.engine.lists.Acquire(known.AddressLists(), maxPrefixes); err != nil {
		t.Fatal(err)
	}
	none := new(crawlers.Identities)
	for addr, want := range map[string]policy.Identity{
		"66.249.66.1":  policy.Verified,
		"198.51.100.7": policy.Unknown, // reverse DNS could verify the client, but is off
		"127.0.0.1":    policy.Unknown,
		"10.0.0.1":     policy.Unknown,
		"":             policy.Unknown,
		"no address":   policy.Unknown,
	} {
		if got := identify(v, from(addr), none, google.Verification); got != want {
			t.Errorf("%q: %s", addr, got)
		}
	}
	if got := identify(v, from("66.249.66.1"), none, crawlers.Verification{}); got != policy.Unknown {
		t.Errorf("nothing published: %s", got)
	}
	if v.engine.started.Load() {
		t.Error("lists are fetched")
	}
}

// googleFacts returns the verification facts of Googlebot, and the identities of a policy that does not add crawlers.
func googleFacts(t *testing.T) (crawlers.Verification, *crawlers.Identities) {
	t.Helper()
	known, err := crawlers.Default()
	if err != nil {
		t.Fatal(err)
	}
	google, _ := known.Lookup("Googlebot")
	return google.Verification, crawlers.NewIdentities(known)
}

// policyWith returns the identities of a policy whose crawler has address lists.
func policyWith(t *testing.T, lists ...string) *crawlers.Identities {
	t.Helper()
	known, err := crawlers.Default()
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := known.Merge(crawlers.Row{Token: "OwnBot", AddressLists: lists})
	if err != nil {
		t.Fatal(err)
	}
	return crawlers.NewIdentities(catalog)
}

// Verifiers with the same methods share an engine. The engine survives a reload, and is closed when its last verifier
// is closed.
func TestEnginesAreShared(t *testing.T) {
	m := Methods{Enabled: true, Lists: true, Signatures: true, AllowedRanges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}}
	before := New(m, nil)
	after := New(m, nil)
	e := before.engine
	if after.engine != e {
		t.Error("not shared")
	}
	before.Close()
	before.Close()
	facts, id := googleFacts(t)
	if got := identify(after, from("66.249.66.1"), id, facts); got != policy.Verified {
		t.Errorf("after a reload: %s", got)
	}
	after.Close()
	if len(engines.All()) > 0 {
		t.Error("the engine is still in use after the last Close")
	}
	e.started.Store(false)
	e.start() // a request in progress must not start fetching again
	if !e.closed || len(e.lists.Status()) != 0 {
		t.Errorf("closed: %v, %d lists", e.closed, len(e.lists.Status()))
	}
	off := New(Methods{}, nil)
	if identify(off, from("66.249.66.1"), id, facts) != policy.Unknown || off.Methods().DetectsImpostors() {
		t.Error("verification is off")
	}
	off.Close()
}

// Each of many policies has its own address lists. A list that several policies name is stored only once. If a policy
// exceeds a limit, the lists of the other policies remain in use.
func TestPoliciesWithManyLists(t *testing.T) {
	logger, logs := observed()
	v := newTestVerifier(Methods{Enabled: true}, verify.DNSOptions{})
	e := v.engine
	e.sources.logger = logger
	facts, builtin := googleFacts(t)
	known, _ := crawlers.Default()
	if err := e.lists.Acquire(known.AddressLists(), maxPrefixes); err != nil {
		t.Fatal(err)
	}
	catalog := len(e.lists.Status())
	var policies []*crawlers.Identities
	for i := range 80 {
		id := policyWith(t, "https://lists.example/shared.json", fmt.Sprintf("https://lists.example/%d.json", i))
		policies = append(policies, id)
		e.use(id)
		e.use(id)
	}
	if got := len(e.lists.Status()); got != catalog+81 || logs.Len() > 0 {
		t.Errorf("%d lists, want %d; %d warnings", got, catalog+81, logs.Len())
	}
	var many []string
	for i := range 6000 {
		many = append(many, fmt.Sprintf("https://lists.example/many/%d.json", i))
	}
	greedy := policyWith(t, many...)
	e.use(greedy)
	if got := len(e.lists.Status()); got != catalog+81+maxPolicyLists {
		t.Errorf("%d lists, want %d", got, catalog+81+maxPolicyLists)
	}
	var rest []*crawlers.Identities
	for i := 0; i+maxPolicyLists <= len(many); i += maxPolicyLists {
		id := policyWith(t, many[i:i+maxPolicyLists]...)
		rest = append(rest, id)
		e.use(id)
	}
	for _, id := range []*crawlers.Identities{builtin, greedy, rest[len(rest)-1]} {
		if got := identify(v, from("66.249.66.1"), id, facts); got != policy.Verified {
			t.Errorf("Googlebot, when the limit is reached: %s", got)
		}
	}
	if logs.FilterMessageSnippet("a policy names too many").Len() != 1 || logs.FilterMessageSnippet("the policies name too many").Len() != 1 {
		t.Errorf("each limit must be logged once: %v", logs.All())
	}
	runtime.KeepAlive(policies)
	runtime.KeepAlive(rest)
}

// All lists of a newer catalog are used together with the policy's lists, even if the catalog adds very many.
func TestNewerCatalogWithManyLists(t *testing.T) {
	logger, logs := observed()
	t.Cleanup(func() { crawlers.Install(nil) })
	text := "version: 1\nas-of: 2026-11-22\ncrawlers:\n"
	const added = 2 * maxPolicyLists
	for i := range added {
		text += fmt.Sprintf("  NewBot-%[1]d: {operator: Test, category: seo, honors: yes, source: field, examples: [NewBot-%[1]d/1.0], verify: {address-lists: [\"https://lists.example/new/%[1]d.json\"]}}\n", i)
	}
	newer, err := crawlers.Parse("newer.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	crawlers.Install(newer)
	e := newEngine(Methods{Enabled: true}, verify.DNSOptions{}, logger)
	id := policyWith(t, "https://lists.example/own.json")
	e.use(id)
	if got := len(e.lists.Status()); got != added+1 || logs.Len() > 0 {
		t.Errorf("%d lists, want %d; %v", got, added+1, logs.All())
	}
	e.release(weak.Make(id))
	if got := len(e.lists.Status()); got != 0 {
		t.Errorf("%d lists are left", got)
	}
	runtime.KeepAlive(id)
}

// If the lists of other policies reach the limit, the additional lists of a newer catalog are not used, and this is
// logged. Clients that name the crawlers of these lists are unverified, and not impostors.
func TestNoRoomForTheCatalog(t *testing.T) {
	logger, logs := observed()
	m := Methods{Enabled: true, Lists: true, AllowedRanges: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24")}}
	full := New(m, logger)
	defer full.Close()
	full.engine.lists.Release(full.lists)
	full.lists = nil
	var fill []string
	for i := range 5000 {
		fill = append(fill, fmt.Sprintf("https://lists.example/fill/%d.json", i))
	}
	if err := full.engine.lists.Acquire(fill, 1); err != nil {
		t.Fatal(err)
	}
	full.engine.started.Store(true) // so that nothing is fetched
	v := New(m, nil)
	defer v.Close()
	facts, id := googleFacts(t)
	for _, address := range []string{"66.249.66.1", "198.51.100.1"} {
		if got := identify(v, from(address), id, facts); got != policy.Unknown {
			t.Errorf("%s: %s", address, got)
		}
	}
	if logs.FilterMessageSnippet("the lists of the built-in catalog are not used").Len() != 1 {
		t.Errorf("not logged: %v", logs.All())
	}
}

// If there was no room for the lists of a policy, freeing the policy does not release lists that other policies use.
func TestNothingIsReleasedThatWasNotAcquired(t *testing.T) {
	e := newEngine(Methods{Enabled: true}, verify.DNSOptions{}, nil)
	fill := []string{"https://lists.example/shared.json"}
	for i := range 4999 {
		fill = append(fill, fmt.Sprintf("https://lists.example/fill/%d.json", i))
	}
	if err := e.lists.Acquire(fill, 1); err != nil {
		t.Fatal(err)
	}
	released := make(chan struct{})
	func() {
		id := policyWith(t, fill[0], "https://lists.example/more.json")
		e.use(id)
		runtime.AddCleanup(id, func(done chan struct{}) { close(done) }, released)
	}()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		runtime.GC()
		if none := func() bool {
			for range e.policies.Range {
				return false
			}
			return true
		}(); none {
			break
		}
	}
	<-released
	if got := len(e.lists.Status()); got != len(fill) {
		t.Errorf("%d of %d lists are left", got, len(fill))
	}
}

// The lists of a policy are released when the policy is freed, for example after it was edited.
func TestListsAreReleasedWithTheirPolicy(t *testing.T) {
	e := newEngine(Methods{Enabled: true}, verify.DNSOptions{}, nil)
	last := policyWith(t, "https://lists.example/last.json")
	e.use(last)
	for i := range 200 {
		e.use(policyWith(t, fmt.Sprintf("https://lists.example/edit%d.json", i)))
	}
	for range 100 {
		runtime.GC()
		if len(e.lists.Status()) == 1 {
			break
		}
		time.Sleep(10 * time.Millisecond) // the garbage collector runs cleanups in a separate goroutine
	}
	if got := e.lists.Status(); len(got) != 1 || got[0].URL != "https://lists.example/last.json" {
		t.Errorf("%d lists after 200 edits", len(got))
	}
	runtime.KeepAlive(last)
}

// On-device link previews are fetched by the device of a user, but the User-Agent of the request names crawlers. Such a
// client is never treated as an impostor of these crawlers.
func TestOnDevicePreviewsAreNeverImpostors(t *testing.T) {
	for agent, want := range map[string]policy.Identity{
		"facebookexternalhit/1.1": policy.Impostor,
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0": policy.Unknown,
		"WhatsApp/2.23.20.0 A": policy.Unknown,
		"Mozilla/5.0 (compatible) facebookexternalhit/1.1 Facebot Twitterbot/1.0": policy.Impostor,
	} {
		v := newTestVerifier(Methods{Enabled: true, DNS: true}, verify.DNSOptions{Resolver: &fakeDNS{names: []string{"a.evil.example."}}})
		got := policy.Unknown
		for range 100 {
			r := from("20.0.0.1")
			r.Header.Set("User-Agent", agent)
			if got = identify(v, r, new(crawlers.Identities), crawlFacts); got == policy.Impostor {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", agent, got, want)
		}
	}
}

func TestParseMethods(t *testing.T) {
	for _, c := range []struct {
		names, ranges []string
		ok            bool
	}{
		{nil, nil, true},
		{[]string{"off"}, nil, true},
		{[]string{"lists", "dns", "signatures"}, []string{"10.0.0.0/8"}, true},
		{[]string{"off", "dns"}, nil, false},
		{[]string{"embedded", "lists"}, nil, false},
		{[]string{"on"}, nil, false},
		{nil, []string{"10.0.0.1"}, false},
	} {
		if _, err := ParseMethods(c.names, c.ranges); (err == nil) != c.ok {
			t.Errorf("%q %q: %v", c.names, c.ranges, err)
		}
	}
}

func TestListClientRedirects(t *testing.T) {
	check := listClient(Methods{}).CheckRedirect
	for _, tt := range []struct {
		url  string
		via  int
		fine bool
	}{{"https://example.com/", 1, true}, {"https://example.com/", 3, true}, {"https://example.com/", 4, false}, {"http://example.com/", 1, false}} {
		r, err := http.NewRequest(http.MethodGet, tt.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(r, make([]*http.Request, tt.via)); (err == nil) != tt.fine {
			t.Errorf("%s after %d: %v", tt.url, tt.via, err)
		}
	}
}

// A nonce is accepted only once. Nevertheless, a handler can call Ask several times for the same request, because the
// first result is stored with the request.
func TestSignatureIsCheckedOncePerRequest(t *testing.T) {
	v := newTestVerifier(Methods{Enabled: true, Signatures: true}, verify.DNSOptions{})
	defer v.engine.close()
	const directory = "https://keys.example"
	s := server{vars: map[string]any{}}
	by := func(s server) Request { return Request{from("20.0.0.1"), s, "/"} }
	v.checkSignature(by(s), directory)
	for key := range s.vars {
		s.vars[key] = webbotauth.Result{Status: webbotauth.Verified}
	}
	if got := v.checkSignature(by(s), directory); got.Status != webbotauth.Verified {
		t.Errorf("%+v", got)
	}
	if got := v.checkSignature(by(server{}), directory); got.Status == webbotauth.Verified {
		t.Errorf("a signature that does not prove anything: %+v", got)
	}
}
