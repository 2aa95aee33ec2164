// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"slices"
	"strings"
)

// Spellings holds different spellings of a pattern. RFC 9309 section 2.2.2 treats them as equal, but readers that
// compare URLs without a normal form do not. The spellings differ in reserved octets, which can be plain, or encoded
// with upper-case or lower-case digits. Reserved octets are the reserved characters of RFC 3986 section 2.2, and
// others that only some clients encode.
type Spellings struct {
	Written              string // the spelling of the pattern's author, with encoded bytes beyond ASCII
	Decoded              string // all reserved octets are plain, except "*", which would match any text
	Upper, Lower, Normal string
	Octets               int // the number of reserved octets; the pattern has 3 to the power of Octets spellings
}

// Spell returns the spellings of a pattern that starts with "/". written is the text that the pattern was parsed
// from, or "". A plain "=" or "&" in a query is not a reserved octet, because it separates the fields of the query
// (URL Standard, application/x-www-form-urlencoded parsing).
func Spell(p Pattern, written string) Spellings {
	if written == "" {
		written = p.text
	}
	s := Spellings{Normal: p.Plain().text, Written: EncodeBeyondASCII(trimmed(written))}
	var decoded, upper, lower []byte
	body, anchored := s.Written, false
	if len(body) > 1 && strings.HasSuffix(body, "$") {
		body, anchored = body[:len(body)-1], true
	}
	at := inPath
	for i := 0; i < len(body); i++ {
		c, escaped := body[i], false
		if c == '*' {
			decoded, upper, lower = append(decoded, c), append(upper, c), append(lower, c)
			at = max(at, inEither)
			continue
		}
		if c == '%' && i+2 < len(body) && unhex(body[i+1]) >= 0 && unhex(body[i+2]) >= 0 {
			c, escaped = byte(unhex(body[i+1])<<4|unhex(body[i+2])), true
			i += 2
		}
		switch reserved := isReserved(c, escaped, at); {
		case reserved:
			s.Octets++
			if c == '*' { // a plain "*" would match any text
				decoded = appendEscape(decoded, c, upperHex)
			} else {
				decoded = append(decoded, c)
			}
			upper, lower = appendEscape(upper, c, upperHex), appendEscape(lower, c, lowerHex)
			at = at.after(c)
		case classes[c] == plain || classes[c] == separator && !escaped:
			decoded, upper, lower = append(decoded, c), append(upper, c), append(lower, c)
			at = at.after(c)
		default:
			decoded, upper, lower = appendEscape(decoded, c, upperHex), appendEscape(upper, c, upperHex), appendEscape(lower, c, lowerHex)
		}
	}
	end, endDecoded := "", ""
	switch {
	case anchored:
		end, endDecoded = "$", "$"
	case len(decoded) > 0 && decoded[len(decoded)-1] == '$':
		endDecoded = "*" // otherwise the "$" would be special
	}
	s.Decoded, s.Upper, s.Lower = trimmed(string(decoded)+endDecoded), trimmed(string(upper)+end), trimmed(string(lower)+end)
	if s.Octets == 0 {
		s.Decoded, s.Upper, s.Lower = s.Normal, s.Normal, s.Normal
	}
	return s
}

// Written returns the author's spelling of p. text is the text that p was parsed from. Written encodes the bytes of
// text beyond ASCII and, like Parse, replaces a "*" at the start. It returns "" if the result is the normal form of p.
func Written(p Pattern, text string) string {
	text = EncodeBeyondASCII(text)
	if text[0] == '*' && p.text[0] == '/' {
		text = rooted(text)
	}
	if text == p.text {
		return ""
	}
	return text
}

// maxSpellings limits how many spellings Prohibition returns for one pattern.
const maxSpellings = 4

