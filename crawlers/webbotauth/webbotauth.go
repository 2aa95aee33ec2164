// SPDX-License-Identifier: Apache-2.0

// Package webbotauth verifies the signatures of requests from crawlers. The signatures are HTTP Message Signatures (RFC
// 9421) with Ed25519, as specified for bots in draft-ietf-webbotauth-httpsig-protocol-01.
//
// In the draft, a request names the URL of a key, and the publisher of the key is the signer. This package answers a
// different question: did an operator with a known key directory sign the request? A key directory is an https URL at
// which an operator publishes its public keys. The package never fetches a URL from a request. It fetches only the key
// directory that its caller names. If the request names another directory, the request stays unverified.
package webbotauth

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/dunglas/httpsfv"
)

// signatureTag is the tag parameter of signatures that identify a bot.
const signatureTag = "web-bot-auth"

// Status is the result of checking a signature.
type Status uint8

const (
	// Unsigned means that the request does not have a Web Bot Auth signature.
	Unsigned Status = iota
	// Unverified means that the signature could not be checked. Either the keys are not available, or the signature
	// names another directory or is not supported.
	Unverified
	// Invalid means that the signature was checked and is wrong.
	Invalid
	// Verified means that the operator's key signed this request.
	Verified
)

// String returns the status in lower case.
func (s Status) String() string {
	return [...]string{"unsigned", "unverified", "invalid", "verified"}[s]
}

// Result is a [Status] with its evidence.
type Result struct {
	Status Status
	KeyID  string // thumbprint of the key of a verified signature (RFC 7638)
	Card   Card   // the card of a verified signer
	Err    error  // the reason if the status is Unverified or Invalid
	// Undecided is true if the signature may still be the operator's: either the keys are not available yet, or the
	// request may be a replay.
	Undecided bool
}

// Options configures a Verifier. The zero value selects the defaults.
type Options struct {
	// AllowedRanges are non-public addresses that may serve keys, such as addresses of an intranet. By default, keys
	// are fetched only from public addresses.
	AllowedRanges []netip.Prefix
	Now           func() time.Time // the clock; time.Now by default
	// Report, if not nil, is called after each fetch of a directory. Report must not call Close.
	Report func(DirectoryStatus)

	// Forgot, if not nil, is called when the oldest nonces of a directory were forgotten because there were too many
	// nonces. From then on, signatures of that directory are undecided if they are not newer than the signatures with
	// the forgotten nonces.
	Forgot func(directory string)

	timeout  time.Duration // maximum time of a fetch; fetchTimeout by default
	testKeys bool          // whether to accept the test key of RFC 9421
}

// Verifier checks signatures, and caches keys. It is safe for concurrent use.
type Verifier struct {
	options     Options
	directories *directories
	nonces      nonces
}

