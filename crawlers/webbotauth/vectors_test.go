// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
)

// vectors has the requests of draft-ietf-webbotauth-httpsig-protocol-01, appendices E.2.1 and E.2.2 (as of 2026-10-29,
// github.com/webbotauth/draft-ietf-webbotauth-httpsig-protocol). Signature-Agent is a dictionary in E.2.1 and a string
// in E.2.2. The requests are signed with the key of RFC 9421 appendix B.1.4. In earlier drafts, up to
// draft-meunier-webbotauth-httpsig-protocol-02, the member of Signature-Agent in E.2.1 has another label than the
// signature ("E.2.1 before").
var vectors = []struct{ name, agent, input, signature string }{
	{
		"E.2.1", `sig2="https://signature-agent.test"`,
		`sig2=("@authority" "signature-agent";key="sig2");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=4889289600;nonce="n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==";tag="web-bot-auth"`,
		`sig2=:CGokAoY/FrPpyuzTe1Fb2kLTAH9Idw6qSFd1+D77r1firsMRCxeuLu5e6O+ek3zQgDMAzjiXtLVfqE00xnABCQ==:`,
	},
	{
		"E.2.1 before", `agent2="https://signature-agent.test"`,
		`sig2=("@authority" "signature-agent";key="agent2");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=4889289600;nonce="n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==";tag="web-bot-auth"`,
		`sig2=:RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==:`,
	},
	{
		"E.2.2", `"https://signature-agent.test"`,
		`sig2=("@authority" "signature-agent");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=1735693200;nonce="e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==";tag="web-bot-auth"`,
		`sig2=:jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==:`,
	},
}

const vectorTime = 1735689601

func vectorRequest(agent, input, signature string) Request {
	return Request{
		Method: "GET", Scheme: "https", Host: "example.com", Target: "/path/to/resource",
		Header: http.Header{"Signature-Agent": {agent}, "Signature-Input": {input}, "Signature": {signature}},
	}
}

func TestVectors(t *testing.T) {
	if thumbprint(testKey.Public().(ed25519.PublicKey)) != testKeyID {
		t.Error("thumbprint")
	}
	for _, c := range vectors {
		r := vectorRequest(c.agent, c.input, c.signature)
		v := fixed(vectorTime, testKey)
		if got := v.Check(t.Context(), r, "https://signature-agent.test"); got.Status != Verified || got.KeyID != testKeyID {
			t.Errorf("%s: %+v", c.name, got)
		}
		if got := v.Check(t.Context(), r, "https://signature-agent.test"); got.Status != Invalid || !errors.Is(got.Err, errReplayed) {
			t.Errorf("%s, replayed: %+v", c.name, got)
		}
		// If any byte of the signature, or of the data that it covers, is changed, the request must not be verified.
		for _, field := range []string{"Signature", "Signature-Input"} {
			for i := range r.Header.Get(field) {
				damaged := vectorRequest(c.agent, c.input, c.signature)
				value := []byte(r.Header.Get(field))
				value[i] ^= 1
				damaged.Header.Set(field, string(value))
				if got := fixed(vectorTime, testKey).Check(t.Context(), damaged, "https://signature-agent.test"); got.Status == Verified {
					t.Errorf("%s: verified with byte %d of %s changed: %s", c.name, i, field, value)
				}
			}
		}
	}
	// The RFC publishes the private part of its test key. So a signature with this key does not identify a signer.
	v := fixed(vectorTime, testKey)
	v.options.testKeys = false
	r := vectorRequest(vectors[0].agent, vectors[0].input, vectors[0].signature)
	if got := v.Check(t.Context(), r, "https://signature-agent.test"); got.Status != Invalid {
		t.Errorf("test key: %+v", got)
	}
}

