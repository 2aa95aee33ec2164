// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"slices"
	"strings"
)

// Spellings holds the ways to write a pattern. They are equal by RFC 9309 section 2.2.2, but not for readers that
// compare URLs as sent. Reserved octets (RFC 3986 section 2.2, and others that clients do not all encode) are
// plain, or encoded in upper or in lower case.
type Spellings struct {
	Written              string // as its author wrote it, but for bytes beyond ASCII, which are encoded
	Decoded              string // but for "*", which matches any text if it is plain
	Upper, Lower, Normal string
	Octets               int // that are reserved; together they have 3 to the power of Octets spellings
}

// Spell returns the spellings of a pattern that starts with "/". Written is the text that it was parsed from, or "". A
// plain "=" or "&" of a query separates its fields (URL Standard, application/x-www-form-urlencoded parsing), so it is
// not a reserved octet.
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
			if c == '*' { // plain, it would match any text
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
		endDecoded = "*" // or the "$" would be special
	}
	s.Decoded, s.Upper, s.Lower = trimmed(string(decoded)+endDecoded), trimmed(string(upper)+end), trimmed(string(lower)+end)
	if s.Octets == 0 {
		s.Decoded, s.Upper, s.Lower = s.Normal, s.Normal, s.Normal
	}
	return s
}

// Written returns the text of a pattern if its octets are spelled differently from the pattern, else "".
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

// maxSpellings limits the lines for one path in robots.txt.
const maxSpellings = 4

// Prohibition lists the texts of a prohibition, the author's own spelling first.
func (s *Spellings) Prohibition() (texts []string) {
	for _, text := range []string{s.Written, s.Decoded, s.Upper, s.Lower, s.Normal} {
		if len(texts) < maxSpellings && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// Like returns s in the spelling of another pattern, or "" if that pattern mixes several spellings.
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

// Raw returns a pattern of an unchanged text, for readers without a normal form. Use it only with Match and Covers.
func Raw(text string) Pattern { return Pattern{text} }

// Compared reports whether, for readers that compare octets as written, two patterns overlap, and one covers the other
// if it does in normal form. The texts are as returned by Written.
func Compared(p Pattern, writtenP string, q Pattern, writtenQ string) bool {
	if writtenP == "" && writtenQ == "" {
		return true
	}
	a, b := Spell(p, writtenP), Spell(q, writtenQ)
	x, y := Raw(a.Written), Raw(b.Written)
	return x.Overlaps(y) && (!p.Covers(q) || x.Covers(y)) && (!q.Covers(p) || y.Covers(x))
}

// isReserved reports whether a byte of a pattern can be written in several ways that differ to some readers.
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

// trimmed is a text without runs of "*", and without a "*" at its end.
func trimmed(text string) string {
	text = collapsed(text, "*")
	if open := strings.TrimSuffix(text, "$"); strings.HasSuffix(open, "*") {
		if text = strings.TrimSuffix(open, "*"); strings.HasSuffix(text, "$") {
			text = open // or the "$" would be the special one
		}
	}
	if text == "" {
		return "/"
	}
	return text
}

// collapsed is a text with one of c for each run of it.
func collapsed(text, c string) string {
	for strings.Contains(text, c+c) {
		text = strings.ReplaceAll(text, c+c, c)
	}
	return text
}

// EncodeBeyondASCII encodes the bytes of a path that are not ASCII. Among them may be characters that change the
// direction of the text next to them.
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
