// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Signature is the content of the signature file of a day's file. It signs the lines of the file up to line Seq. The
// signature file is replaced each time lines are written.
type Signature struct {
	File      string `json:"file"`
	Seq       uint64 `json:"seq"`  // number of the last signed line
	Hash      string `json:"hash"` // hash of that line
	PublicKey string `json:"public_key"`
	Signature string `json:"signature"` // Ed25519 signature of SignedText, in base64
}

// SignedText returns the text to sign.
func (s *Signature) SignedText() []byte {
	return fmt.Appendf(nil, "caddy-robots-policy evidence 1\n%s\n%d\n%s\n", s.File, s.Seq, s.Hash)
}

func (l *Log) sign() error {
	if l.options.Key == nil {
		return nil
	}
	s := Signature{File: fileName(l.day), Seq: l.seq, Hash: l.prev}
	s.signBy(l.options.Key)
	b, err := json.MarshalIndent(&s, "", "  ")
	if err != nil {
		return err
	}
	// The file is replaced in one step, so that readers find a complete signature at any time.
	name := filepath.Join(l.dir, s.File+SignatureSuffix)
	if err := os.WriteFile(name+".new", append(b, '\n'), 0o600); err != nil {
		return err
	}
	if err := os.Rename(name+".new", name); err != nil {
		return err
	}
	l.signed = l.seq
	return nil
}

// readSignature reads a signature file, and checks the signature with the public key in the file. It returns
// fs.ErrNotExist if the file does not exist.
func readSignature(name string) (s Signature, err error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return s, err
	}
	err = json.Unmarshal(b, &s)
	key, err2 := base64.StdEncoding.DecodeString(s.PublicKey)
	signature, err3 := base64.StdEncoding.DecodeString(s.Signature)
	if errors.Join(err, err2, err3) != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, s.SignedText(), signature) {
		return Signature{}, errors.New("its signature is not valid")
	}
	return s, nil
}

func (s *Signature) by(key crypto.PublicKey) bool {
	public, _ := key.(ed25519.PublicKey)
	return s.PublicKey == base64.StdEncoding.EncodeToString(public)
}

// Fingerprint returns a short form of a public key (base64), like ssh-keygen: the SHA-256 of the key's bytes.
func Fingerprint(public string) string {
	b, _ := base64.StdEncoding.DecodeString(public)
	sum := sha256.Sum256(b)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// ReadKey reads an Ed25519 private key from a PEM file (PKCS #8), such as `openssl genpkey -algorithm ed25519` writes.
func ReadKey(name string) (ed25519.PrivateKey, error) {
	key, err := readPEM(name)
	if private, ok := key.(ed25519.PrivateKey); ok || err != nil {
		return private, err
	}
	return nil, errors.New(name + " is not an Ed25519 private key; make one with: openssl genpkey -algorithm ed25519 -out " + name)
}

// ReadPublicKey reads an Ed25519 public key from a file in the format of `openssl pkey -pubout`. If the file has a
// private key, ReadPublicKey returns its public key.
func ReadPublicKey(name string) (ed25519.PublicKey, error) {
	switch key, err := readPEM(name); key := key.(type) {
	case ed25519.PublicKey:
		return key, nil
	case ed25519.PrivateKey:
		public, _ := key.Public().(ed25519.PublicKey)
		return public, nil
	default:
		return nil, errors.Join(err, errors.New(name+" does not contain an Ed25519 key: give the public key of the log's owner. The owner can make it from the private key with: openssl pkey -in KEY -pubout"))
	}
}

func readPEM(name string) (any, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, fmt.Errorf("%s has no PEM block; make a key with: openssl genpkey -algorithm ed25519 -out %[1]s", name)
	}
	parse := x509.ParsePKCS8PrivateKey
	if block.Type == "PUBLIC KEY" {
		parse = x509.ParsePKIXPublicKey
	}
	key, err := parse(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return key, nil
}
