// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// These constants limit a key directory.
const (
	maxDirectoryBytes = 64 << 10
	maxKeys           = 100
)

// jwk is a JSON Web Key (RFC 7517, RFC 8037).
type jwk struct {
	Kty string   `json:"kty"`
	Crv string   `json:"crv"`
	X   string   `json:"x"`
	Use string   `json:"use"`
	Nbf *float64 `json:"nbf"`
	Exp *float64 `json:"exp"`
}

// publicKey is a key and its validity period.
type publicKey struct {
	key      ed25519.PublicKey
	from, to time.Time // a zero from or to means that the period has no start or no end
}

// thumbprint returns the keyid of a key, which is its SHA-256 thumbprint (RFC 7638, RFC 8037 section 2).
func thumbprint(key ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(key) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// parseKeys parses a JWK Set or, because some operators publish this, a single key. It ignores keys that are not
// Ed25519 keys. Keys are identified by their thumbprints, not by their kid.
func parseKeys(data []byte) (map[string]publicKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
		Kty  string            `json:"kty"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, fmt.Errorf("invalid JWK Set: %w", err)
	}
	if set.Keys == nil && set.Kty != "" {
		set.Keys = []json.RawMessage{data}
	}
	if set.Keys == nil {
		return nil, errors.New("invalid JWK Set: keys is missing")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("%d keys, more than the limit of %d", len(set.Keys), maxKeys)
	}
	keys := map[string]publicKey{}
	for _, raw := range set.Keys {
		var k jwk
		if json.Unmarshal(raw, &k) != nil || k.Kty != "OKP" || k.Crv != "Ed25519" || k.Use != "" && k.Use != "sig" {
			continue
		}
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || len(x) != ed25519.PublicKeySize {
			continue
		}
		keys[thumbprint(x)] = publicKey{key: x, from: keyTime(k.Nbf), to: keyTime(k.Exp)}
	}
	return keys, nil
}

// keyTime converts a time in a key. The unit is seconds, but some operators write milliseconds, which keyTime detects.
func keyTime(t *float64) time.Time {
	if t == nil || *t < 0 || *t > 1e14 {
		return time.Time{}
	}
	if *t > 1e11 {
		return time.UnixMilli(int64(*t))
	}
	return time.Unix(int64(*t), 0)
}

// A Card holds a signer's description of itself from its Signature Agent Card
// (draft-meunier-webbotauth-registry-03). Its claims have not been verified.
type Card struct {
	Purpose string `json:"purpose,omitempty"` // free text
	Rate    string `json:"rate,omitempty"`    // the expected rate, as free text
}

// Card returns the cached card of the signer whose key directory is directory.
func (v *Verifier) Card(directory string) Card {
	where, _ := resolve(directory)
	v.directories.mu.Lock()
	defer v.directories.mu.Unlock()
	if k := v.directories.cache[where.url]; k != nil {
		return k.card
	}
	return Card{}
}

// String describes the card in a phrase. It returns "" if the card is empty.
func (c Card) String() string {
	var says []string
	for _, member := range [][2]string{{"purpose", c.Purpose}, {"expected rate", c.Rate}} {
		if member[1] != "" {
			says = append(says, member[0]+" "+strconv.Quote(member[1]))
		}
	}
	return strings.Join(says, ", ")
}

// maxCardText limits the length of each text and URL in a card, in bytes.
const maxCardText = 500

// document is the content at the URL of a key directory. It is a set of keys, or a card that contains the keys or their
// URL. In earlier drafts, it can also be a key directory that has the members of a card.
type document struct {
	keys map[string]publicKey
	card Card
	next string // the URL of the card's keys, if keys is nil
}

// parseDocument parses data, which was fetched from url. The client_id of a card must be url. If a directory has a
// different client_id, the members of its card are ignored.
func parseDocument(data []byte, url string) (d document, err error) {
	var members, bot map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return d, fmt.Errorf("invalid key directory or card: %w", err)
	}
	id, isCard := members["client_id"]
	if text(id) == url || !isCard {
		_ = json.Unmarshal(members["web_bot_auth"], &bot)
		d.card = Card{
			Purpose: cmp.Or(text(bot["purpose"]), text(members["purpose"])),
			Rate:    cmp.Or(text(bot["rate-expectation"]), text(members["rate-expectation"])),
		}
	}
	switch {
	case members["keys"] != nil || members["kty"] != nil || !isCard:
		d.keys, err = parseKeys(data)
	case text(id) != url:
		err = fmt.Errorf("invalid Signature Agent Card: client_id is %.100s, must be %q", id, url)
	case members["jwks"] != nil && members["jwks_uri"] != nil:
		err = errors.New("invalid Signature Agent Card: has both jwks and jwks_uri, must have one")
	case members["jwks"] != nil:
		d.keys, err = parseKeys(members["jwks"])
	default:
		var where location
		if where, err = resolve(text(members["jwks_uri"])); err != nil {
			err = fmt.Errorf("invalid Signature Agent Card: jwks_uri: %w", err)
		}
		d.next = where.url
	}
	return d, err
}

// text returns the JSON string in data. If data is a list of strings, text returns them, separated by commas. It
// returns "" for a value of another type, and for a text that is too long or not printable.
func text(data json.RawMessage) string {
	var words []string
	if json.Unmarshal(data, &words) != nil {
		words = []string{""}
		_ = json.Unmarshal(data, &words[0])
	}
	s := strings.Join(words, ", ")
	if len(s) > maxCardText || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ""
	}
	return s
}
