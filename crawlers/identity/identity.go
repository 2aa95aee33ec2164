// SPDX-License-Identifier: Apache-2.0

// Package identity decides whether a client is the crawler that its User-Agent names. Even if the User-Agent does not
// name a crawler, a signature or an address may identify the crawler. The package uses the data that crawlers/verify
// and crawlers/webbotauth fetch. All verifiers with the same [Methods] share this data, so the data survives a reload
// that replaces one verifier with another.
package identity

import (
	"fmt"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/webbotauth"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Server gives a verifier information about a request that only the web server has.
type Server interface {
	// ClientIP returns the IP address of the client, or "" if the address is not known.
	ClientIP(r *http.Request) string
	// TrustsProxy reports whether the request comes from a trusted proxy. If so, the verifier uses the forwarding
	// headers of the request.
	TrustsProxy(r *http.Request) bool
	// Vars returns a map for values that belong to the request, or nil if the server has no such map.
	Vars(r *http.Request) map[string]any
}

// Verifier verifies the clients of one handler or matcher. It is safe for concurrent use and never makes a request
// wait. A nil Verifier leaves all clients unverified.
type Verifier struct {
	methods Methods
	engine  *engine
	lists   []string
	close   sync.Once
}

// New returns a verifier that uses the lists of the embedded catalog and of the policies passed to [Ask]. It returns
// nil if verification is off. Call Close when the verifier is no longer used. logger returns the logger to use at the
// moment. logger is a function, because verifiers with the same methods share data, and this data outlives a
// configuration and its logger. If logger returns nil, nothing is logged.
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
		e.sources.bound("too many address lists; the lists of the built-in catalog are not used", zap.Error(err))
	}
	return v
}

func (m Methods) key() string { return fmt.Sprintln(m.Lists, m.DNS, m.Signatures, m.AllowedRanges) }

// Methods returns the methods of the verifier. For a nil Verifier, it returns the methods of `verify off`.
func (v *Verifier) Methods() Methods {
	if v == nil {
		return Methods{}
	}
	return v.methods
}

// ChecksSignatures reports whether signatures of requests are checked.
func (v *Verifier) ChecksSignatures() bool { return v != nil && v.methods.Signatures }

// Close releases the data that the verifier uses.
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

// Request is a request whose client should be identified.
type Request struct {
	*http.Request
	Server Server
	Target string // path and query, unchanged from the client's request
}

// Known maps crawlers of the catalog to the IDs that a policy or a matcher uses for them.
type Known[T comparable] interface {
	Identities() *crawlers.Identities
	// CrawlerOf returns the ID of a crawler of the catalog. ok is false if the policy or matcher does not have an ID
	// for c.
	CrawlerOf(c *crawlers.Crawler) (id T, ok bool)
	// Verification returns the facts that can verify the crawler.
	Verification(id T) crawlers.Verification
}

// Client is a crawler that a request may come from, with the result of verification.
type Client[T comparable] struct {
	Crawler  T
	Identity policy.Identity
	proof    proof
}

// proof says how a client was verified. by is the method: "address-list" or "reverse-dns", as in the field By of a
// [verify.Result], or bySignature. evidence is the URL of the list, the host name, or the ID of the key.
type proof struct{ by, evidence string }

const bySignature = "signature"

// Ask identifies the client of a request. It appends to clients the crawlers whose rules apply to the request. If the
// request proves which crawler sent it, Ask appends only the proven crawler. Otherwise it appends named, the crawlers
// that the User-Agent names. A policy may also name the signer of the request (signed:HOST). Then Ask also appends the
// signer. It leaves out the proven crawler if the signer's field Follows names this crawler. Ask also returns the
// signer's description of itself. Ask uses only cached data. It looks up missing data in the background for later
// requests.
func Ask[T comparable](v *Verifier, r Request, known Known[T], named []T, clients []Client[T]) ([]Client[T], webbotauth.Card) {
	var p proven
	if v != nil {
		p = v.recognize(r, known.Identities(), len(named) > 0, func(c *crawlers.Crawler) bool {
			id, ok := known.CrawlerOf(c)
			return ok && slices.Contains(named, id)
		})
	}
	crawler, isProven := ofProven(known, p.crawler)
	signer, isSigned := ofProven(known, p.signer)
	switch {
	case isSigned && p.crawler != nil && slices.Contains(p.signer.Follows, p.crawler.Token):
	case isProven:
		clients = append(clients, Client[T]{Crawler: crawler})
	default:
		for _, c := range named {
			clients = append(clients, Client[T]{Crawler: c})
		}
	}
	if isSigned {
		clients = append(clients, Client[T]{Crawler: signer})
	}
	if v == nil || len(clients) == 0 {
		return clients, p.card
	}
	addr, _ := netip.ParseAddr(r.Server.ClientIP(r.Request))
	for i := range clients {
		clients[i].Identity, clients[i].proof = v.identify(r, addr, known.Identities(), known.Verification(clients[i].Crawler))
	}
	return clients, p.card
}

func ofProven[T comparable](known Known[T], c *crawlers.Crawler) (id T, ok bool) {
	if c == nil {
		return id, false
	}
	return known.CrawlerOf(c)
}

