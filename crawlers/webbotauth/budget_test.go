// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// Reading a key directory takes little memory and time, whatever it contains.
func TestKeyDirectoryBudget(t *testing.T) {
	key := `{"kty":"OKP","crv":"Ed25519","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"},`
	for name, data := range map[string]string{
		"keys":       `{"keys":[` + strings.Repeat(key, maxDirectoryBytes/len(key)-2) + key[:len(key)-1] + `]}`,
		"nested":     `{"keys":` + strings.Repeat("[", maxDirectoryBytes-10),
		"objects":    strings.Repeat(`{"keys":`, maxDirectoryBytes/8-1),
		"card":       `{"client_id":"https://bot.example/card","jwks":{},"web_bot_auth":{"purpose":[` + strings.Repeat(`"a",`, maxDirectoryBytes/4-40) + `"a"]}}`,
		"large keys": `{"keys":[{"kty":"RSA","e":"AQAB","n":"` + strings.Repeat("A", maxDirectoryBytes-100) + `"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Budget(t, func() {
				if d, err := parseDocument([]byte(data), "https://bot.example/card"); err == nil && len(d.keys) > maxKeys {
					t.Errorf("%d keys", len(d.keys))
				}
			})
		})
	}
}
