// SPDX-License-Identifier: Apache-2.0

package console

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// The lines that the console proposes for adding an unlisted client to the policy do not contain guesses, such as a
// category.
func TestNamingLines(t *testing.T) {
	for name, token := range map[string]string{"curl": "curl", "my client": "myclient", `9"x`: "Client9x"} {
		f, ds := policyfile.Load("p.yaml", []byte("version: 1\n"+namingLines(name)))
		if len(ds) > 0 {
			t.Fatalf("%s: %v", name, ds)
		}
		c, ok := f.Catalog.Lookup(token)
		if !ok || c.Operator != "" || c.Category != "" {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
