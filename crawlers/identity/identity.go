// SPDX-License-Identifier: Apache-2.0

// Package identity decides whether a client is the crawler it claims to be, and which
// crawler it is if only its signature or address says so. It is Caddy's side of
// crawlers/verify and crawlers/webbotauth: what they fetch is shared by all handlers
// and matchers with the same settings and survives configuration reloads.
package identity

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/webbotauth"
	"github.com/robotspolicy/caddy-robots-policy/internal/original"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Verifier verifies the clients of one handler or matcher. It is safe for concurrent
// use and never makes a request wait. A nil Verifier verifies nothing.
type Verifier struct {
	methods Methods
	engine  *engine
	lists   []string
	close   sync.Once
}

// New returns a verifier that uses the lists of the embedded catalogue, and those of
// the policies that it is asked about. It returns nil if verification is off. Close it
// when done.
func New(m Methods) *Verifier {
	if !m.Enabled {
		return nil
	}
	// The constructor returns no error, and so does not LoadOrNew.
	shared, _, _ := engines.LoadOrNew(m.key(), func() (caddy.Destructor, error) {
		return newEngine(m, verify.DNSOptions{}), nil
	})
	v := &Verifier{methods: m, engine: shared.(*engine)}
	if known, err := crawlers.Embedded(); err == nil {
		v.lists = known.AddressLists()
	}
	if err := v.engine.lists.Acquire(v.lists, maxPrefixes); err != nil {
		v.lists = nil
		v.engine.sources.bound("too many address lists; those of the built-in catalogue are not used", zap.Error(err))
	}
	return v
}

// key is equal for equal methods.
func (m Methods) key() string { return fmt.Sprintln(m.Lists, m.DNS, m.Signatures, m.AllowedRanges) }

// DetectsImpostors is [Methods.DetectsImpostors].
func (v *Verifier) DetectsImpostors() bool { return v != nil && v.methods.DetectsImpostors() }

// Close releases what the verifier uses.
func (v *Verifier) Close() {
	if v == nil {
		return
	}
	v.close.Do(func() {
		v.engine.lists.Release(v.lists)
		_, _ = engines.Delete(v.methods.key()) // Destruct returns no error
	})
}

// Identify returns whether a request comes from the crawler with these facts, which
// are those of a policy or catalogue with these identities. What is not cached is
// looked up in the background, for the next request.
func (v *Verifier) Identify(r *http.Request, id *crawlers.Identities, facts crawlers.Verification) policy.Identity {
	if v == nil || facts.IsEmpty() {
		return policy.Unknown
	}
	return v.engine.identify(r, id, facts)
}

func (e *engine) identify(r *http.Request, id *crawlers.Identities, facts crawlers.Verification) policy.Identity {
	e.start()
	e.use(id)
	undecided := false // there is a signature that may turn out to be the operator's
	if facts.WebBotAuth != "" && webbotauth.Signed(r.Header) {
		undecided = e.signatures == nil
		if !undecided {
			result := e.checkSignature(r, facts.WebBotAuth)
			if result.Status == webbotauth.Verified {
				return policy.Verified
			}
			undecided = result.Undecided
		}
	}
	addr, ok := clientAddr(r)
	if !ok {
		return policy.Unknown
	}
	asked, all := e.askable(facts)
	switch e.verifier.Check(canceledCtx, asked, addr).Status {
	case verify.Verified:
		return policy.Verified
	case verify.Impostor:
		if all && !undecided && !crawlers.OnDevicePreview(r.Header["User-Agent"]) {
			return policy.Impostor
		}
	}
	return policy.Unknown
}

// askable returns the facts about addresses that can be checked with the methods in
// use, and whether these are all: only then can anyone be an impostor.
func (e *engine) askable(facts crawlers.Verification) (_ crawlers.Verification, all bool) {
	if e.methods.DNS || len(facts.ReverseDNS) == 0 {
		return facts, true
	}
	facts.ReverseDNS = nil
	return facts, false
}

// Recognize returns the crawler that a request proves to be from, whatever its
// User-Agent says: by a signature of an operator, or by an address on a list that an
// operator publishes for one crawler alone. named says whether the User-Agent names a
// crawler, and isNamed which. It returns nil if the request proves nothing; [Verifier.Identify]
// decides about the named crawlers then.
func (v *Verifier) Recognize(r *http.Request, id *crawlers.Identities, named bool, isNamed func(*crawlers.Crawler) bool) *crawlers.Crawler {
	if v == nil {
		return nil
	}
	if v.engine.signatures != nil && webbotauth.Signed(r.Header) {
		if signer := v.engine.recognizeSigner(r, id, isNamed); signer != nil {
			return signer
		}
	}
	if named || !v.methods.Lists {
		return nil
	}
	return v.engine.recognizeAddress(r, id)
}

// recognizeSigner returns the crawler whose operator signed a request. If several
// crawlers share a directory it is the one that the User-Agent names, or none.
func (e *engine) recognizeSigner(r *http.Request, id *crawlers.Identities, isNamed func(*crawlers.Crawler) bool) *crawlers.Crawler {
	for _, directory := range webbotauth.NamedDirectories(r.Header, id.Directories()) {
		signers := id.ByDirectory(directory)
		if e.checkSignature(r, directory).Status != webbotauth.Verified {
			continue
		}
		for _, c := range signers {
			if len(signers) == 1 || isNamed(c) {
				return c
			}
		}
	}
	return nil
}

func (e *engine) recognizeAddress(r *http.Request, id *crawlers.Identities) (found *crawlers.Crawler) {
	addr, ok := clientAddr(r)
	if !ok {
		return nil
	}
	e.start()
	e.use(id)
	for _, url := range e.lists.Find(addr) {
		c := id.ByList(url)
		switch {
		case c == nil || c == found:
		case found != nil:
			return nil // on the lists of two crawlers
		default:
			found = c
		}
	}
	return found
}

// clientAddr returns the address that Caddy determined for the client.
func clientAddr(r *http.Request) (netip.Addr, bool) {
	client, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	addr, err := netip.ParseAddr(client)
	return addr, err == nil
}

// checkSignature checks the signature of a request, once per request however often
// it is called: a nonce is accepted only once.
func (e *engine) checkSignature(r *http.Request, directory string) webbotauth.Result {
	const key = "robots_policy.signature "
	if cached, ok := caddyhttp.GetVar(r.Context(), key+directory).(webbotauth.Result); ok {
		return cached
	}
	result := e.signatures.Check(canceledCtx, webbotauth.Request{
		Method: r.Method, Scheme: clientScheme(r), Host: r.Host, Target: original.Target(r), Header: r.Header,
	}, directory)
	caddyhttp.SetVar(r.Context(), key+directory, result)
	return result
}

// clientScheme returns the scheme that the client used, as far as a trusted proxy says
// so.
func clientScheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool)
	if trusted && r.Header.Get("X-Forwarded-Proto") == "https" {
		return "https"
	}
	return "http"
}
