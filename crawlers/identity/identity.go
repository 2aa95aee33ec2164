// SPDX-License-Identifier: Apache-2.0

// Package identity decides whether a client is the crawler it claims to be, and which crawler it is if only its
// signature or address says so. It serves requests from what crawlers/verify and crawlers/webbotauth fetch: all
// verifiers with the same methods share that, so that it survives when one takes over from another.
package identity

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/webbotauth"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Server is what a verifier asks of the server whose clients it verifies.
type Server interface {
	// ClientIP returns the address of the client, "" if it is not known.
	ClientIP(r *http.Request) string
	// TrustsProxy reports whether the headers of a request tell what a proxy saw.
	TrustsProxy(r *http.Request) bool
	// Original returns the request target and URL as the client sent them.
	Original(r *http.Request) (target string, u *url.URL)
	// Vars returns what is noted about a request until it ends, nil if there is no place for it.
	Vars(r *http.Request) map[string]any
}

// Verifier verifies the clients of one handler or matcher. It is safe for concurrent
// use and never makes a request wait. A nil Verifier verifies nothing.
type Verifier struct {
	methods Methods
	engine  *engine
	lists   []string
	close   sync.Once
}

// New returns a verifier that uses the lists of the embedded catalog, and those of the policies that it is asked
// about. It returns nil if verification is off. Close it when done. logger returns the logger to use now, as
// verifiers with the same methods share what they fetch; nil: nothing is logged.
func New(m Methods, logger func() *zap.Logger) *Verifier {
	if !m.Enabled {
		return nil
	}
	e := engines.Acquire(m.key(), func() *engine { return newEngine(m, verify.DNSOptions{}, logger) })
	v := &Verifier{methods: m, engine: e}
	if known, err := crawlers.Embedded(); err == nil {
		v.lists = known.AddressLists()
	}
	if err := e.lists.Acquire(v.lists, maxPrefixes); err != nil {
		v.lists = nil
		e.sources.bound("too many address lists; those of the built-in catalog are not used", zap.Error(err))
	}
	return v
}

func (m Methods) key() string { return fmt.Sprintln(m.Lists, m.DNS, m.Signatures, m.AllowedRanges) }

// EmbeddedOnly reports whether only the address lists that came with the program are used.
func (v *Verifier) EmbeddedOnly() bool {
	return v != nil && !v.methods.Lists && !v.methods.DNS && !v.methods.Signatures
}

// ChecksSignatures reports whether signatures of requests are checked.
func (v *Verifier) ChecksSignatures() bool { return v != nil && v.methods.Signatures }

// DetectsImpostors is [Methods.DetectsImpostors].
func (v *Verifier) DetectsImpostors() bool { return v != nil && v.methods.DetectsImpostors() }

// Close releases what the verifier uses.
func (v *Verifier) Close() {
	if v == nil {
		return
	}
	v.close.Do(func() {
		v.engine.lists.Release(v.lists)
		if engines.Release(v.methods.key()) {
			v.engine.close()
		}
	})
}

// Identify returns whether a request comes from the crawler with these facts, which are those of a policy or
// catalog with these identities. What is not cached is looked up in the background, for the next request.
func (v *Verifier) Identify(s Server, r *http.Request, id *crawlers.Identities, facts crawlers.Verification) policy.Identity {
	if v == nil || facts.IsEmpty() {
		return policy.Unknown
	}
	e := v.engine
	e.start()
	e.use(id)
	undecided := false // there is a signature that may turn out to be the operator's
	if facts.WebBotAuth != "" && webbotauth.Signed(r.Header) {
		undecided = e.signatures == nil
		if !undecided {
			result := v.checkSignature(s, r, facts.WebBotAuth)
			if result.Status == webbotauth.Verified {
				return policy.Verified
			}
			undecided = result.Undecided
		}
	}
	addr, err := netip.ParseAddr(s.ClientIP(r))
	if err != nil {
		return policy.Unknown
	}
	asked, all := v.methods.askable(facts)
	switch e.verifier.Check(canceledCtx, asked, addr).Status {
	case verify.Verified:
		return policy.Verified
	case verify.Impostor:
		if all && !undecided && !crawlers.OnDevicePreview(r.Header["User-Agent"]) {
			return policy.Impostor
		}
	case verify.Unknown:
	}
	return policy.Unknown
}

// Proof is who a request proves to be from, whatever its User-Agent says. Both are nil if it
// proves nothing; [Verifier.Identify] decides about the crawlers that it names then.
type Proof struct {
	// Crawler is the one whose operator signed the request, or that alone comes from its
	// address. If several crawlers share the keys it is the one that the User-Agent names.
	Crawler *crawlers.Crawler
	Signer  *crawlers.Crawler // the signer, if the policy names it (signed:HOST)
	Card    webbotauth.Card   // what the one who signed says of itself
}