// Prohibition lists the spellings that robots.txt has for a disallowed pattern, beginning with the author's spelling.
func (s *Spellings) Prohibition() (texts []string) {
	for _, text := range []string{s.Written, s.Decoded, s.Upper, s.Lower, s.Normal} {
		if len(texts) < maxSpellings && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// Like returns the spelling of s that has the style of other.Written. For example, if other.Written has escapes with
// lower-case digits, Like returns s with such escapes. It returns "" if other.Written mixes several styles.
func (s *Spellings) Like(other *Spellings) string {
	switch other.Written {
	case other.Normal:
		return s.Normal
	case other.Decoded:
		return s.Decoded
	case other.Upper:
		return s.Upper
	case other.Lower:
		return s.Lower
	}
	return ""
}

// BeginningOf replaces the beginning of s.Normal with its spelling in other.Written. The beginning is the part of
// other.Normal before its first "*". If s.Normal does not begin with this part, BeginningOf returns s.Normal unchanged.
func (s *Spellings) BeginningOf(other *Spellings) string {
	normal, _, _ := strings.Cut(strings.TrimSuffix(other.Normal, "$"), "*")
	written, _, _ := strings.Cut(strings.TrimSuffix(other.Written, "$"), "*")
	if rest, ok := strings.CutPrefix(s.Normal, normal); ok {
		return written + rest
	}
	return s.Normal
}

// Raw returns a pattern with the text itself instead of its normal form, for readers that do not convert paths to a
// normal form. Use the result only for Match and Covers.
func Raw(text string) Pattern { return Pattern{text} }

// Compared reports whether a normal form makes no difference to the comparison of p and q, which must overlap in normal
// form. Some readers of robots.txt compare patterns and paths as written. For these readers, p and q must also overlap.
// If one of them covers the other in normal form, it must also cover the other as written. writtenP and writtenQ are
// results of Written.
func Compared(p Pattern, writtenP string, q Pattern, writtenQ string) bool {
	if writtenP == "" && writtenQ == "" {
		return true
	}
	a, b := Spell(p, writtenP), Spell(q, writtenQ)
	x, y := Raw(a.Written), Raw(b.Written)
	return x.Overlaps(y) && (!p.Covers(q) || x.Covers(y)) && (!q.Covers(p) || y.Covers(x))
}

// isReserved reports whether a byte of a pattern is a reserved octet, which has several spellings (see Spellings).
func isReserved(c byte, escaped bool, at place) bool {
	switch c {
	case '*':
		return escaped
	case '/', '?':
		return at == inQuery
	case '=', '&':
		return escaped || at == inPath
	case '-', '.', '_':
		return false
	case '"', '<', '>', '\\', '^', '`', '{', '|', '}', '$':
		return true
	}
	return classes[c] == plain && !isAlphanumeric(c)
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// trimmed returns a text without repeated "*", and without a "*" at its end.
func trimmed(text string) string {
	text = collapsed(text, "*")
	if open := strings.TrimSuffix(text, "$"); strings.HasSuffix(open, "*") {
		if text = strings.TrimSuffix(open, "*"); strings.HasSuffix(text, "$") {
			text = open // otherwise the "$" would become special
		}
	}
	if text == "" {
		return "/"
	}
	return text
}

// collapsed returns a text in which every repetition of c is replaced with a single c.
func collapsed(text, c string) string {
	for strings.Contains(text, c+c) {
		text = strings.ReplaceAll(text, c+c, c)
	}
	return text
}

// EncodeBeyondASCII percent-encodes the bytes of a path that are not ASCII. Unencoded, they might be characters that
// change the direction of the surrounding text.
func EncodeBeyondASCII(text string) string {
	if strings.IndexFunc(text, func(c rune) bool { return c >= 0x80 }) < 0 {
		return text
	}
	var b []byte
	for i := range len(text) {
		if c := text[i]; c >= 0x80 {
			b = appendEscape(b, c, upperHex)
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

const lowerHex = "0123456789abcdef"

func appendEscape(b []byte, c byte, digits string) []byte {
	return append(b, '%', digits[c>>4], digits[c&15])
}
