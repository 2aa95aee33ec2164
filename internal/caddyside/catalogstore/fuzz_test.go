// SPDX-License-Identifier: Apache-2.0

package catalogstore

import (
	"bytes"
	"testing"
)

// Open may receive any bytes as a signed catalog. The only text that it returns is the text that was signed.
func FuzzOpenSigned(f *testing.F) {
	private, public, err := NewKey()
	if err != nil {
		f.Fatal(err)
	}
	defer func(before string) { Key = before }(Key)
	Key = public
	text := []byte("as-of: 2026-11-21\ncrawlers:\n  ExampleBot: {operator: Example, category: search}\n\n— not a signature\n")
	signed, err := Sign(text, private)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{nil, text, signed, signed[:len(signed)-1], bytes.Repeat(signed, 2), append([]byte("x"), signed...)} {
		f.Add(seed, uint16(0), byte(0))
	}
	f.Add(signed, uint16(3), byte(1))
	f.Add([]byte{}, uint16(len(text)+20), byte(0x20))
	f.Fuzz(func(t *testing.T, data []byte, at uint16, flip byte) {
		changed := bytes.Clone(signed)
		changed[int(at)%len(changed)] ^= flip
		for _, d := range [][]byte{data, changed} {
			if got, err := Open(d); err == nil && !bytes.Equal(got, text) {
				t.Errorf("%q opens as %q", d, got)
			}
		}
		if got, err := Open(signed); err != nil || !bytes.Equal(got, text) {
			t.Errorf("the signed catalog: %q, %v", got, err)
		}
	})
}
