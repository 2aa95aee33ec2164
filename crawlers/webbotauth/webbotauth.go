// SPDX-License-Identifier: Apache-2.0

// Package webbotauth verifies requests that crawlers sign: HTTP Message
// Signatures (RFC 9421) with Ed25519, as draft-ietf-webbotauth-httpsig-protocol-01
// has bots use them.
//
// The draft takes the signer to be whoever publishes the key, at a URL that the
// request names. This package is asked another question: did the operator whose
// key directory is known sign this request? So no address that a request names is
// ever fetched: only the directory that the caller names is, and a request that
// names another is of no use to it.
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

// Tag is the tag parameter of signatures that identify a bot.
const Tag = "web-bot-auth"

// Status is the answer to whether the operator signed a request.
type Status uint8

const (
	// Unsigned: the request carries no signature of this kind.
	Unsigned Status = iota
	// Unverified: it carries one that could not be checked: the keys are not there,
	// another directory is named, or the form is not one that this package knows.
	Unverified
	// Invalid: it carries one that was checked and does not hold.
	Invalid
	// Verified: the operator's key signed this request.
	Verified
)

// String is the status in lower case.
func (s Status) String() string {
	return [...]string{"unsigned", "unverified", "invalid", "verified"}[s]
}

// Result is a Status, and what it rests on.
type Result struct {
	Status Status
	KeyID  string // of a verified signature: the key's thumbprint (RFC 7638)
	Err    error  // why an answer is Unverified or Invalid
	// NoKeys is true where the keys to check a signature with cannot be had, or not
	// yet: it may be the operator's. Every other one that is not Verified is not.
	NoKeys bool
}

// Options are the options of a Verifier. The zero value has the defaults.
type Options struct {
	// MaxAge is how long after its creation a signature holds, whatever its expires
	// says: 24 hours by default, which the draft recommends to signers as the
	// longest.
	MaxAge time.Duration
	// Skew is how far the clocks of signers may be ahead: 30 seconds by default.
	Skew time.Duration
	// Timeout is for fetching a directory: 5 seconds by default.
	Timeout time.Duration
	// AllowedRanges are addresses from which directories are fetched although they
	// are not public, such as an intranet's. There are none by default.
	AllowedRanges []netip.Prefix
	// Now is the clock; time.Now by default.
	Now func() time.Time
	// Report, if not nil, is told after each fetch of a directory, by the goroutine
	// that fetches. It must not call Close.
	Report func(DirectoryStatus)

	testKeys bool // accept the published test key of RFC 9421
}

// Verifier checks signatures and keeps keys. It is safe for concurrent use.
type Verifier struct {
	options     Options
	directories *directories
	nonces      nonces
}

// New returns a verifier. It opens no connection before it is asked.
func New(o Options) *Verifier {
	if o.MaxAge <= 0 {
		o.MaxAge = 24 * time.Hour
	}
	if o.Skew <= 0 {
		o.Skew = 30 * time.Second
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Verifier{options: o, directories: newDirectories(o)}
}

// Close ends all fetches and waits for them. The verifier may be asked
// afterwards, and answers from the keys it has.
func (v *Verifier) Close() { v.directories.close() }

// Directories returns what is known of each key directory that was asked for,
// ordered by URL.
func (v *Verifier) Directories() []DirectoryStatus { return v.directories.status() }

// Signed reports whether a request carries a signature that Check may know. It
// costs next to nothing.
func Signed(h http.Header) bool {
	return len(h["Signature-Input"]) > 0 && len(h["Signature"]) > 0 && len(h["Signature-Agent"]) > 0
}

// Limits on what a request can make the verifier do.
const (
	maxFieldBytes = 16 << 10 // of each field that is parsed
	maxSignatures = 4        // that are tried
	maxComponents = 32
)

// Errors that callers may want to tell apart; others are told in words only.
var (
	ErrReplayed    = errors.New("the nonce was used before")
	ErrExpired     = errors.New("the signature has expired")
	ErrNoKey       = errors.New("the directory has no such key")
	ErrOther       = errors.New("the request names another key directory")
	ErrUnavailable = errors.New("the key directory cannot be had")
)

// Check tells whether the operator with a key directory signed a request. The
// directory is an origin, whose keys are at the well-known place, or the https URL
// of a JWK Set, which is fetched with its query and compared without it (draft
// section 5.5). Check waits for the keys no longer than the context lasts; with a
// context that has ended it answers from the keys that it has, and has the others
// fetched for the next time.
//
// A signature with a nonce counts once (draft section 5.2.3): ask once for each
// request. One without can be sent again within its lifetime, to the same
// authority, by whoever sees it.
func (v *Verifier) Check(ctx context.Context, r Request, directory string) Result {
	if !Signed(r.Header) {
		return Result{}
	}
	where, err := resolve(directory)
	if err != nil {
		return Result{Status: Unverified, Err: fmt.Errorf("the operator's directory: %w", err)}
	}
	m, err := parseMessage(r)
	if err != nil {
		return Result{Status: Unverified, Err: err}
	}
	best, noKeys := Result{}, false
	tried := 0
	for _, label := range m.input.Names() {
		list, ok := member(m.input, label).(httpsfv.InnerList)
		if !ok {
			continue
		}
		if tag, _ := list.Params.Get("tag"); tag != Tag {
			continue
		}
		if tried++; tried > maxSignatures {
			break
		}
		result := v.checkOne(ctx, m, label, list, where)
		noKeys = noKeys || errors.Is(result.Err, ErrUnavailable)
		if result.Status > best.Status || best.Status == Unsigned {
			best = result
		}
		if best.Status == Verified {
			break
		}
	}
	best.NoKeys = noKeys && best.Status != Verified
	return best
}

// checkOne checks one signature of a message.
func (v *Verifier) checkOne(ctx context.Context, m *message, label string, list httpsfv.InnerList, where location) Result {
	s, err := parseSignature(m, label, list)
	if err != nil {
		return Result{Status: Unverified, Err: err}
	}
	if s.agent != where.id {
		return Result{Status: Unverified, Err: fmt.Errorf("%w: %s", ErrOther, s.agent)}
	}
	now := v.options.Now()
	switch {
	case s.created.After(now.Add(v.options.Skew)):
		return Result{Status: Invalid, Err: errors.New("the signature is of the future")}
	case !now.Before(s.expires) || now.Sub(s.created) >= v.options.MaxAge:
		return Result{Status: Invalid, Err: ErrExpired}
	case !s.created.Before(s.expires):
		return Result{Status: Invalid, Err: errors.New("the signature expires before it is created")}
	case s.keyID == testKeyID && !v.options.testKeys:
		return Result{Status: Invalid, Err: errors.New("signed with the test key of RFC 9421, which everybody has")}
	}
	key, err := v.directories.key(ctx, where.url, s.keyID)
	if err != nil {
		return Result{Status: Unverified, Err: err}
	}
	if !ed25519.Verify(key, []byte(s.base), s.value) {
		return Result{Status: Invalid, Err: errors.New("the signature is not of this request and key")}
	}
	if s.nonce != "" {
		until := s.created.Add(v.options.MaxAge)
		if s.expires.Before(until) {
			until = s.expires
		}
		if err := v.nonces.use(s.keyID+" "+s.nonce, now, until); err != nil {
			return Result{Status: Invalid, Err: err}
		}
	}
	return Result{Status: Verified, KeyID: s.keyID}
}

// testKeyID is the thumbprint of the Ed25519 key of RFC 9421 appendix B.1.4, of
// which the private part is printed there.
const testKeyID = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"
