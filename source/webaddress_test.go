// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"
	"testing"
)

func TestWebAddress(t *testing.T) {
	for name, want := range map[string]string{
		"https://policies.example.com/site.yaml": "", "http://localhost:8080/x": "", "http://127.0.0.1/x": "", "http://[::1]:8080/x": "",
		"http://policies.example.com/x": "is not https", "http://127.0.0.1.example.com/x": "is not https", "http://localhost.example/": "is not https",
		"https://user:secret@example.com/": "contains a user name or a password", "https://": "does not name a server", "https:///x": "does not name a server", "https://a b/": "the policy's address",
	} {
		u, err := WebAddress(name)
		if want == "" && (err != nil || u.String() != name) || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v %v, want %q", name, u, err, want)
		}
	}
}
