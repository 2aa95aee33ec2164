// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
)

// BenchmarkLoadHostile loads files of 1 MiB that are expensive to load. Each should load in two seconds.
func BenchmarkLoadHostile(b *testing.B) {
	shapes := policytest.Hostile(MaxSize)
	shapes["2400-rules"] = policytest.ManyRules(2400)
	for name, data := range shapes {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f, ds := Load("hostile.yaml", data)
				if f == nil && len(ds) == 0 {
					b.Fatal("no file and no reason")
				}
			}
		})
	}
}

// TestHostileShapes loads small files of the same kinds as BenchmarkLoadHostile. Each file loads, or gets an error that
// states the reason.
func TestHostileShapes(t *testing.T) {
	t.Parallel()
	for name, data := range policytest.Hostile(20 << 10) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, ds := Load("hostile.yaml", data)
			if f == nil && !ds.HasErrors() {
				t.Error("no file and no reason")
			}
			for _, d := range ds {
				if d.Severity > 1 && d.Code != "too-many-rules" && d.Code != "contradiction" {
					t.Errorf("%s", d)
				}
			}
		})
	}
}