// identify decides whether a request comes from the crawler with the given facts. id holds the identities of the policy
// or catalog that contains the crawler. addr is the client's address, or the zero Addr if the address is not known.
func (v *Verifier) identify(r Request, addr netip.Addr, id *crawlers.Identities, facts crawlers.Verification) (policy.Identity, proof) {
	if facts.IsEmpty() {
		return policy.Unknown, proof{}
	}
	e := v.engine
	e.start()
	e.use(id)
	undecided := false // true if the signature may be from the operator, but this is not decided yet
	if facts.WebBotAuth != "" && webbotauth.Signed(r.Header) {
		undecided = e.signatures == nil
		if !undecided {
			result := v.checkSignature(r, facts.WebBotAuth)
			if result.Status == webbotauth.Verified {
				return policy.Verified, proof{bySignature, result.KeyID}
			}
			undecided = result.Undecided
		}
	}
	if !addr.IsValid() {
		return policy.Unknown, proof{}
	}
	asked, all := v.methods.askable(facts)
	result := e.verifier.Check(canceledCtx, asked, addr)
	if result.Identity == policy.Impostor && (!all || undecided || crawlers.OnDevicePreview(r.Header["User-Agent"])) {
		return policy.Unknown, proof{}
	}
	return result.Identity, proof{result.By, result.Evidence}
}

// proven holds the sender of a request, if a signature or an address proves the sender's identity independently of the
// User-Agent. The zero value means that the sender is not proven.
type proven struct {
	// crawler is the crawler whose operator signed the request, or the only crawler that uses the request's address. If
	// several crawlers share the key, crawler is the one that the User-Agent names.
	crawler *crawlers.Crawler
	signer  *crawlers.Crawler // the signer, if the policy names the signer (signed:HOST)
	card    webbotauth.Card   // the signer's description of itself
}

// recognize returns the sender of a request, if the request proves who the sender is. The proof is an operator's
// signature or, if named is false, an address that is on the lists of only one crawler. named is true if the User-Agent
// names any crawler. isNamed reports whether the User-Agent names the given crawler.
func (v *Verifier) recognize(r Request, id *crawlers.Identities, named bool, isNamed func(*crawlers.Crawler) bool) (p proven) {
	if v.engine.signatures != nil && webbotauth.Signed(r.Header) {
		if p = v.recognizeSigner(r, id, isNamed); p != (proven{}) {
			return p
		}
	}
	if !named && v.methods.Lists {
		p.crawler = v.recognizeAddress(r, id)
	}
	return p
}

func (v *Verifier) recognizeSigner(r Request, id *crawlers.Identities, isNamed func(*crawlers.Crawler) bool) (p proven) {
	for _, directory := range webbotauth.NamedDirectories(r.Header, id.Directories()) {
		result := v.checkSignature(r, directory)
		if result.Status != webbotauth.Verified {
			continue
		}
		signers := id.ByDirectory(directory)
		operators := slices.DeleteFunc(slices.Clone(signers), (*crawlers.Crawler).IsSigner)
		for _, c := range operators {
			if len(operators) == 1 || isNamed(c) {
				p.crawler = c
				break
			}
		}
		if i := slices.IndexFunc(signers, (*crawlers.Crawler).IsSigner); i >= 0 {
			p.signer = signers[i]
		}
		if p != (proven{}) {
			p.card = result.Card
			return p
		}
	}
	return p
}

func (v *Verifier) recognizeAddress(r Request, id *crawlers.Identities) (found *crawlers.Crawler) {
	addr, err := netip.ParseAddr(r.Server.ClientIP(r.Request))
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
			return nil // the address is on the lists of two crawlers
		default:
			found = c
		}
	}
	return found
}

// checkSignature checks whether a request was signed with a key of the directory. If several handlers or matchers check
// the same request, all of them get the first result, because a nonce is accepted only once.
func (v *Verifier) checkSignature(r Request, directory string) webbotauth.Result {
	key := "robots_policy.signature " + directory
	vars := r.Server.Vars(r.Request)
	if known, ok := vars[key].(webbotauth.Result); ok {
		return known
	}
	result := v.engine.signatures.Check(canceledCtx, webbotauth.Request{
		Method: r.Method, Scheme: ClientScheme(r.Server, r.Request), Host: r.Host, Target: r.Target, Header: r.Header,
	}, directory)
	if vars != nil {
		vars[key] = result
	}
	return result
}

// ClientScheme returns the scheme that the client used. It uses the X-Forwarded-Proto header only if a trusted proxy
// sent the request.
func ClientScheme(s Server, r *http.Request) string {
	if r.TLS != nil || s.TrustsProxy(r) && r.Header.Get("X-Forwarded-Proto") == "https" {
		return "https"
	}
	return "http"
}

// Proof describes the evidence that verified c as the crawler with the given facts, so that someone else can check it.
// The text names a key, an address list with its date, or the suffix of a host name. The text does not contain the rest
// of the host name, because that rest may contain the client's address. Proof returns "" for an unverified client.
func (c *Client[T]) Proof(v *Verifier, facts crawlers.Verification) string {
	switch c.proof.by {
	case bySignature:
		return "signed by the key " + c.proof.evidence + " of " + facts.WebBotAuth
	case "address-list":
		return "address on the list " + c.proof.evidence + asOf(c.proof.evidence, v.engine.lists.Status())
	case "reverse-dns":
		for _, pattern := range facts.ReverseDNS {
			if ok, _ := path.Match("*"+pattern, "."+c.proof.evidence); ok {
				return "host name under " + strings.TrimPrefix(pattern, ".") + ", which resolves back"
			}
		}
	}
	return ""
}
