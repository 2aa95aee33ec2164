// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// directoryCert is a certificate for loopback that this process trusts.
var directoryCert = trustedCert()

// trustedCert makes a certificate for loopback, which this process trusts in addition to its other roots. Go reads the
// roots only once, from files whose names are in environment variables. So trustedCert makes Go read them, and then
// deletes these files.
func trustedCert() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "key directories of tests"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"claude.com", "cn-hang.example"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "robots-policy-roots")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(filepath.Join(dir, "root.pem"), root, 0o600); err != nil {
		panic(err)
	}
	before, set := os.LookupEnv("SSL_CERT_DIR")
	dirs := dir
	if before != "" {
		dirs = before + ":" + dir
	}
	if err := os.Setenv("SSL_CERT_DIR", dirs); err != nil {
		panic(err)
	}
	if _, err := x509.SystemCertPool(); err != nil { // this reads the roots
		panic(err)
	}
	if !set {
		err = os.Unsetenv("SSL_CERT_DIR")
	} else {
		err = os.Setenv("SSL_CERT_DIR", before)
	}
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// signer signs requests according to draft-ietf-webbotauth-httpsig-protocol-01.
type signer struct {
	key ed25519.PrivateKey
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &signer{key}
}

func (s *signer) x() string {
	return base64.RawURLEncoding.EncodeToString(s.key.Public().(ed25519.PublicKey))
}

func (s *signer) jwks() string {
	return `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"` + s.x() + `"}]}`
}

// sign returns the header fields of a signed request, as names and values. authority is the host that gets the request.
// agent is the URL of the signer's key directory. created, expires and nonce become parameters of the signature.
func (s *signer) sign(authority, agent string, created, expires time.Time, nonce string) []string {
	id := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + s.x() + `"}`))
	params := fmt.Sprintf(`("@authority" "signature-agent";key="sig1");created=%d;expires=%d;keyid="%s";alg="ed25519";nonce="%s";tag="web-bot-auth"`,
		created.Unix(), expires.Unix(), base64.RawURLEncoding.EncodeToString(id[:]), nonce)
	base := `"@authority": ` + authority + "\n" + `"signature-agent";key="sig1": "` + agent + `"` + "\n" + `"@signature-params": ` + params
	return []string{
		"Signature-Agent", `sig1="` + agent + `"`, "Signature-Input", "sig1=" + params,
		"Signature", "sig1=:" + base64.StdEncoding.EncodeToString(ed25519.Sign(s.key, []byte(base))) + ":",
	}
}

// directory is a key directory on loopback.
type directory struct {
	url     string
	fetches atomic.Int64
}

func startDirectory(t *testing.T, answer http.HandlerFunc) *directory {
	t.Helper()
	d := new(directory)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.fetches.Add(1)
		answer(w, r)
	}))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{directoryCert}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	d.url = "https://" + srv.Listener.Addr().String()
	return d
}

func (s *signer) serve(w http.ResponseWriter, r *http.Request) { s.serveWith(`"more":1`)(w, r) }

// serveWith serves the key directory of the signer. card contains more members for the JSON object of the directory,
// such as "purpose" in a Signature Agent Card.
func (s *signer) serveWith(card string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/http-message-signatures-directory" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/http-message-signatures-directory+json")
		_, _ = io.WriteString(w, "{"+card+","+s.jwks()[1:])
	}
}

func signedPolicy(directory string) string {
	return `version: 1
crawlers:
  SigningBot: {operator: Signers Ltd, category: search, signature-directory: "` + directory + `"}
rules:
  - for: everyone
    disallow:
      crawl: /members/
    enforce: block
  - for: SigningBot
    identity: verified
    allow:
      crawl: /members/
`
}

const signedBody = `
	robots_policy POLICY {
		verify signatures
		verify_from 127.0.0.0/8
	}
	header >X-Verified "{http.robots_policy.identity}"
	reverse_proxy UPSTREAM`

