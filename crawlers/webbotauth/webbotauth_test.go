// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
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

// The Ed25519 key of RFC 9421 appendix B.1.4.
var testSeed, _ = base64.RawURLEncoding.DecodeString("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU")

var testKey = ed25519.NewKeyFromSeed(testSeed)

// jwks is a key directory as operators publish it.
func jwks(keys ...ed25519.PrivateKey) string {
	var list []map[string]string
	for _, k := range keys {
		list = append(list, map[string]string{
			"kty": "OKP", "crv": "Ed25519", "kid": "any", "use": "sig",
			"x": base64.RawURLEncoding.EncodeToString(k.Public().(ed25519.PublicKey)),
		})
	}
	data, _ := json.Marshal(map[string]any{"keys": list})
	return string(data)
}

// fixed is a verifier at a time, of which the directories have the keys.
func fixed(at int64, keys ...ed25519.PrivateKey) *Verifier {
	v := New(Options{Now: func() time.Time { return time.Unix(at, 0) }, testKeys: true})
	v.directories.fetch = func(context.Context, string) (map[string]publicKey, time.Duration, error) {
		set, err := parseKeys([]byte(jwks(keys...)))
		return set, keepDefault, err
	}
	return v
}

// The vectors of draft-ietf-webbotauth-httpsig-protocol, appendix E.2: a dictionary
// and a bare string as Signature-Agent, by the key of RFC 9421 appendix B.1.4.
var vectors = []struct{ name, agent, input, signature string }{
	{
		"E.2.1", `agent2="https://signature-agent.test"`,
		`sig2=("@authority" "signature-agent";key="agent2");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=4889289600;nonce="n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==";tag="web-bot-auth"`,
		`sig2=:RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==:`,
	},
	{
		"E.2.2", `"https://signature-agent.test"`,
		`sig2=("@authority" "signature-agent");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=1735693200;nonce="e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==";tag="web-bot-auth"`,
		`sig2=:jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==:`,
	},
}

func vectorRequest(agent, input, signature string) Request {
	return Request{
		Method: "GET", Scheme: "https", Host: "example.com", Target: "/",
		Header: http.Header{"Signature-Agent": {agent}, "Signature-Input": {input}, "Signature": {signature}},
	}
}

func TestVectors(t *testing.T) {
	if Thumbprint(testKey.Public().(ed25519.PublicKey)) != testKeyID {
		t.Error("thumbprint")
	}
	for _, c := range vectors {
		r := vectorRequest(c.agent, c.input, c.signature)
		v := fixed(1735689601, testKey)
		if got := v.Check(t.Context(), r, "https://signature-agent.test"); got.Status != Verified || got.KeyID != testKeyID {
			t.Errorf("%s: %+v", c.name, got)
		}
		if got := v.Check(t.Context(), r, "https://signature-agent.test"); got.Status != Invalid || !errors.Is(got.Err, ErrReplayed) {
			t.Errorf("%s, replayed: %+v", c.name, got)
		}
		// Every octet of the signature and of what it covers counts.
		for i := range c.signature {
			damaged := []byte(c.signature)
			damaged[i] ^= 1
			r := vectorRequest(c.agent, c.input, string(damaged))
			if got := fixed(1735689601, testKey).Check(t.Context(), r, "https://signature-agent.test"); got.Status == Verified {
				t.Errorf("%s: verified with octet %d of the signature changed", c.name, i)
			}
		}
		for i := range c.input {
			damaged := []byte(c.input)
			damaged[i] ^= 1
			r := vectorRequest(c.agent, string(damaged), c.signature)
			if got := fixed(1735689601, testKey).Check(t.Context(), r, "https://signature-agent.test"); got.Status == Verified {
				t.Errorf("%s: verified with octet %d of the input changed: %s", c.name, i, damaged)
			}
		}
	}
	// What everybody can sign identifies nobody.
	v := fixed(1735689601, testKey)
	v.options.testKeys = false
	r := vectorRequest(vectors[0].agent, vectors[0].input, vectors[0].signature)
	if got := v.Check(t.Context(), r, "https://signature-agent.test"); got.Status != Invalid {
		t.Errorf("test key: %+v", got)
	}
}

