// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"crypto/ed25519"
	"errors"
	"net/http"
	"testing"
)

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
