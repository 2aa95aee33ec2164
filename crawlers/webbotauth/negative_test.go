// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"strings"
	"testing"
)

// TestNegativeVectors uses requests that must not be verified. They are the vectors of
// github.com/ParallaxGrain/webbotauth-negative-vectors (as of 2026-10), each with one error. They are signed with the
// key of RFC 9421 appendix B.1.4, and KEYID is replaced by the thumbprint of this key. Some vectors do not even have
// the form that the draft defines. For them, this package returns Unverified instead of Invalid, because it did not
// check any signature. Unverified and Invalid have the same effect.
func TestNegativeVectors(t *testing.T) {
	const agent = `sig1="https://signature-agent.test"`
	const until2124 = `;created=1735689600;keyid="KEYID";alg="ed25519";expires=4889289600;tag="web-bot-auth"`
	const covered = `("@authority" "signature-agent";key="sig1")`
	const genuine = "JE1yD+mpEKRsD1jC6gpbZXXFMoupdDH6EEwU1+QKgwDGXftEABdV3XbSANQzNQxU7UtgavuSgunABEfoHBxtDQ=="
	const overDigest = "6xuRq2Nf1ZbzTCosEy2cFaQ6Nx/NzDjCzlbEN4uqnEhkp3iNLr8xrTFc+vdPWtqTq+FAVHzPoGPDbL7m6y9eCw=="
	for _, c := range []struct {
		name, agent, input, signature string
		at                            int64
		want                          Status
		says                          string
	}{
		{"NV-01: no request target covered", agent, `("signature-agent";key="sig1")` + until2124, "OfqFF7JEZnSAkthXM22HF3Ghlrslj4CHN1ZO9HMaOlf4rCCCSHcaQT82AtaWrXV0avoXjS4A7LJUMkdamFXLCg==", 1735689660, Unverified, "neither @authority nor @target-uri"},
		{"NV-03: no expires", agent, covered + `;created=1735689600;keyid="KEYID";alg="ed25519";tag="web-bot-auth"`, "vwMiAiACovfQ9Cnj5b145eU183Ce2YGO02p+H5n/86NQiOeaZPLmiA1Cry2TUqmj+uAqzw5pHvLu33Q4dRS1CQ==", 1735689660, Unverified, "expires is missing"},
		{"NV-04: expired", agent, covered + `;created=1735689600;keyid="KEYID";alg="ed25519";expires=1735693200;tag="web-bot-auth"`, "PGCXcZbx5FaCr8JzBK0Rcs/h+eV0s+o6JhsQpiWfoBZnvREvjbmZexFna9jGiNfvbXfZ4Q/nO7wDc9RJzF8SDw==", 1735696800, Invalid, "expired"},
		{"NV-05: created in the future", agent, covered + until2124, genuine, 1735686000, Invalid, "created in the future"},
		{"NV-06: another authority", agent, covered + until2124, "tlN1YC7fkMH5W7SBtB/uwrm65jP8d1la9pAPxphRsBrR+dAYAEPF+BVvJpX8oIf7DJZrsAaq65Iil6YdKCuGDg==", 1735689660, Invalid, "does not match"},
		{"NV-07: an empty @path", agent, `("@authority" "@path" "signature-agent";key="sig1")` + until2124, "gVyV1O4BnincHcl/dIHWUaGagmEldaC7JN4KtkCsRtbOGwxrRJTdm0HHyKBcOYW3uA4R7FjcdaERQBbDJSzRAg==", 1735689660, Invalid, "does not match"},
		{"NV-09: a missing component", agent, `("@authority" "content-digest" "signature-agent";key="sig1")` + until2124, overDigest, 1735689660, Unverified, "covered field content-digest is missing"},
		{"NV-10: unterminated components", agent, `("@authority" "signature-agent";key="sig1"` + until2124, genuine, 1735689660, Unverified, "invalid Signature-Input"},
		{"NV-11: the signature under another label", agent, covered + until2124, "sig9", 1735689660, Unverified, "no Ed25519 signature"},
		{"NV-19: a repeated component", agent, `("@authority" "@authority" "signature-agent";key="sig1")` + until2124, "pI8eHSuMEPbVLPtEQK368TDMssBWtvsVc6NCuQyp1T6oMnk/Pkpxc4yJhm/kzHLNwqelACukRNMMgh0/FqtFBA==", 1735689660, Unverified, "is repeated"},
		{"NV-12: no Signature-Agent", "", `("@authority")` + until2124, "emtWW7ctXrq/Jxc/GrRNbHSTol22e5tabmwNFjtFnpl62D/XwZuJNpa4dUhOmI5Q3pYJNxMkA3bnLBUnm8xzBQ==", 1735689660, Unsigned, ""},
		{"NV-13: several members and none named", `first="https://signature-agent.test", second="https://other-agent.test"`, `("@authority" "signature-agent")` + until2124, "+1vomCIkcZg+3SGgA/XX2FFlS13bVmSPQjBgCclNhatOKs08sckrIx723RIJ/gTAJPGvXfnP3O6W70q41C+BDg==", 1735689660, Unverified, "without the parameter"},
		{"NV-14: a missing member", `other="https://signature-agent.test"`, covered + until2124, genuine, 1735689660, Unverified, "without the parameter"},
		{"NV-16: http", `sig1="http://signature-agent.test"`, covered + until2124, "Mwv2BtF7JrgdsyTdpxNJzjc7BMWu0IvufR7FjzCJaYx1VZFDvSFvqnCyHQOBpH5HUmGfMmZHwmp2LAKsFt6cCA==", 1735689660, Unverified, "must be an https URL"},
		{"NV-17: a path of the origin", `sig1="https://signature-agent.test/keys"`, covered + until2124, "vIPkgnOG178b20lu4tMkGgyEPpsAOOFODichdLIrrNt0Y/KMQtoLxWrODh4srzzLySJtihrYgoP4bLWV+jweDw==", 1735689660, Unverified, "refers to another key directory than the expected one"},
		{"NV-18: unterminated string", `sig1="https://signature-agent.test`, covered + until2124, genuine, 1735689660, Unverified, "invalid Signature-Agent"},
		{"the valid request that the others are made from", agent, covered + until2124, genuine, 1735689660, Verified, ""},
	} {
		label := "sig1"
		if c.signature == "sig9" {
			label, c.signature = "sig9", genuine
		}
		r := vectorRequest(c.agent, "sig1="+strings.ReplaceAll(c.input, "KEYID", testKeyID), label+"=:"+c.signature+":")
		r.Target = "/"
		if c.agent == "" {
			r.Header.Del("Signature-Agent")
		}
		got := fixed(c.at, testKey).Check(t.Context(), r, "https://signature-agent.test")
		if got.Status != c.want || c.says != "" && (got.Err == nil || !strings.Contains(got.Err.Error(), c.says)) {
			t.Errorf("%s: %v %v", c.name, got.Status, got.Err)
		}
	}
	// In the vector NV-08, the covered Content-Digest does not match the body. This package does not see the body. It
	// only finds out who signed the request's fields, which is enough for a decision on crawling. The field itself is
	// unchanged, so the signature is valid.
	r := vectorRequest(agent, `sig1=("@authority" "content-digest" "signature-agent";key="sig1")`+strings.ReplaceAll(until2124, "KEYID", testKeyID), "sig1=:"+overDigest+":")
	r.Method, r.Target = "POST", "/"
	r.Header.Set("Content-Digest", "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:")
	if got := fixed(1735689660, testKey).Check(t.Context(), r, "https://signature-agent.test"); got.Status != Verified {
		t.Errorf("NV-08: %+v", got)
	}
	r.Header.Set("Content-Digest", "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:")
	if got := fixed(1735689660, testKey).Check(t.Context(), r, "https://signature-agent.test"); got.Status != Invalid {
		t.Errorf("a Content-Digest that differs from the signed one: %+v", got)
	}
}