// now is when the tests' signatures are made.
const now = 1_790_000_000

var signerKey = ed25519.NewKeyFromSeed([]byte("a seed of thirty-two octets only"))

// signed is a request signed as a well-behaved signer does, with what change makes
// of the pieces before they are signed.
func signed(change func(p *pieces)) Request {
	p := &pieces{
		key: signerKey, agent: `sig1="https://bot.example"`, covered: `("@authority" "signature-agent";key="sig1")`,
		created: now - 10, expires: now + 50, tag: Tag, more: `;nonce="n"`, host: "www.example.com",
	}
	if change != nil {
		change(p)
	}
	return p.request()
}

type pieces struct {
	key              ed25519.PrivateKey
	agent, covered   string
	created, expires int64
	tag, more, host  string
	lines            []string // of the signature base before @signature-params
}

func (p *pieces) request() Request {
	params := fmt.Sprintf(`%s;created=%d;expires=%d;keyid="%s"%s;tag="%s"`,
		p.covered, p.created, p.expires, Thumbprint(p.key.Public().(ed25519.PublicKey)), p.more, p.tag)
	lines := p.lines
	if lines == nil {
		member, _, _ := strings.Cut(strings.TrimPrefix(p.agent, "sig1="), ";")
		lines = []string{`"@authority": ` + p.host, `"signature-agent";key="sig1": ` + member}
	}
	base := strings.Join(append(lines, `"@signature-params": `+params), "\n")
	return Request{
		Method: "GET", Scheme: "https", Host: p.host, Target: "/news/?page=2",
		Header: http.Header{
			"Signature-Agent": {p.agent}, "Signature-Input": {"sig1=" + params},
			"Signature": {"sig1=:" + base64.StdEncoding.EncodeToString(ed25519.Sign(p.key, []byte(base))) + ":"},
			"Accept":    {"text/html", " */* "},
		},
	}
}

