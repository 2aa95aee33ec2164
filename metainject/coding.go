// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/ascii"
)

// coding is a content coding (RFC 9110 §8.4.1).
type coding uint8

const (
	identity coding = iota
	gzipCoding
	deflateCoding // zlib, or, as some servers mean it, raw deflate
	zstdCoding
	brotliCoding
	unknownCoding
)

// whole reports whether a page in a coding can be changed only as a whole: its stream
// cannot be edited, and has to be unpacked and packed again.
func (c coding) whole() bool { return c == zstdCoding || c == brotliCoding }

// codingOf reads a Content-Encoding field. More than one coding is unknown.
func codingOf(values []string) coding {
	if len(values) == 0 {
		return identity
	}
	if len(values) > 1 {
		return unknownCoding
	}
	switch v := strings.Trim(values[0], " \t"); {
	case v == "", ascii.EqualFold(v, "identity"):
		return identity
	case ascii.EqualFold(v, "gzip"), ascii.EqualFold(v, "x-gzip"):
		return gzipCoding
	case ascii.EqualFold(v, "deflate"):
		return deflateCoding
	case ascii.EqualFold(v, "zstd"):
		return zstdCoding
	case ascii.EqualFold(v, "br"):
		return brotliCoding
	}
	return unknownCoding
}
