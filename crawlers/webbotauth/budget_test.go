// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

func FuzzParseKeys(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs","nbf":1,"exp":2}]}`))
	f.Add([]byte(`{"keys":[{"kty":"RSA","e":"AQAB","n":"AQAB"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if keys, err := parseKeys(data); err == nil && len(keys) > maxKeys {
			t.Errorf("%d keys", len(keys))
		}
	})
}

// Whatever a key directory holds, reading it takes little memory and time.
func TestKeyDirectoryBudget(t *testing.T) {
	key := `{"kty":"OKP","crv":"Ed25519","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"},`
	for name, data := range map[string]string{
		"keys":       `{"keys":[` + strings.Repeat(key, maxDirectoryBytes/len(key)-2) + key[:len(key)-1] + `]}`,
		"nested":     `{"keys":` + strings.Repeat("[", maxDirectoryBytes-10),
		"objects":    strings.Repeat(`{"keys":`, maxDirectoryBytes/8-1),
		"large keys": `{"keys":[{"kty":"RSA","e":"AQAB","n":"` + strings.Repeat("A", maxDirectoryBytes-100) + `"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Budget(t, func() {
				if keys, err := parseKeys([]byte(data)); err == nil && len(keys) > maxKeys {
					t.Errorf("%d keys", len(keys))
				}
			})
		})
	}
}