func TestCheck(t *testing.T) {
	other := ed25519.NewKeyFromSeed([]byte("another seed of as many octets.."))
	for _, c := range []struct {
		name   string
		change func(p *pieces)
		after  func(r *Request)
		want   Status
		err    error
	}{
		{name: "as it should be", want: Verified},
		{"without a nonce", func(p *pieces) { p.more = "" }, nil, Verified, nil},
		{"the directory's whole URL", func(p *pieces) { p.agent = `sig1="https://bot.example/.well-known/http-message-signatures-directory"` }, nil, Verified, nil},
		{"the origin in other letters", func(p *pieces) { p.agent = `sig1="https://BOT.example:443/?x"` }, nil, Verified, nil},
		{"more components", func(p *pieces) {
			p.covered = `("@method" "@target-uri" "@path" "@query" "@scheme" "@request-target" "accept" "signature-agent";key="sig1")`
			p.lines = []string{
				`"@method": GET`, `"@target-uri": https://www.example.com/news/?page=2`, `"@path": /news/`, `"@query": ?page=2`,
				`"@scheme": https`, `"@request-target": /news/?page=2`, `"accept": text/html, */*`, `"signature-agent";key="sig1": "https://bot.example"`,
			}
		}, nil, Verified, nil},
		{"another host in other letters", nil, func(r *Request) { r.Host = "WWW.example.com:443" }, Verified, nil},

		{"expired", func(p *pieces) { p.created, p.expires = now-100, now }, nil, Invalid, ErrExpired},
		{"too old, whatever its expires", func(p *pieces) { p.created, p.expires = now-86400, now+1000 }, nil, Invalid, ErrExpired},
		{"of the future", func(p *pieces) { p.created, p.expires = now+31, now+90 }, nil, Invalid, nil},
		{"of a clock that is ahead a little", func(p *pieces) { p.created = now + 30 }, nil, Verified, nil},
		{"expires before it is created", func(p *pieces) { p.created, p.expires = now+20, now+10 }, nil, Invalid, nil},
		{"wrong authority", nil, func(r *Request) { r.Host = "evil.example" }, Invalid, nil},
		{"another port", nil, func(r *Request) { r.Host = "www.example.com:8443" }, Invalid, nil},
		{"wrong key", func(p *pieces) { p.key = other }, nil, Unverified, ErrNoKey},
		{"signed with another key than it says", nil, func(r *Request) {
			r.Header["Signature"] = signed(func(p *pieces) { p.key = other }).Header["Signature"]
		}, Invalid, nil},
		{"another directory", func(p *pieces) { p.agent = `sig1="https://evil.example"` }, nil, Unverified, ErrOther},
		{"another path of the operator's", func(p *pieces) { p.agent = `sig1="https://bot.example/users/evil.json"` }, nil, Unverified, ErrOther},
		{"a directory without TLS", func(p *pieces) { p.agent = `sig1="http://bot.example"` }, nil, Unverified, nil},
		{"a user in the directory's URL", func(p *pieces) { p.agent = `sig1="https://x@bot.example"` }, nil, Unverified, nil},
		{"parameters of the agent", func(p *pieces) { p.agent = `sig1="https://bot.example";type="jwks_uri"` }, nil, Unverified, nil},
		{"another tag", func(p *pieces) { p.tag = "other" }, nil, Unsigned, nil},
		{"no authority covered", func(p *pieces) {
			p.covered, p.lines = `("signature-agent";key="sig1")`, []string{`"signature-agent";key="sig1": "https://bot.example"`}
		}, nil, Unverified, nil},
		{"no agent covered", func(p *pieces) { p.covered, p.lines = `("@authority")`, []string{`"@authority": www.example.com`} }, nil, Unverified, nil},
		{"a component twice", func(p *pieces) { p.covered = `("@authority" "@authority" "signature-agent";key="sig1")` }, nil, Unverified, nil},
		{"a component that is not known", func(p *pieces) { p.covered = `("@authority" "@status" "signature-agent";key="sig1")` }, nil, Unverified, nil},
		{"a field that is missing", func(p *pieces) { p.covered = `("@authority" "x-none" "signature-agent";key="sig1")` }, nil, Unverified, nil},
		{"another algorithm", func(p *pieces) { p.more = `;alg="hmac-sha256"` }, nil, Unverified, nil},
		{"no keyid", nil, func(r *Request) {
			r.Header["Signature-Input"] = []string{strings.Replace(r.Header.Get("Signature-Input"), "keyid", "keyie", 1)}
		}, Unverified, nil},
		{"no signature of that name", nil, func(r *Request) {
			r.Header["Signature"] = []string{"x" + r.Header.Get("Signature")}
		}, Unverified, nil},
		{"no agent", nil, func(r *Request) { r.Header.Del("Signature-Agent") }, Unsigned, nil},
		{"unquoted agent", func(p *pieces) { p.agent = `https://bot.example` }, nil, Unverified, nil},
		{"a field without end", nil, func(r *Request) {
			r.Header.Add("Signature-Input", "x="+strings.Repeat("(", maxFieldBytes))
		}, Unverified, nil},
	} {
		r := signed(c.change)
		if c.after != nil {
			c.after(&r)
		}
		got := fixed(now, signerKey).Check(t.Context(), r, "https://bot.example")
		if got.Status != c.want || c.err != nil && !errors.Is(got.Err, c.err) || (got.Err == nil) != (c.want == Verified || c.want == Unsigned) {
			t.Errorf("%s: %v %v", c.name, got.Status, got.Err)
		}
	}
}

// A request may carry several signatures; one that holds is enough.
func TestSeveralSignatures(t *testing.T) {
	good := signed(nil)
	good.Header["Signature-Input"] = []string{`a=("@method");created=1;tag="other"`, `b=("@authority");created=1;expires=2;keyid="x";tag="web-bot-auth"`, good.Header.Get("Signature-Input")}
	good.Header["Signature"] = []string{"a=:AA==:, b=:AA==:", good.Header.Get("Signature")}
	if got := fixed(now, signerKey).Check(t.Context(), good, "https://bot.example"); got.Status != Verified {
		t.Errorf("%+v", got)
	}
}