// The policy allows something only for one verified crawler. This crawler can do it with its signature, but not without
// it.
func TestEdgeSignatures(t *testing.T) {
	own, other := newSigner(t), newSigner(t)
	d := startDirectory(t, own.serve)
	s := startLogged(t, signedPolicy(d.url), htmlUpstream(page("")), signedBody)
	now := time.Now()
	ask := func(fields []string, more ...string) int {
		return s.get("/members/", append(append([]string{"User-Agent", "SigningBot/1.0"}, fields...), more...)...).StatusCode
	}
	// The first signature starts a fetch of the keys. The request with this signature does not wait for the keys.
	first := 0
	eventually(t, "the signature is verified", func() bool {
		first++
		return ask(own.sign(s.addr, d.url, now, now.Add(time.Minute), fmt.Sprint("first", first))) == 200
	})
	good := own.sign(s.addr, d.url, now, now.Add(time.Minute), "once")
	for _, c := range []struct {
		name   string
		fields []string
		want   int
	}{
		{"signed", good, 200},
		{"replayed", good, 403},
		{"signed again", own.sign(s.addr, d.url, now, now.Add(time.Minute), "twice"), 200},
		{"the directory's whole URL", own.sign(s.addr, d.url+"/.well-known/http-message-signatures-directory", now, now.Add(time.Minute), "3"), 200},
		{"unsigned", nil, 403},
		{"expired", own.sign(s.addr, d.url, now.Add(-time.Hour), now.Add(-time.Minute), "4"), 403},
		{"of the future", own.sign(s.addr, d.url, now.Add(time.Hour), now.Add(2*time.Hour), "5"), 403},
		{"for another authority", own.sign("other.example", d.url, now, now.Add(time.Minute), "6"), 403},
		{"by another key", other.sign(s.addr, d.url, now, now.Add(time.Minute), "7"), 403},
		{"of another directory", other.sign(s.addr, "https://evil.example", now, now.Add(time.Minute), "8"), 403},
	} {
		if got := ask(c.fields); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if n := d.fetches.Load(); n != 1 {
		t.Errorf("the directory was fetched %d times", n)
	}
	// The signature decides, whatever crawler the User-Agent names.
	if r := s.get("/members/", append([]string{"User-Agent", googlebotAgent}, own.sign(s.addr, d.url, now, now.Add(time.Minute), "9")...)...); r.StatusCode != 200 {
		t.Errorf("another crawler's name: %s", r.Status)
	}
	// Keys and used nonces survive a reload.
	s.load(s.logged(strings.ReplaceAll(signedBody, "reverse_proxy UPSTREAM", "respond ok")))
	client.CloseIdleConnections() // the server of the previous configuration closes these connections
	if got := ask(good); got != 403 {
		t.Errorf("replayed after a reload: %d", got)
	}
	if got := ask(own.sign(s.addr, d.url, now, now.Add(time.Minute), "10")); got != 200 || d.fetches.Load() != 1 {
		t.Errorf("signed, after a reload: %d, %d fetches", got, d.fetches.Load())
	}
}

// Key directories that redirect or have private addresses are not used. Requests are answered as without a signature.
func TestEdgeSignatureDirectories(t *testing.T) {
	own := newSigner(t)
	var followed atomic.Bool
	redirecting := startDirectory(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keys" {
			followed.Store(true)
		}
		http.Redirect(w, r, "/keys", http.StatusFound)
	})
	hanging := startDirectory(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	private := startDirectory(t, own.serve)
	for name, c := range map[string]struct {
		d       *directory
		body    string
		reached bool
	}{
		"redirecting": {redirecting, signedBody, true},
		"hanging":     {hanging, signedBody, true},
		"private":     {private, strings.Replace(signedBody, "verify_from 127.0.0.0/8", "", 1), false},
	} {
		s := startLogged(t, signedPolicy(c.d.url), htmlUpstream(page("")), c.body)
		now := time.Now()
		for i := range 10 {
			fields := append([]string{"User-Agent", "SigningBot/1.0"}, own.sign(s.addr, c.d.url, now, now.Add(time.Minute), fmt.Sprint(i))...)
			if r := s.get("/members/", fields...); r.StatusCode != 403 {
				t.Errorf("%s: %s", name, r.Status)
			}
			if r := s.get("/", fields...); r.StatusCode != 200 || r.Header.Get("X-Verified") != "unverified" {
				t.Errorf("%s: %s %q", name, r.Status, r.Header.Get("X-Verified"))
			}
			time.Sleep(20 * time.Millisecond)
		}
		if lines := s.lines("caddy.log", "fetching a key directory failed; signatures with keys from this directory cannot be checked", 1); name != "hanging" && len(lines) != 1 {
			t.Errorf("%s: %d lines in the log", name, len(lines))
		}
		if c.reached {
			eventually(t, name+": it is asked for", func() bool { return c.d.fetches.Load() > 0 })
		}
		if n := c.d.fetches.Load(); (n > 0) != c.reached || n > 1 {
			t.Errorf("%s: fetched %d times", name, n)
		}
	}
	if followed.Load() {
		t.Error("a redirect was followed")
	}
}

// Without "verify signatures", the module does not fetch key directories.
func TestEdgeFetchesNothingUnasked(t *testing.T) {
	own := newSigner(t)
	d := startDirectory(t, own.serve)
	s := startLogged(t, signedPolicy(d.url), htmlUpstream(page("")), "robots_policy POLICY\nreverse_proxy UPSTREAM")
	now := time.Now()
	for i := range 5 {
		s.get("/", append([]string{"User-Agent", "SigningBot/1.0", "X-Forwarded-For", "20.0.0.1"}, own.sign(s.addr, d.url, now, now.Add(time.Minute), fmt.Sprint(i))...)...)
	}
	time.Sleep(100 * time.Millisecond)
	if n := d.fetches.Load(); n != 0 {
		t.Errorf("fetched %d times", n)
	}
}
