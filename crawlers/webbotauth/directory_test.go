// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// serveDirectory runs a key directory over TLS on loopback. It returns a verifier that trusts the directory's
// certificate, and the directory's URL.
func serveDirectory(t *testing.T, o Options, h http.HandlerFunc) (*Verifier, string) {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = nil
	srv.StartTLS()
	t.Cleanup(srv.Close)
	o.Now = func() time.Time { return time.Unix(now, 0) }
	if o.timeout == 0 {
		o.timeout = time.Minute // only so that a hanging fetch ends; no test measures this time
	}
	v := New(o)
	t.Cleanup(v.Close)
	f := newFetcher(v.options)
	f.client.Transport.(*http.Transport).TLSClientConfig = srv.Client().Transport.(*http.Transport).TLSClientConfig
	v.directories.fetch = f.fetch
	return v, srv.URL
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func good(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", mediaType)
	_, _ = io.WriteString(w, jwks(signerKey))
}

func TestDirectory(t *testing.T) {
	var redirected atomic.Bool
	for _, c := range []struct {
		name    string
		allowed []netip.Prefix
		serve   http.HandlerFunc
		want    Status
		says    string
	}{
		{"good", loopback, good, Verified, ""},
		{"at a private address", nil, good, Unverified, "not a public address"},
		{"redirecting", loopback, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				redirected.Store(true)
				good(w, r)
				return
			}
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}, Unverified, "status 302"},
		{"not there", loopback, http.NotFound, Unverified, "status 404"},
		{"HTML", loopback, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<!DOCTYPE html>")
		}, Unverified, "text/html"},
		{"JSON of another type", loopback, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, jwks(signerKey))
		}, Unverified, "application/json"},
		{"not JSON", loopback, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			_, _ = io.WriteString(w, "<!DOCTYPE html>")
		}, Unverified, "invalid key directory"},
		{"without end", loopback, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			for {
				if _, err := w.Write(make([]byte, 32<<10)); err != nil {
					return
				}
			}
		}, Unverified, "larger than 65536 bytes"},
		{"with too many keys", loopback, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			_, _ = io.WriteString(w, `{"keys":[`+strings.Repeat(`{},`, maxKeys)+`{}]}`)
		}, Unverified, "101 keys"},
		{"hanging", loopback, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, Unverified, "deadline exceeded"},
	} {
		o := Options{AllowedRanges: c.allowed}
		if c.name == "hanging" {
			o.timeout = time.Second
		}
		v, url := serveDirectory(t, o, c.serve)
		r := signed(func(p *pieces) { p.agent = `sig1="` + url + `"` })
		got := v.Check(t.Context(), r, url)
		if got.Status != c.want || c.says != "" && (got.Err == nil || !strings.Contains(got.Err.Error(), c.says)) {
			t.Errorf("%s: %v %v", c.name, got.Status, got.Err)
		}
	}
	if redirected.Load() {
		t.Error("a redirect was followed")
	}
}

// A key directory whose certificate has no trusted issuer is not used.
func TestDirectoryCertificate(t *testing.T) {
	v, url := serveDirectory(t, Options{AllowedRanges: loopback}, good)
	f := newFetcher(v.options)
	v.directories.fetch = f.fetch
	got := v.Check(t.Context(), signed(func(p *pieces) { p.agent = `sig1="` + url + `"` }), url)
	if unknown := new(tls.CertificateVerificationError); got.Status != Unverified || !errors.As(got.Err, &unknown) {
		t.Errorf("%+v", got)
	}
}

// If the context has ended, Check does not wait for the keys. The fetched keys are available at the next call.
func TestWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(Options{Now: func() time.Time { return time.Unix(now, 0) }})
		defer v.Close()
		v.directories.fetch = func(context.Context, string) (document, time.Duration, error) {
			time.Sleep(3 * time.Second)
			found, err := parseDocument([]byte(jwks(signerKey)), "")
			return found, 0, err
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		before := time.Now()
		r := signed(func(p *pieces) { p.more = "" })
		if got := v.Check(canceled, r, "https://bot.example"); got.Status != Unverified || !errors.Is(got.Err, errUnavailable) {
			t.Errorf("at first: %+v", got)
		}
		if waited := time.Since(before); waited != 0 {
			t.Errorf("waited %s", waited)
		}
		time.Sleep(4 * time.Second)
		if got := v.Check(canceled, r, "https://bot.example"); got.Status != Verified {
			t.Errorf("then: %+v", got)
		}
	})
}