// Judged returns the crawlers whose rules hold for a request, by whatever of returns for
// one: those that its User-Agent names, unless it is proven which one it is from, and the
// signer. A signer that is documented to be the proven one stands for both.
func Judged[T any](p Proof, named []T, of func(*crawlers.Crawler) (T, bool)) []T {
	if p.Crawler != nil {
		if proven, ok := of(p.Crawler); ok {
			named = []T{proven}
		}
	}
	if p.Signer == nil {
		return named
	}
	signer, ok := of(p.Signer)
	switch {
	case !ok:
		return named
	case p.Crawler != nil && slices.Contains(p.Signer.Follows, p.Crawler.Token):
		return []T{signer}
	}
	return append(slices.Clip(named), signer)
}

// Recognize returns what a request proves: by a signature of an operator, or by an address on a list that an operator
// publishes for one crawler alone. named says whether the User-Agent names a crawler, and isNamed which.
func (v *Verifier) Recognize(s Server, r *http.Request, id *crawlers.Identities, named bool, isNamed func(*crawlers.Crawler) bool) (p Proof) {
	if v == nil {
		return p
	}
	if v.engine.signatures != nil && webbotauth.Signed(r.Header) {
		if p = v.recognizeSigner(s, r, id, isNamed); p != (Proof{}) {
			return p
		}
	}
	if !named && v.methods.Lists {
		p.Crawler = v.recognizeAddress(s, r, id)
	}
	return p
}

func (v *Verifier) recognizeSigner(s Server, r *http.Request, id *crawlers.Identities, isNamed func(*crawlers.Crawler) bool) (p Proof) {
	for _, directory := range webbotauth.NamedDirectories(r.Header, id.Directories()) {
		result := v.checkSignature(s, r, directory)
		if result.Status != webbotauth.Verified {
			continue
		}
		signers := id.ByDirectory(directory)
		operators := slices.DeleteFunc(slices.Clone(signers), (*crawlers.Crawler).IsSigner)
		for _, c := range operators {
			if len(operators) == 1 || isNamed(c) {
				p.Crawler = c
				break
			}
		}
		if i := slices.IndexFunc(signers, (*crawlers.Crawler).IsSigner); i >= 0 {
			p.Signer = signers[i]
		}
		if p != (Proof{}) {
			p.Card = result.Card
			return p
		}
	}
	return p
}

func (v *Verifier) recognizeAddress(s Server, r *http.Request, id *crawlers.Identities) (found *crawlers.Crawler) {
	addr, err := netip.ParseAddr(s.ClientIP(r))
	if err != nil {
		return nil
	}
	v.engine.start()
	v.engine.use(id)
	for _, url := range v.engine.lists.Find(addr) {
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

// checkSignature checks the signature of a request, once per request however often
// it is called: a nonce is accepted only once.
func (v *Verifier) checkSignature(s Server, r *http.Request, directory string) webbotauth.Result {
	key := "robots_policy.signature " + directory
	vars := s.Vars(r)
	if known, ok := vars[key].(webbotauth.Result); ok {
		return known
	}
	target, u := s.Original(r)
	if !strings.HasPrefix(target, "/") {
		target = pathpattern.Target(u)
	}
	result := v.engine.signatures.Check(canceledCtx, webbotauth.Request{
		Method: r.Method, Scheme: clientScheme(s, r), Host: r.Host, Target: target, Header: r.Header,
	}, directory)
	if vars != nil {
		vars[key] = result
	}
	return result
}

// clientScheme returns the scheme that the client used, as far as a trusted proxy says so.
func clientScheme(s Server, r *http.Request) string {
	if r.TLS != nil || s.TrustsProxy(r) && r.Header.Get("X-Forwarded-Proto") == "https" {
		return "https"
	}
	return "http"
}

// Proof says by what [Verifier.Identify] verified a request, so that others can check it: a
// key, an address list and its date, or the suffix of the host name, which as a whole would
// contain the address. It is empty if that is not known any more.
func (v *Verifier) Proof(s Server, r *http.Request, facts crawlers.Verification) string {
	if v == nil {
		return ""
	}
	if facts.WebBotAuth != "" && v.engine.signatures != nil && webbotauth.Signed(r.Header) {
		if result := v.checkSignature(s, r, facts.WebBotAuth); result.Status == webbotauth.Verified {
			return "signed by the key " + result.KeyID + " of " + facts.WebBotAuth
		}
	}
	addr, err := netip.ParseAddr(s.ClientIP(r))
	if err != nil {
		return ""
	}
	asked, _ := v.methods.askable(facts)
	switch result := v.engine.verifier.Check(canceledCtx, asked, addr); result.By {
	case "address-list":
		return "address on the list " + result.Evidence + asOf(result.Evidence, v.engine.lists.Status())
	case "reverse-dns":
		for _, pattern := range facts.ReverseDNS {
			if ok, _ := path.Match("*"+pattern, "."+result.Evidence); ok {
				return "host name under " + strings.TrimPrefix(pattern, ".") + ", which resolves back"
			}
		}
	}
	return ""
}
