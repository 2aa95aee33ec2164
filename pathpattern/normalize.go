// SPDX-License-Identifier: Apache-2.0

package pathpattern

// class says what the normal form does with an octet of a path.
type class uint8

const (
	encode     class = iota // written as %XX
	special                 // "*" and "$": reserved, but written as %XX in a path (RFC 9309 section 2.2.3)
	reserved                // left as it came (RFC 3986 section 2.2)
	unreserved              // written plainly, also when it came as %XX
)

var classes = func() (t [256]class) {
	for c := range 128 {
		switch b := byte(c); {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9',
			b == '-', b == '.', b == '_', b == '~':
			t[c] = unreserved
		case b == '*', b == '$':
			t[c] = special
		}
	}
	for _, b := range []byte(":/?#[]@!&'()+,;=") {
		t[b] = reserved
	}
	return t
}()

const upperHex = "0123456789ABCDEF"

// appendNormal appends the normal form of s, in which no "*" is special.
func appendNormal(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' {
			hi, lo := -1, -1
			if i+2 < len(s) {
				hi, lo = unhex(s[i+1]), unhex(s[i+2])
			}
			if hi < 0 || lo < 0 {
				b = append(b, '%', '2', '5') // a "%" that encodes nothing
				continue
			}
			i += 2
			c = byte(hi<<4 | lo)
			if classes[c] == unreserved {
				b = append(b, c)
			} else {
				b = append(b, '%', upperHex[hi], upperHex[lo])
			}
			continue
		}
		switch classes[c] {
		case unreserved, reserved:
			b = append(b, c)
		default:
			b = append(b, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return b
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// IsNormal reports whether a path is in normal form already, as nearly every
// path that a client sends is.
func IsNormal(path string) bool {
	return normalOctets(path) && len(path) > 0 && path[0] == '/'
}

func normalOctets(s string) bool {
	for i := range len(s) {
		if classes[s[i]] < reserved {
			return false
		}
	}
	return true
}

// AppendNormalPath appends the normal form of path (RFC 9309 section 2.2.2) to
// b: the path and query of a request target as it was sent. A literal "*" or
// "$" becomes %2A or %24, which is how a pattern names them (section 2.2.3).
// A path that does not start with "/" gets one.
func AppendNormalPath(b []byte, path string) []byte {
	if path == "" || path[0] != '/' {
		b = append(b, '/')
	}
	return appendNormal(b, path)
}

// NormalizePath is AppendNormalPath as a string.
func NormalizePath(path string) string {
	if IsNormal(path) {
		return path
	}
	return string(AppendNormalPath(nil, path))
}
