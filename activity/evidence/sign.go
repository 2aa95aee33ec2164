// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Signature is the file beside the file of a day that has ended.
type Signature struct {
	File      string `json:"file"`
	Seq       uint64 `json:"seq"`  // of the file's last line
	Hash      string `json:"hash"` // of that line
	PublicKey string `json:"public_key"`
	Signature string `json:"signature"` // Ed25519, of SignedText
}

// SignedText is what a signature signs.
func (s *Signature) SignedText() []byte {
	return fmt.Appendf(nil, "caddy-robots-policy evidence 1\n%s\n%d\n%s\n", s.File, s.Seq, s.Hash)
}

func (l *Log) sign() error {
	if l.options.Key == nil {
		return nil
	}
	s := Signature{File: fileName(l.day), Seq: l.seq, Hash: l.prev}
	public, _ := l.options.Key.Public().(ed25519.PublicKey)
	s.PublicKey = base64.StdEncoding.EncodeToString(public)
	s.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(l.options.Key, s.SignedText()))
	b, err := json.MarshalIndent(&s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(l.dir, s.File+SignatureSuffix), append(b, '\n'), 0o600)
}

// valid checks a signature by the key that it names.
func (s *Signature) valid() bool {
	key, err := base64.StdEncoding.DecodeString(s.PublicKey)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return false
	}
	signature, err := base64.StdEncoding.DecodeString(s.Signature)
	return err == nil && ed25519.Verify(key, s.SignedText(), signature)
}

// ReadKey reads an Ed25519 private key: PEM of PKCS #8, as
// `openssl genpkey -algorithm ed25519` writes it.
func ReadKey(name string) (ed25519.PrivateKey, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, fmt.Errorf("%s has no PEM block; make a key with: openssl genpkey -algorithm ed25519 -out %[1]s", name)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New(name + " is not an Ed25519 key; make one with: openssl genpkey -algorithm ed25519 -out " + name)
	}
	return private, nil
}
