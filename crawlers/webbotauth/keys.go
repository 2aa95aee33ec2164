// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Limits of a key directory.
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
	from, to time.Time // zero: no limit
}

// thumbprint returns the keyid of a key: its SHA-256 thumbprint (RFC 7638, RFC 8037
// section 2).
func thumbprint(key ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(key) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// parseKeys reads a JWK Set, or a single key as some operators publish. Keys of other
// types are ignored. Keys are identified by their thumbprints, whatever their kid.
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

// keyTime reads a time of a key in seconds, or in milliseconds as some write it.
func keyTime(t *float64) time.Time {
	if t == nil || *t < 0 || *t > 1e14 {
		return time.Time{}
	}
	if *t > 1e11 {
		return time.UnixMilli(int64(*t))
	}
	return time.Unix(int64(*t), 0)
}
