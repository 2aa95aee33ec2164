// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/webbotauth"
	"github.com/robotspolicy/caddy-robots-policy/internal/outbound"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

var verifyWords = []string{"embedded", "lists", "dns", "signatures", "off"}

// verification says how crawlers are told from impostors.
type verification struct {
	embedded   bool // the address lists that came with the program; false for no verification at all
	lists      bool // address lists, fetched
	dns        bool
	signatures bool
	ranges     []netip.Prefix // beside the public ones, to fetch from
}

// parseVerification reads the words of the configuration.
func parseVerification(words, ranges []string) (v verification, err error) {
	if len(words) == 0 {
		words = []string{"embedded"}
	}
	for _, w := range words {
		switch {
		case !slices.Contains(verifyWords, w):
			return v, fmt.Errorf("verify takes off, embedded, or some of lists, dns and signatures, and %q is none of them", w)
		case (w == "off" || w == "embedded") && len(words) > 1:
			return v, fmt.Errorf("verify is %s and something else; %[1]s stands alone", w)
		}
	}
	v.embedded = words[0] != "off"
	v.lists, v.dns, v.signatures = slices.Contains(words, "lists"), slices.Contains(words, "dns"), slices.Contains(words, "signatures")
	for _, r := range ranges {
		p, err := netip.ParsePrefix(r)
		if err != nil {
			return v, fmt.Errorf("verify_from takes address ranges such as 10.0.0.0/8, and %q is none", r)
		}
		v.ranges = append(v.ranges, p)
	}
	return v, nil
}

// accuses reports whether impostors are found for longer than the lists that came with
// the program are fresh.
func (v verification) accuses() bool { return v.lists || v.dns }

const noImpostors = `no impostor is found: address lists that came with the program accuse nobody once they are more than 7 days old; write "verify lists dns"`

// checkers are shared by all handlers and matchers with the same settings, and
// live on when a configuration is reloaded: what they know took time to fetch.
var checkers = caddy.NewUsagePool()

// checker finds out whether clients are the crawlers that they say they are.
type checker struct {
	verification
	lists      *verify.Lists
	verifier   *verify.Verifier
	signatures *webbotauth.Verifier
	state      verificationState

	begun atomic.Bool
	mu    sync.Mutex // guards what follows
	ended bool
}

func newChecker(v verification, urls []string, dns verify.DNSOptions) *checker {
	c := &checker{verification: v}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.DialContext = outbound.Dialer(10*time.Second, v.ranges).DialContext
	c.lists = verify.NewLists(urls, verify.ListOptions{Report: c.state.list, Client: &http.Client{
		Transport: transport,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 3 || r.URL.Scheme != "https" {
				return fmt.Errorf("not following a redirect to %s", r.URL.Redacted())
			}
			return nil
		},
	}})
	dns.Report = c.state.lookup
	c.verifier = verify.New(c.lists, dns)
	if v.signatures {
		c.signatures = webbotauth.New(webbotauth.Options{AllowedRanges: v.ranges, Report: c.state.keys})
	}
	return c
}

// Destruct implements caddy.Destructor. Requests that are under way may still ask.
func (c *checker) Destruct() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.lists.Stop()
	if c.signatures != nil {
		c.signatures.Close()
	}
	return nil
}

// begin has the address lists refreshed from now on. That is with the first
// request of a crawler and not earlier, so that a configuration that is only
// validated fetches nothing.
func (c *checker) begin() {
	if !c.verification.lists || c.begun.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.lists.Start()
	}
	c.begun.Store(true)
}

