// SPDX-License-Identifier: Apache-2.0

package catalogstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/outbound"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// Key is the public key of released catalogs in the format of golang.org/x/mod/sumdb/note. Releases of this program
// are built with -ldflags "-X github.com/robotspolicy/caddy-robots-policy/internal/caddyside/catalogstore.Key=KEY".
var Key string

// Released is the address of the newest catalog.
const Released = "https://github.com/robotspolicy/caddy-robots-policy/releases/download/catalog/crawlers.yaml"

// Limits of a fetch. The signature consists of a few lines after the catalog.
const (
	fetchTimeout = time.Minute
	maxRedirects = 5
	maxSignature = 4 << 10
)

// Fetch downloads a catalog, signed or not, from a web server.
func Fetch(ctx context.Context, address string) ([]byte, error) {
	u, err := source.WebAddress(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	client := &http.Client{CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		_, err := source.WebAddress(r.URL.String())
		return err
	}}
	agent := map[string]string{"User-Agent": "caddy-robots-policy (catalog of crawlers)"}
	resp, err := outbound.Get(ctx, client, u.String(), agent, crawlers.MaxFile+maxSignature+1)
	if err != nil {
		return nil, fmt.Errorf("fetching the catalog: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetching the catalog: %s answers %s", u, resp.Status)
	}
	return resp.Data, nil
}

// Open checks the signature of a signed catalog and returns its text.
func Open(data []byte) ([]byte, error) {
	if !IsSigned(data) {
		return nil, errors.New("the catalog is not signed; download the released file")
	}
	if Key == "" {
		return nil, errors.New("the signature of the catalog cannot be checked, because this program was built without the key of the releases")
	}
	verifier, err := note.NewVerifier(Key)
	if err != nil {
		return nil, fmt.Errorf("this program was built with an invalid key: %w", err)
	}
	n, err := note.Open(data, note.VerifierList(verifier))
	if err != nil {
		return nil, fmt.Errorf("the catalog was not signed with the key of the releases, or was changed or cut off; download it again: %w", err)
	}
	return []byte(n.Text), nil
}

// IsSigned reports whether a catalog ends with signatures, valid or not.
func IsSigned(data []byte) bool {
	return bytes.Contains(data, []byte("\n\n— "))
}

// NewKey returns a new pair of keys, for Sign and Open.
func NewKey() (private, public string, err error) {
	return note.GenerateKey(rand.Reader, "caddy-robots-policy")
}

// Sign returns a catalog with its signature. key is a private key in the format of golang.org/x/mod/sumdb/note.
func Sign(text []byte, key string) ([]byte, error) {
	signer, err := note.NewSigner(key)
	if err != nil {
		return nil, fmt.Errorf("the signing key: %w", err)
	}
	return note.Sign(&note.Note{Text: string(text)}, signer)
}
