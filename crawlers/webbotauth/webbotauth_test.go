// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// testSeed is the seed of the Ed25519 key in RFC 9421 appendix B.1.4.
var testSeed, _ = base64.RawURLEncoding.DecodeString("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU")

var testKey = ed25519.NewKeyFromSeed(testSeed)

// jwks returns a key directory in the form that operators publish.
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

// fixed returns a verifier whose clock always shows the same time, and whose directories have the given keys.
func fixed(at int64, keys ...ed25519.PrivateKey) *Verifier {
	v := New(Options{Now: func() time.Time { return time.Unix(at, 0) }, testKeys: true})
	v.directories.fetch = func(context.Context, string) (document, time.Duration, error) {
		set, err := parseKeys([]byte(jwks(keys...)))
		return document{keys: set}, keepDefault, err
	}
	return v
}

// now is the creation time of the tests' signatures.
const now = 1_790_000_000

var signerKey = ed25519.NewKeyFromSeed([]byte("a seed of thirty-two octets only"))

// signed returns a request with a valid signature. change can change the parts of the request before they are signed.
func signed(change func(p *pieces)) Request {
	p := &pieces{
		key: signerKey, agent: `sig1="https://bot.example"`, covered: `("@authority" "signature-agent";key="sig1")`,
		created: now - 10, expires: now + 50, tag: signatureTag, more: `;nonce="n"`, host: "www.example.com",
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
	lines            []string // lines of the signature base before @signature-params
}

func (p *pieces) request() Request {
	params := fmt.Sprintf(`%s;created=%d;expires=%d;keyid="%s"%s;tag="%s"`,
		p.covered, p.created, p.expires, thumbprint(p.key.Public().(ed25519.PublicKey)), p.more, p.tag)
	lines := p.lines
	if lines == nil {
		lines = []string{`"@authority": ` + p.host, `"signature-agent";key="sig1": ` + strings.TrimPrefix(p.agent, "sig1=")}
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

		{"expired", func(p *pieces) { p.created, p.expires = now-100, now }, nil, Invalid, errExpired},
		{"too old, whatever its expires", func(p *pieces) { p.created, p.expires = now-86400, now+1000 }, nil, Invalid, errExpired},
		{"of the future", func(p *pieces) { p.created, p.expires = now+31, now+90 }, nil, Invalid, nil},
		{"of a clock that is ahead a little", func(p *pieces) { p.created = now + 30 }, nil, Verified, nil},
		{"expires before it is created", func(p *pieces) { p.created, p.expires = now+20, now+10 }, nil, Invalid, nil},
		{"wrong authority", nil, func(r *Request) { r.Host = "evil.example" }, Invalid, nil},
		{"another port", nil, func(r *Request) { r.Host = "www.example.com:8443" }, Invalid, nil},
		{"wrong key", func(p *pieces) { p.key = other }, nil, Unverified, errNoKey},
		{"signed with another key than it says", nil, func(r *Request) {
			r.Header["Signature"] = signed(func(p *pieces) { p.key = other }).Header["Signature"]
		}, Invalid, nil},
		{"another directory", func(p *pieces) { p.agent = `sig1="https://evil.example"` }, nil, Unverified, errOther},
		{"another path of the operator's", func(p *pieces) { p.agent = `sig1="https://bot.example/users/evil.json"` }, nil, Unverified, errOther},
		{"a directory without TLS", func(p *pieces) { p.agent = `sig1="http://bot.example"` }, nil, Unverified, nil},
		{"a user in the directory's URL", func(p *pieces) { p.agent = `sig1="https://x@bot.example"` }, nil, Unverified, nil},
		{"parameters of the agent", func(p *pieces) { p.agent = `sig1="https://bot.example";type="jwks_uri"` }, nil, Unverified, nil},
		{"a type of the agent", func(p *pieces) { p.agent = `sig1="https://bot.example";type=directory` }, nil, Verified, nil},
		{"an unknown type of the agent", func(p *pieces) { p.agent = `sig1="https://bot.example";type=did` }, nil, Unverified, nil},
		{"a parameter beside the type", func(p *pieces) { p.agent = `sig1="https://bot.example";type=cimd;x` }, nil, Unverified, nil},
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

// A request may have several signatures. One valid signature is enough.
func TestSeveralSignatures(t *testing.T) {
	good := signed(nil)
	good.Header["Signature-Input"] = []string{`a=("@method");created=1;tag="other"`, `b=("@authority");created=1;expires=2;keyid="x";tag="web-bot-auth"`, good.Header.Get("Signature-Input")}
	good.Header["Signature"] = []string{"a=:AA==:, b=:AA==:", good.Header.Get("Signature")}
	if got := fixed(now, signerKey).Check(t.Context(), good, "https://bot.example"); got.Status != Verified {
		t.Errorf("%+v", got)
	}
}

// Checking a request always ends, whatever its signature fields contain. The result is never Verified, because only the
// owner of the key can sign this request.
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
