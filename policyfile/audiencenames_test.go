// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"testing"
)

// The result of Check agrees with loading a policy file that uses the name.
func TestNamesCheck(t *testing.T) {
	names := NewNames()
	for _, c := range []struct {
		name          string
		valid, listed bool
	}{
		{"GPTBot", true, false}, {"HouseBot", true, false}, {"Mozilla", true, false}, // a name that works only in robots.txt
		{"OpenAI", true, true}, // an operator
		{"X", false, true},     // an operator, and a word in the User-Agent of browsers
		{"category:search", false, false}, {"a b?", false, false},
	} {
		valid, listed := names.Check(c.name)
		if valid != c.valid || listed != c.listed {
			t.Errorf("%q: valid %t, listed %t", c.name, valid, listed)
		}
		text := fmt.Sprintf("version: 1\nrules:\n  - for: %q\n    disallow: {crawl: /}\n", c.name)
		if listed {
			text += fmt.Sprintf("crawlers:\n  %q: {}\n", c.name)
		}
		if f, ds := Load("names.yaml", []byte(text)); (f != nil && !ds.HasErrors()) != valid && c.name != "category:search" {
			t.Errorf("%q: %v", c.name, ds)
		}
	}
}