// A nonce counts once until its signature expires, and its memory is bounded.
func TestNonces(t *testing.T) {
	var n nonces
	at := time.Unix(now, 0)
	if err := n.use("a", at, at.Add(time.Hour)); err != nil {
		t.Error(err)
	}
	if err := n.use("a", at.Add(59*time.Minute), at.Add(2*time.Hour)); !errors.Is(err, ErrReplayed) {
		t.Error(err)
	}
	if err := n.use("a", at.Add(61*time.Minute), at.Add(2*time.Hour)); err != nil {
		t.Error(err)
	}
	for i := range maxNonces + 10 {
		_ = n.use(fmt.Sprint(i), at.Add(61*time.Minute), at.Add(3*time.Hour))
	}
	if len(n.used) > maxNonces {
		t.Errorf("%d are kept", len(n.used))
	}
	if err := n.use("one more", at.Add(61*time.Minute), at.Add(3*time.Hour)); !errors.Is(err, errFull) {
		t.Errorf("when full: %v", err)
	}
	if err := n.use("5", at.Add(62*time.Minute), at.Add(3*time.Hour)); !errors.Is(err, ErrReplayed) {
		t.Errorf("when full, replayed: %v", err)
	}
	if err := n.use("one more", at.Add(3*time.Hour), at.Add(4*time.Hour)); err != nil {
		t.Errorf("when all have expired: %v", err)
	}
}

// Many at a time with one nonce: one of them is the first.
func TestReplayedAtOnce(t *testing.T) {
	v, r := fixed(now, signerKey), signed(nil)
	v.Check(t.Context(), signed(func(p *pieces) { p.more = "" }), "https://bot.example") // the keys are there
	results := make(chan Status, 20)
	for range cap(results) {
		go func() { results <- v.Check(t.Context(), r, "https://bot.example").Status }()
	}
	verified := 0
	for range cap(results) {
		if <-results == Verified {
			verified++
		}
	}
	if verified != 1 {
		t.Errorf("verified %d times", verified)
	}
}

// directory runs a key directory over TLS on loopback, and a verifier that trusts
// its certificate.
func serveDirectory(t *testing.T, o Options, h http.HandlerFunc) (*Verifier, string) {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = nil
	srv.StartTLS()
	t.Cleanup(srv.Close)
	o.Now = func() time.Time { return time.Unix(now, 0) }
	v := New(o)
	t.Cleanup(v.Close)
	f := newFetcher(v.options)
	f.client.Transport.(*http.Transport).TLSClientConfig = srv.Client().Transport.(*http.Transport).TLSClientConfig
	v.directories.fetch = f.fetch
	return v, srv.URL
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func good(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", MediaType)
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
		{"at a private address", nil, good, Unverified, "no public address"},
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
			w.Header().Set("Content-Type", MediaType)
			_, _ = io.WriteString(w, "<!DOCTYPE html>")
		}, Unverified, "no JWK Set"},
		{"without end", loopback, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", MediaType)
			for {
				if _, err := w.Write(make([]byte, 32<<10)); err != nil {
					return
				}
			}
		}, Unverified, "more than 65536 octets"},
		{"with too many keys", loopback, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", MediaType)
			_, _ = io.WriteString(w, `{"keys":[`+strings.Repeat(`{},`, maxKeys)+`{}]}`)
		}, Unverified, "101 keys"},
		{"hanging", loopback, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, Unverified, "Client.Timeout"},
	} {
		v, url := serveDirectory(t, Options{AllowedRanges: c.allowed, Timeout: time.Second}, c.serve)
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

// A certificate that nobody vouches for is no directory.
func TestDirectoryCertificate(t *testing.T) {
	v, url := serveDirectory(t, Options{AllowedRanges: loopback}, good)
	f := newFetcher(v.options)
	v.directories.fetch = f.fetch
	got := v.Check(t.Context(), signed(func(p *pieces) { p.agent = `sig1="` + url + `"` }), url)
	if unknown := new(tls.CertificateVerificationError); got.Status != Unverified || !errors.As(got.Err, &unknown) {
		t.Errorf("%+v", got)
	}
}

// With a context that has ended nobody waits: the keys are there the next time.
func TestWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(Options{Now: func() time.Time { return time.Unix(now, 0) }})
		defer v.Close()
		v.directories.fetch = func(context.Context, string) (map[string]publicKey, time.Duration, error) {
			time.Sleep(3 * time.Second)
			keys, err := parseKeys([]byte(jwks(signerKey)))
			return keys, 0, err
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		before := time.Now()
		r := signed(func(p *pieces) { p.more = "" })
		if got := v.Check(over, r, "https://bot.example"); got.Status != Unverified || !errors.Is(got.Err, ErrUnavailable) {
			t.Errorf("at first: %+v", got)
		}
		if waited := time.Since(before); waited != 0 {
			t.Errorf("waited %s", waited)
		}
		time.Sleep(4 * time.Second)
		if got := v.Check(over, r, "https://bot.example"); got.Status != Verified {
			t.Errorf("then: %+v", got)
		}
	})
}

