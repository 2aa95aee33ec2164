// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// FuzzZstdFrames: what is passed on and what is left are the input, in any chunks,
// and a body that is whole is passed on whole.
func FuzzZstdFrames(f *testing.F) {
	whole := testCodings[1].pack([]byte("<!DOCTYPE html><p>text"), 0, 5)
	f.Add(whole, uint64(1))
	f.Add(append(bytes.Clone(whole), "\n\n"...), uint64(2))
	f.Add(append(append(bytes.Clone(whole), 0x50, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, 'x', 'y'), whole...), uint64(3))
	f.Fuzz(func(t *testing.T, body []byte, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var z zstdFrames
		var passed, rest []byte
		for left := body; len(left) > 0; {
			n := 1 + rnd.IntN(len(left))
			in := left[:n]
			left = left[n:]
			for {
				b := make([]byte, 1+rnd.IntN(40))
				k := z.read(b, &in)
				if passed = append(passed, b[:k]...); k == 0 {
					break
				}
			}
			rest = append(rest, in...)
		}
		if got := append(append(bytes.Clone(passed), z.head...), rest...); !bytes.Equal(got, body) {
			t.Fatalf("%x becomes %x", body, got)
		}
		if _, err := testCodings[1].unpack(body); err == nil && len(body) > 0 && len(passed) != len(body) {
			t.Fatalf("%d bytes of a whole body of %d are passed on", len(passed), len(body))
		}
	})
}