// over is a context that has ended: nothing waits for the network.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// identify says whether a request is by the crawler with these facts. It never
// waits: what is not known yet is looked up for the next request.
func (c *checker) identify(r *http.Request, facts crawlers.Verification) policy.Identity {
	if facts.IsEmpty() {
		return policy.Unknown
	}
	c.begin()
	unchecked := false // a signature that may be the operator's
	if facts.WebBotAuth != "" && webbotauth.Signed(r.Header) {
		unchecked = c.signatures == nil
		if !unchecked {
			signed := c.signature(r, facts.WebBotAuth)
			if signed.Status == webbotauth.Verified {
				return policy.Verified
			}
			unchecked = signed.NoKeys
		}
	}
	client, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	addr, err := netip.ParseAddr(client)
	if err != nil {
		return policy.Unknown
	}
	names := facts.ReverseDNS
	if !c.dns {
		facts.ReverseDNS = nil
	}
	switch c.verifier.Check(over, facts, addr).Status {
	case verify.Verified:
		return policy.Verified
	case verify.Impostor:
		// An impostor is only who gets a no from all that is published.
		if !unchecked && (c.dns || len(names) == 0) {
			return policy.Impostor
		}
	}
	return policy.Unknown
}

// signature checks the signature of a request, once for each request however often
// it is asked about: a nonce counts only once.
func (c *checker) signature(r *http.Request, directory string) webbotauth.Result {
	const key = "robots_policy.signature "
	if s, ok := caddyhttp.GetVar(r.Context(), key+directory).(webbotauth.Result); ok {
		return s
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	} else if trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool); trusted && r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	s := c.signatures.Check(over, webbotauth.Request{
		Method: r.Method, Scheme: scheme, Host: r.Host, Target: sent(r), Header: r.Header,
	}, directory)
	caddyhttp.SetVar(r.Context(), key+directory, s)
	return s
}

// identities gives a handler or matcher the checkers that it needs, and gives them
// back.
type identities struct {
	verification
	resolver verify.DNSOptions

	mu    sync.Mutex
	held  atomic.Pointer[[]heldChecker] // replaced, never changed
	ended bool
}

// heldChecker is a checker for a set of address lists. There are as many in one
// place as there are policies with crawlers of their own, which is few: that is
// quicker to look through than a map.
type heldChecker struct {
	lists   unique.Handle[string]
	checker *checker
}

// maxCheckers bounds the checkers of one handler, of which there is one for each
// set of address lists.
const maxCheckers = 64

// listsKey is the same for the same address lists.
func listsKey(urls []string) unique.Handle[string] { return unique.Make(strings.Join(urls, " ")) }

// find returns the checker that is held for a set of address lists, or nil, and all
// that are held.
func (ids *identities) find(key unique.Handle[string]) (*checker, []heldChecker) {
	held := ids.held.Load()
	if held == nil {
		return nil, nil
	}
	for _, h := range *held {
		if h.lists == key {
			return h.checker, *held
		}
	}
	return nil, *held
}

// of returns the checker for a set of address lists, or nil.
func (ids *identities) of(urls []string, key unique.Handle[string]) *checker {
	if !ids.embedded {
		return nil
	}
	if c, _ := ids.find(key); c != nil {
		return c
	}
	ids.mu.Lock()
	defer ids.mu.Unlock()
	found, held := ids.find(key)
	if found != nil || ids.ended || len(held) >= maxCheckers {
		return found
	}
	c, _, err := checkers.LoadOrNew(ids.poolKey(key), func() (caddy.Destructor, error) {
		return newChecker(ids.verification, urls, ids.resolver), nil
	})
	if err != nil {
		return nil
	}
	held = append(slices.Clip(held), heldChecker{key, c.(*checker)})
	ids.held.Store(&held)
	return c.(*checker)
}

func (ids *identities) poolKey(key unique.Handle[string]) string {
	return fmt.Sprintln(ids.lists, ids.dns, ids.signatures, ids.ranges, key.Value())
}

// release gives all checkers back.
func (ids *identities) release() {
	if ids == nil {
		return
	}
	ids.mu.Lock()
	defer ids.mu.Unlock()
	ids.ended = true
	held := ids.held.Swap(nil)
	if held == nil {
		return
	}
	for _, h := range *held {
		// Its only errors are those of Destruct, which has none.
		_, _ = checkers.Delete(ids.poolKey(h.lists))
	}
}