// A failed fetch takes no keys away; one that succeeds without a key does. Neither
// is asked for again at once.
func TestDirectoryCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(Options{})
		defer v.Close()
		fetches, answer, failure := 0, jwks(signerKey), error(nil)
		v.directories.fetch = func(context.Context, string) (map[string]publicKey, time.Duration, error) {
			fetches++
			if failure != nil {
				return nil, 0, failure
			}
			keys, err := parseKeys([]byte(answer))
			return keys, 10 * time.Minute, err
		}
		step := 0
		check := func(want Status, wantFetches int) {
			t.Helper()
			step++
			r := signed(func(p *pieces) { p.created, p.expires, p.more = time.Now().Unix()-1, time.Now().Unix()+60, "" })
			got := v.Check(t.Context(), r, "https://bot.example")
			synctest.Wait()
			if got.Status != want || fetches != wantFetches {
				t.Errorf("step %d: %v (%v), %d fetches; want %v, %d", step, got.Status, got.Err, fetches, want, wantFetches)
			}
		}
		failure = errors.New("down")
		check(Unverified, 1)
		check(Unverified, 1) // remembered
		time.Sleep(keepFailure)
		failure = nil
		check(Verified, 2)
		time.Sleep(9 * time.Minute)
		check(Verified, 2) // fresh
		time.Sleep(time.Minute)
		failure = errors.New("down")
		check(Verified, 3) // stale, but nothing better
		check(Verified, 3)
		time.Sleep(keepFailure)
		failure, answer = nil, `{"keys":[]}`
		check(Verified, 4)   // answered with what was there
		check(Unverified, 4) // the key was taken back
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
		v.directories.fetch = func(context.Context, string) (map[string]publicKey, time.Duration, error) {
			keys, err := parseKeys([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519",` + text + `,"x":"` + x + `"}]}`))
			return keys, keepDefault, err
		}
		if got := v.Check(t.Context(), signed(nil), "https://bot.example"); got.Status != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// Whatever fields a request has, checking it ends, and only what the key has signed
// is verified.
func FuzzCheck(f *testing.F) {
	for _, c := range vectors {
		f.Add(c.agent, c.input, c.signature)
	}
	r := signed(nil)
	f.Add(r.Header.Get("Signature-Agent"), r.Header.Get("Signature-Input"), r.Header.Get("Signature"))
	f.Add(`a="https://bot.example"`, `s=("@authority" "signature-agent";key="a");created=1;expires=2;keyid="";tag="web-bot-auth"`, "s=:AA==:")
	f.Fuzz(func(t *testing.T, agent, input, signature string) {
		v := fixed(now, signerKey)
		got := v.Check(t.Context(), vectorRequest(agent, input, signature), "https://bot.example")
		if got.Status == Verified {
			t.Fatalf("verified: %q %q %q", agent, input, signature)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	v, r := fixed(now, signerKey), signed(func(p *pieces) { p.more = "" })
	v.Check(b.Context(), r, "https://bot.example")
	b.ReportAllocs()
	for b.Loop() {
		if v.Check(b.Context(), r, "https://bot.example").Status != Verified {
			b.Fatal("not verified")
		}
	}
}

func BenchmarkUnsigned(b *testing.B) {
	v, r := fixed(now, signerKey), Request{Header: http.Header{"User-Agent": {"x"}}}
	b.ReportAllocs()
	for b.Loop() {
		v.Check(b.Context(), r, "https://bot.example")
	}
}