// Each case changes one property of a vector of the draft.
func TestVectorsChanged(t *testing.T) {
	in := func(old, new string) func(*Request) {
		return func(r *Request) {
			for _, lines := range r.Header {
				lines[0] = strings.ReplaceAll(lines[0], old, new)
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*Request)
		want   Status
		err    error
	}{
		{"another path, which it does not cover", func(r *Request) { r.Target = "/other" }, Verified, nil},
		{"another authority", func(r *Request) { r.Host = "other.example" }, Invalid, nil},
		{"a subdomain", func(r *Request) { r.Host = "www.example.com" }, Invalid, nil},
		{"another port", func(r *Request) { r.Host = "example.com:8443" }, Invalid, nil},
		{"created later", in("created=1735689600", "created=1735689601"), Invalid, nil},
		{"expiring later", in("expires=", "expires=1"), Invalid, nil},
		{"another nonce", in(`nonce="`, `nonce="x`), Invalid, nil},
		{"without its nonce", in(`nonce=`, `once=`), Invalid, nil},
		{"another tag", in(`tag="web-bot-auth"`, `tag="http-message-signatures-directory"`), Unsigned, nil},
		{"without a tag", in(`;tag="web-bot-auth"`, ``), Unsigned, nil},
		{"the authority not covered", in(`"@authority" `, ``), Unverified, nil},
		{"the authority covered as another", in(`"@authority" `, `"@target-uri" `), Invalid, nil},
		{"the agent not covered", func(r *Request) {
			in(` "signature-agent";key="sig2")`, `)`)(r)
			in(` "signature-agent";key="agent2")`, `)`)(r)
			in(` "signature-agent")`, `)`)(r)
		}, Unverified, nil},
		{"without an algorithm", in(`;alg="ed25519"`, ``), Invalid, nil},
		{"another algorithm", in(`"ed25519"`, `"rsa-pss-sha512"`), Unverified, nil},
		{"another key", in("poqkLGiymh", "PoqkLGiymh"), Unverified, errNoKey},
		{"another directory", in("signature-agent.test", "other-agent.test"), Unverified, errOther},
		{"another path of the directory", in("signature-agent.test", "signature-agent.test/keys"), Unverified, errOther},
		{"the directory's URL, which is not what was signed", in("signature-agent.test", "signature-agent.test/"), Invalid, nil},
		{"without created", in("created=", "made="), Unverified, nil},
		{"without expires", in("expires=", "ends="), Unverified, nil},
	} {
		for _, v := range vectors {
			r := vectorRequest(v.agent, v.input, v.signature)
			c.change(&r)
			got := fixed(vectorTime, testKey).Check(t.Context(), r, "https://signature-agent.test")
			if got.Status != c.want || c.err != nil && !errors.Is(got.Err, c.err) {
				t.Errorf("%s, %s: %v %v", v.name, c.name, got.Status, got.Err)
			}
		}
	}
	for _, v := range vectors {
		r := vectorRequest(v.agent, v.input, v.signature)
		for name, verifier := range map[string]*Verifier{"expired": fixed(4889289600, testKey), "a day later": fixed(vectorTime+86400, testKey)} {
			if got := verifier.Check(t.Context(), r, "https://signature-agent.test"); got.Status != Invalid || !errors.Is(got.Err, errExpired) {
				t.Errorf("%s, %s: %+v", v.name, name, got)
			}
		}
		if got := fixed(vectorTime-60, testKey).Check(t.Context(), r, "https://signature-agent.test"); got.Status != Invalid {
			t.Errorf("%s, of the future: %+v", v.name, got)
		}
		if got := fixed(vectorTime, signerKey).Check(t.Context(), r, "https://signature-agent.test"); got.Status != Unverified || !errors.Is(got.Err, errNoKey) {
			t.Errorf("%s, of a directory without the key: %+v", v.name, got)
		}
	}
}

// The draft also has vectors with RSA (appendices E.1.1 and E.1.2). These are valid signatures with an algorithm that
// this package does not support, so the result must be Unverified and not Invalid.
func TestVectorsOfRSA(t *testing.T) {
	for _, c := range []struct{ name, agent, input, signature string }{
		{
			"E.1.1", `sig2="https://signature-agent.test"`,
			`sig2=("@authority" "signature-agent";key="sig2");created=1735689600;keyid="oD0HwocPBSfpNy5W3bpJeyFGY_IQ_YpqxSjQ3Yd-CLA";alg="rsa-pss-sha512";expires=4889289600;nonce="wcfPQPh7SzkvrIVvhD00vNk9PkxJNY2NVbYl2PVBB4zmUoluSwE7W6bPtF60QA3k8g06FU7PPCD+J58YofY1zg==";tag="web-bot-auth"`,
			`sig2=:iOCCPgZeV5D5KlfZLXIFQOZR2njqFiCMZIrb5HRRLrFZR5Wtpsn7HwbKfWYHqW3dYU7HV/RohjNg7fuyQ1Mdy2J4mya9JnQCZtCcIcOK/LM9Yc6g6ZTw0onurllrzEzuNQIFFkBTgPJZlA3rHioFrmDmn+nnN7HaC+it/PA2iGfENHYq9D3Ud7ZeDICmF1s5bsMgc+y+MxTPFQHxOEyhbCDjZbT5yeSkGP1Czczg7Cpf0Fz/wuF3mJJ7TL1mzQk3PPizXFr/EnjdUWri1/W8M/f93d389BFF+qbkISzAvOHEk5TqOoyrzzotTn3xmYN6SCGTHG42fK4rA4Ei0qCnnA==:`,
		},
		{
			"E.1.2", `"https://signature-agent.test"`,
			`sig2=("@authority" "signature-agent");created=1735689600;keyid="oD0HwocPBSfpNy5W3bpJeyFGY_IQ_YpqxSjQ3Yd-CLA";alg="rsa-pss-sha512";expires=1735693200;nonce="XSHtZVCThSIAksXsH9WBs6AtxtXC0eQGiIcUGSoJstFs8lAWakjhrfwzLhyjtme5iXMZvmFWqDEs6cT3Jf+BbQ==";tag="web-bot-auth"`,
			`sig2=:I1QWNzGXdP1a4dSvOHLCVOOanEYHDk+ZsVxM9MLX/p4ko69ghKwR5EOtAD96g7g4GWP7lmpM/jFAf9q8EFRDTPLjUXySwMv4YPgabv2LQihTJG2y8a2m6IGltyruwQNiqSJVUuRaG9+b17CGmAMFZh30X6GXLdQJrCARpeTqPwp2DC+a8haDE/VE5EruqzjA5/2mKwvrkzkSqeW5tOVtFwWRRHIOidquf/8Je6kM9mhgkg4arudLA5SL4wyyYE1jURIgcOl8agrfdJ5Def23DIRtiOLRa8jT9cpTLFAuFHN+mrZA/LH9h0gSIg1cPb+0cMASee5uku1KjWcFer7jWA==:`,
		},
	} {
		r := vectorRequest(c.agent, c.input, c.signature)
		if got := fixed(vectorTime, testKey).Check(t.Context(), r, "https://signature-agent.test"); got.Status != Unverified || got.Err == nil {
			t.Errorf("%s: %+v", c.name, got)
		}
		// The signature base of the vectors with RSA can still be built.
		m, err := parseMessage(r)
		if err != nil {
			t.Fatal(err)
		}
		base, err := m.base(member(m.input, "sig2").(httpsfv.InnerList))
		if _, value, _ := strings.Cut(c.signature, ":"); err != nil || !holds(t, "sig-b21", base, strings.TrimSuffix(value, ":")) {
			t.Errorf("%s: %v; not signed:\n%s", c.name, err, base)
		}
	}
}

// The directory of appendix E.2.3 has the key of appendix E.2. A client that fetches the directory directly from its
// origin need not check the signature of the directory (appendix B.1).
func TestVectorOfDirectory(t *testing.T) {
	keys, err := parseKeys([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs","use":"sig"}]}`))
	if err != nil || len(keys) != 1 || base64.RawURLEncoding.EncodeToString(keys[testKeyID].key) != "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs" {
		t.Errorf("%v %v", keys, err)
	}
}

// This is the request of the draft's appendix D.2, but with real signatures. It has two signers: the outer signature
// covers the inner one.
func TestSeveralSigners(t *testing.T) {
	browser := ed25519.NewKeyFromSeed([]byte("the seed of the remote browser.."))
	id := func(k ed25519.PrivateKey) string { return thumbprint(k.Public().(ed25519.PublicKey)) }
	sign := func(k ed25519.PrivateKey, base string) string {
		return ":" + base64.StdEncoding.EncodeToString(ed25519.Sign(k, []byte(base))) + ":"
	}
	for name, order := range map[string]string{
		"its own member first": `"signature-agent";key="browser" "signature-agent";key="agent"`,
		"its own member last":  `"signature-agent";key="agent" "signature-agent";key="browser"`,
	} {
		inner := `("@method" "@authority" "@path" "signature-agent";key="agent");created=1735689600;expires=1735689700;keyid="` + id(signerKey) + `";tag="web-bot-auth"`
		common := "\"@method\": GET\n\"@authority\": example.com\n\"@path\": /resource\n"
		agentLine, browserLine := "\"signature-agent\";key=\"agent\": \"https://agent.alice.example\"\n", "\"signature-agent\";key=\"browser\": \"https://browser.example\"\n"
		innerSignature := sign(signerKey, common+agentLine+`"@signature-params": `+inner)
		outer := `("@method" "@authority" "@path" ` + order + ` "signature-input";key="agent" "signature";key="agent");created=1735689601;expires=1735689700;keyid="` + id(browser) + `";tag="web-bot-auth"`
		lines := browserLine + agentLine
		if strings.HasPrefix(order, `"signature-agent";key="agent"`) {
			lines = agentLine + browserLine
		}
		outerSignature := sign(browser, common+lines+`"signature-input";key="agent": `+inner+"\n"+`"signature";key="agent": `+innerSignature+"\n"+`"@signature-params": `+outer)
		r := vectorRequest(`agent="https://agent.alice.example", browser="https://browser.example"`, "agent="+inner+", browser="+outer, "agent="+innerSignature+", browser="+outerSignature)
		r.Target = "/resource"
		for _, c := range []struct {
			directory string
			key       ed25519.PrivateKey
			want      Status
			keyID     string
		}{
			{"https://agent.alice.example", signerKey, Verified, id(signerKey)},
			{"https://browser.example", browser, Verified, id(browser)},
			// The browser's signature is not for the agent's directory, although it covers the name of this directory.
			{"https://agent.alice.example", browser, Unverified, ""},
			{"https://browser.example", signerKey, Unverified, ""},
			{"https://other.example", browser, Unverified, ""},
		} {
			if got := fixed(1735689602, c.key).Check(t.Context(), r, c.directory); got.Status != c.want || got.KeyID != c.keyID {
				t.Errorf("%s: %s: %+v", name, c.directory, got)
			}
		}
		// Neither signature is valid for another request.
		r.Target = "/other"
		for _, k := range []ed25519.PrivateKey{signerKey, browser} {
			for _, d := range []string{"https://agent.alice.example", "https://browser.example"} {
				if got := fixed(1735689602, k).Check(t.Context(), r, d); got.Status == Verified {
					t.Errorf("%s: another request: %+v", name, got)
				}
			}
		}
	}
}