// New returns a verifier. The verifier does not open connections before the first Check.
func New(o Options) *Verifier {
	if o.timeout == 0 {
		o.timeout = fetchTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Verifier{options: o, directories: newDirectories(o), nonces: nonces{max: maxNonces, forgot: o.Forgot}}
}

// Close cancels all fetches and waits until they have ended. After Close, Check may still be called, and uses only
// cached keys.
func (v *Verifier) Close() { v.directories.close() }

// Directories returns the state of each key directory that was used, ordered by URL.
func (v *Verifier) Directories() []DirectoryStatus { return v.directories.status() }

// Signed reports whether a request may carry a signature that Check can verify.
func Signed(h http.Header) bool {
	return len(h["Signature-Input"]) > 0 && len(h["Signature"]) > 0 && len(h["Signature-Agent"]) > 0
}

const (
	// maxAge limits how long a signature is valid after its creation, even if the signature has a later expiration
	// time. The draft recommends that signers do not choose a longer time.
	maxAge = 24 * time.Hour
	// maxSkew limits how far a signer's clock may be ahead.
	maxSkew      = 30 * time.Second
	fetchTimeout = 5 * time.Second
)

// These constants limit the work that one request can cause.
const (
	maxFieldBytes = 16 << 10 // maximum length of each field
	maxSignatures = 4        // maximum number of checked signatures in one request
	maxComponents = 32
)

// These errors are reasons why a signature does not verify a request. Check or a test compares errors with them.
var (
	errReplayed    = errors.New("the nonce has been used before")
	errExpired     = errors.New("the signature has expired")
	errNoKey       = errors.New("the directory has no such key")
	errOther       = errors.New("the request refers to another key directory than the expected one")
	errUnavailable = errors.New("the key directory is not available")
	errForgotten   = errors.New("too many nonces are in use, so it cannot be checked whether this nonce has been used before")
)

// Check checks whether a request was signed with a key of a key directory. The parameter directory is an origin with
// keys at the well-known path, or the https URL of a JWK Set or a Signature Agent Card. The query of such a URL is sent
// when the keys are fetched, but ignored when the URL is compared with the URL in a request (draft section 5.5). Check
// waits for keys until ctx is done. If ctx is already done, Check uses only cached keys, and fetches missing keys in
// the background.
//
// A signature with a nonce is accepted only once (draft section 5.2.3), so call Check only once per request. Anyone who
// sees a signature without a nonce can send that signature again to the same authority until the signature expires.
func (v *Verifier) Check(ctx context.Context, r Request, directory string) Result {
	if !Signed(r.Header) {
		return Result{}
	}
	where, err := resolve(directory)
	if err != nil {
		return Result{Status: Unverified, Err: fmt.Errorf("invalid key directory: %w", err)}
	}
	m, err := parseMessage(r)
	if err != nil {
		return Result{Status: Unverified, Err: err}
	}
	best, undecided := Result{}, false
	tried := 0
	for _, label := range m.input.Names() {
		list, ok := member(m.input, label).(httpsfv.InnerList)
		if !ok {
			continue
		}
		if tag, _ := list.Params.Get("tag"); tag != signatureTag {
			continue
		}
		if tried++; tried > maxSignatures {
			break
		}
		result := v.checkOne(ctx, m, label, list, where)
		undecided = undecided || errors.Is(result.Err, errUnavailable) || errors.Is(result.Err, errForgotten)
		if result.Status > best.Status || best.Status == Unsigned {
			best = result
		}
		if best.Status == Verified {
			break
		}
	}
	best.Undecided = undecided && best.Status != Verified
	return best
}

func (v *Verifier) checkOne(ctx context.Context, m *message, label string, list httpsfv.InnerList, where location) Result {
	s, err := parseSignature(m, label, list)
	if err != nil {
		return Result{Status: Unverified, Err: err}
	}
	if s.agent != where.id {
		return Result{Status: Unverified, Err: fmt.Errorf("%w: %s", errOther, s.agent)}
	}
	now := v.options.Now()
	switch {
	case s.created.After(now.Add(maxSkew)):
		return Result{Status: Invalid, Err: errors.New("the signature says that it was created in the future")}
	case !now.Before(s.expires) || now.Sub(s.created) >= maxAge:
		return Result{Status: Invalid, Err: errExpired}
	case !s.created.Before(s.expires):
		return Result{Status: Invalid, Err: errors.New("the parameter expires is earlier than the parameter created")}
	case s.keyID == testKeyID && !v.options.testKeys:
		return Result{Status: Invalid, Err: errors.New("signed with the public test key of RFC 9421")}
	}
	key, err := v.directories.key(ctx, where.url, s.keyID)
	if err != nil {
		return Result{Status: Unverified, Err: err}
	}
	if !ed25519.Verify(key, []byte(s.base), s.value) {
		return Result{Status: Invalid, Err: errors.New("the signature does not match")}
	}
	if s.nonce != "" {
		until := s.created.Add(maxAge)
		if s.expires.Before(until) {
			until = s.expires
		}
		switch err := v.nonces.use(where.id, s.keyID+" "+s.nonce, now, s.created, until); {
		case errors.Is(err, errForgotten):
			return Result{Status: Unverified, Err: err}
		case err != nil:
			return Result{Status: Invalid, Err: err}
		}
	}
	return Result{Status: Verified, KeyID: s.keyID, Card: v.Card(where.url)}
}

// testKeyID is the thumbprint of the Ed25519 key of RFC 9421 appendix B.1.4, whose private part is published in that
// appendix.
const testKeyID = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"
