// SPDX-License-Identifier: Apache-2.0

package crawlers

import "testing"

// BenchmarkLoad is what the first call of Default costs a program's start.
func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := load(embedded); err != nil {
			b.Fatal(err)
		}
	}
}