// After a failed fetch, the old keys remain in use. After a successful fetch without the key, the key is no longer
// used. In both cases, the directory is not fetched again immediately.
func TestDirectoryCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(Options{})
		defer v.Close()
		fetches, answer, failure := 0, jwks(signerKey), error(nil)
		v.directories.fetch = func(context.Context, string) (document, time.Duration, error) {
			fetches++
			if failure != nil {
				return document{}, 0, failure
			}
			found, err := parseDocument([]byte(answer), "")
			return found, 10 * time.Minute, err
		}
		step := 0
		noKeys := map[int]bool{1: true, 2: true, 10: true}
		check := func(want Status, wantFetches int) {
			t.Helper()
			step++
			r := signed(func(p *pieces) { p.created, p.expires, p.more = time.Now().Unix()-1, time.Now().Unix()+60, "" })
			got := v.Check(t.Context(), r, "https://bot.example")
			synctest.Wait()
			if got.Status != want || fetches != wantFetches {
				t.Errorf("step %d: %v (%v), %d fetches; want %v, %d", step, got.Status, got.Err, fetches, want, wantFetches)
			}
			if got.Undecided != noKeys[step] {
				t.Errorf("step %d: undecided: %v (%v)", step, got.Undecided, got.Err)
			}
		}
		failure = errors.New("down")
		check(Unverified, 1)
		check(Unverified, 1) // the failure is remembered
		time.Sleep(keepFailure)
		failure = nil
		check(Verified, 2)
		time.Sleep(9 * time.Minute)
		check(Verified, 2) // the keys are fresh
		time.Sleep(time.Minute)
		failure = errors.New("down")
		check(Verified, 3) // the keys are stale, but newer keys are not available
		check(Verified, 3)
		time.Sleep(keepFailure)
		failure, answer = nil, `{"keys":[]}`
		check(Verified, 4)   // answered with the cached keys during the fetch
		check(Unverified, 4) // the directory no longer has the key
		time.Sleep(keepFailure)
		answer = jwks(signerKey)
		check(Verified, 5)
		failure = errors.New("down for good")
		time.Sleep(keepStale)
		check(Unverified, 6)
	})
}

func TestParseKeys(t *testing.T) {
	x := base64.RawURLEncoding.EncodeToString(signerKey.Public().(ed25519.PublicKey))
	for text, want := range map[string]int{
		`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"` + x + `"}]}`:                     1,
		`{"kty":"OKP","crv":"Ed25519","x":"` + x + `"}`:                                1,
		`{"keys":[{"kty":"RSA","n":"x"},{"kty":"OKP","crv":"Ed448","x":"` + x + `"}]}`: 0,
		`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA"}]}`:                            0,
		`{"keys":[{"kty":"OKP","crv":"Ed25519","use":"enc","x":"` + x + `"}]}`:         0,
		`{"keys":[1,null,"x"]}`: 0,
		`{"keys":[]}`:           0,
		`{}`:                    -1, `[]`: -1, ``: -1, `{"keys":1}`: -1,
	} {
		keys, err := parseKeys([]byte(text))
		if (err != nil) != (want < 0) || err == nil && len(keys) != want {
			t.Errorf("%s: %d keys, %v", text, len(keys), err)
		}
	}
	for text, want := range map[string]Status{
		`"nbf":1790000001`: Unverified, `"nbf":1790000000`: Verified, `"exp":1790000000`: Unverified, `"exp":1790000001`: Verified,
		`"exp":1790000001000`: Verified, `"exp":1789999999000`: Unverified,
	} {
		v := fixed(now)
		v.directories.fetch = func(context.Context, string) (document, time.Duration, error) {
			found, err := parseDocument([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519",`+text+`,"x":"`+x+`"}]}`), "")
			return found, keepDefault, err
		}
		if got := v.Check(t.Context(), signed(nil), "https://bot.example"); got.Status != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
