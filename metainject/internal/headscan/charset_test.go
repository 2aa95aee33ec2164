// SPDX-License-Identifier: Apache-2.0

package headscan

import "testing"

func TestEncodings(t *testing.T) {
	for label, want := range map[string]Encoding{
		"utf-8": ASCIIBased, "UTF8": ASCIIBased, "Windows-1252": ASCIIBased, "iso-8859-15": ASCIIBased, "Shift_JIS": ASCIIBased, "gb18030": ASCIIBased,
		"euc-kr": ASCIIBased, "koi8-u": ASCIIBased, "": Unlabeled, "nonsense": Unlabeled,
		"utf-16": UTF16, "UTF-16LE": UTF16, "ucs-2": UTF16, "unicode": UTF16,
		"iso-2022-jp": Other, "csISO2022KR": Other, "hz-gb-2312": Other, "utf-7": Other, "utf-32be": Other,
	} {
		if got := EncodingOf([]byte(label)); got != want {
			t.Errorf("%q: %d, want %d", label, got, want)
		}
	}
}
