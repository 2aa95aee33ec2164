// SPDX-License-Identifier: Apache-2.0

package crawlers

import "testing"

func TestDefaultLoads(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	if c.Len() < 40 {
		t.Fatalf("%d crawlers", c.Len())
	}
}

// Every example is recognised as its crawler, no look-alike is.
func TestExamples(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	r := NewRecognizer(c.Patterns())
	for _, cr := range c.All() {
		for _, ua := range cr.Examples {
			if i, ok := r.Recognize(ua); !ok || c.At(i) != cr {
				t.Errorf("%s: %q is not recognised (%v %v)", cr.Token, ua, i, ok)
			}
		}
		for _, ua := range cr.LookAlikes {
			if i, ok := r.Recognize(ua); ok && c.At(i) == cr {
				t.Errorf("%s: %q is recognised", cr.Token, ua)
			}
		}
	}
}
