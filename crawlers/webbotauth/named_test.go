// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestNamedDirectories(t *testing.T) {
	known := []string{"https://a.example", "https://b.example/keys.json?v=2"}
	for _, tt := range []struct {
		name, agent string
		want        []string
	}{
		{"dictionary", `sig1="https://a.example"`, known[:1]},
		{"bare string", `"https://a.example"`, known[:1]},
		{"whole URL", `sig1="https://A.example:443/.well-known/http-message-signatures-directory"`, known[:1]},
		{"JWK Set, compared without its query", `x="https://b.example/keys.json"`, known[1:]},
		{"several, in the order of the field", `x="https://b.example/keys.json", y="https://a.example"`, []string{known[1], known[0]}},
		{"repeated", `x="https://a.example", y="https://a.example/"`, known[:1]},
		{"unknown", `sig1="https://evil.example"`, nil},
		{"not https", `sig1="http://a.example"`, nil},
		{"with parameters", `sig1="https://a.example";type=jwks`, nil},
		{"a card", `sig1="https://b.example/keys.json";type=cimd`, known[1:]},
		{"not a string", `sig1=1`, nil},
		{"malformed", `sig1="https://a.example`, nil},
		{"missing", "", nil},
		{"after more than are read", `a="https://1.example", b="https://2.example", c="https://3.example", d="https://4.example", e="https://a.example"`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{"Signature-Agent": {tt.agent}, "Signature-Input": {`sig1=("@authority")`}, "Signature": {"sig1=:AA==:"}}
			if got := NamedDirectories(h, known); !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// FuzzNamedDirectories checks that NamedDirectories returns only given directories, each of them once.
func FuzzNamedDirectories(f *testing.F) {
	f.Add(`sig1="https://a.example"`, `sig1=("@authority" "signature-agent";key="sig1");created=1;expires=2;keyid="k";tag="web-bot-auth"`, "sig1=:AA==:")
	f.Add(`"https://b.example"`, `a=("@query-param";name="x");created=1`, "a=:"+strings.Repeat("A", 86)+"==:")
	known := []string{"https://a.example", "https://b.example"}
	f.Fuzz(func(t *testing.T, agent, input, signature string) {
		h := http.Header{"Signature-Agent": {agent}, "Signature-Input": {input}, "Signature": {signature}}
		got := NamedDirectories(h, known)
		for i, d := range got {
			if !slices.Contains(known, d) || slices.Contains(got[:i], d) {
				t.Errorf("%q", got)
			}
		}
	})
}
