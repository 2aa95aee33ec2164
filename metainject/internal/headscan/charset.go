// SPDX-License-Identifier: Apache-2.0

package headscan

import (
	"bytes"

	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/ascii"
)

// Encoding reports whether ASCII bytes can be written into a text as they are.
type Encoding uint8

const (
	// Unlabelled is no label, or one that no browser knows. Browsers then use an
	// encoding based on ASCII.
	Unlabelled Encoding = iota
	// ASCIIBased is an encoding in which the bytes of markup always are markup.
	ASCIIBased
	// UTF16 is UTF-16 in either byte order.
	UTF16
	// Other is ISO-2022-JP and others that the Encoding Standard replaces.
	Other
)

// asciiPrefixes begin the labels of the encodings of the WHATWG Encoding
// Standard (https://encoding.spec.whatwg.org/#names-and-labels) in which the
// bytes of markup always are markup.
var asciiPrefixes = [...]string{
	"utf-8", "utf8", "unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "x-unicode20utf8",
	"us-ascii", "ascii", "ansi_x3.4", "iso-8859", "iso8859", "iso_8859", "iso-ir-", "csisolatin",
	"latin", "l1", "l2", "l3", "l4", "l5", "l6", "l9", "windows-", "cp125", "x-cp125", "cp819", "ibm819",
	"koi", "cskoi8r", "macintosh", "mac", "csmacintosh", "x-mac-", "gb", "x-gbk", "csgb2312",
	"csiso58gb231280", "chinese", "big5", "csbig5", "cn-big5", "x-x-big5", "euc-", "x-euc-jp",
	"cseucpkdfmtjapanese", "cseuckr", "csksc56011987", "shift", "sjis", "x-sjis", "csshiftjis", "ms_kanji",
	"ms932", "ks_c", "ksc", "korean", "ibm866", "cp866", "866", "csibm866", "dos-874", "tis-620",
	"cyrillic", "csisolatincyrillic", "greek", "sun_eu_greek", "ecma-118", "elot_928", "arabic", "asmo-708",
	"ecma-114", "csiso88596", "hebrew", "logical", "visual", "csiso88598", "x-user-defined",
}

var otherPrefixes = [...]string{
	"iso-2022", "csiso2022", "hz-gb", "replacement", "utf-7", "unicode-1-1-utf-7", "csunicode11utf7",
	"utf-32", "ucs-4", "iso-10646-ucs-4", "scsu", "bocu", "cesu", "ebcdic", "ibm0", "cp037", "cp500", "x-ebcdic",
}

var utf16Prefixes = [...]string{"utf-16", "UTF16", "ucs-2", "iso-10646-ucs-2", "csunicode", "unicode", "unicodefe"}

// EncodingOf classifies the label of a character encoding.
func EncodingOf(label []byte) Encoding {
	label = bytes.TrimSpace(label)
	if len(label) == 5 && ascii.EqualFold(label, "utf-8") {
		return ASCIIBased
	}
	if len(label) == 0 || len(label) > 40 {
		return Unlabelled
	}
	label = bytes.ToLower(label)
	for _, kind := range [...]struct {
		prefixes []string
		means    Encoding
	}{{otherPrefixes[:], Other}, {asciiPrefixes[:], ASCIIBased}, {utf16Prefixes[:], UTF16}} {
		for _, p := range kind.prefixes {
			if bytes.HasPrefix(label, []byte(p)) {
				return kind.means
			}
		}
	}
	return Unlabelled
}
