// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxPattern is the greatest length of a [Pattern]'s token, in bytes.
const maxPattern = 128

// The meaning of a byte while a User-Agent is read.
const (
	isWord    = 1 << iota // part of a product token
	isBefore              // may stand before a token
	isAfter               // may stand after a token
	isURLEnd              // ends a URL
	isOpening             // opens a quotation, which a comparison may stand before
	isPlain               // part of a word, and no hyphen or underscore
)

// class and fold are tables over all bytes; fold lower-cases ASCII letters.
var class, fold = byteTables()

func byteTables() (class, fold [256]byte) {
	for i := range 256 {
		c := byte(i)
		fold[i] = c
		switch {
		case 'A' <= c && c <= 'Z':
			fold[i] = c + 'a' - 'A'
			class[i] = isWord | isPlain
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c >= 0x80:
			class[i] = isWord | isPlain
		case c == '-', c == '_':
			class[i] = isWord
		}
	}
	for _, c := range []byte(" \t\n\v\f\r;),") {
		class[c] = isBefore | isAfter | isURLEnd
	}
	for _, c := range []byte("(+=*") {
		class[c] = isBefore | isAfter
	}
	for _, c := range []byte(`"'<`) {
		class[c] = isBefore | isAfter | isURLEnd | isOpening
	}
	class['>'] = isAfter | isURLEnd
	class['['], class[']'] = isBefore|isOpening, isAfter
	class['{'], class['}'] = isBefore|isOpening, isAfter
	class['/'], class[':'] = isBefore|isAfter, isBefore|isAfter // see begins and ends
	return class, fold
}

// ValidToken reports whether s is a product token as RFC 9309 §2.2.1 defines it:
// letters, hyphens and underscores only.
func ValidToken(s string) bool { return s != "" && ReadAs(s) == s }

// ReadAs returns the token that a reader finds if it follows RFC 9309 §2.2.1 to the letter: it stops at the first
// character that is not a letter, hyphen or underscore. AI2Bot becomes AI, which may be the name of another
// crawler.
func ReadAs(token string) string {
	for i := range len(token) {
		c := fold[token[i]]
		if (c < 'a' || c > 'z') && c != '-' && c != '_' {
			return token[:i]
		}
	}
	return token
}

// CheckPattern returns an error that says why s can never be found in a User-Agent, or nil.
func CheckPattern(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case len(s) > maxPattern:
		return fmt.Errorf("is longer than %d bytes", maxPattern)
	case class[s[0]]&isWord == 0:
		return fmt.Errorf("begins with %q; it must begin with a letter, a digit, a hyphen or an underscore", s[:1])
	case strings.Contains(s, "://"):
		return errors.New("contains a URL; addresses in a User-Agent do not count")
	case s[len(s)-1] == ' ':
		return errors.New("ends with a space")
	case strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return errors.New("contains a control character")
	}
	return nil
}

// letters are characters of other scripts that look like letters of ASCII, before each of them the letter.
const letters = "AАΑ BВΒ CСϹ EЕΕ HНΗ IІΙ JЈ KКΚ MМΜ NΝ OОΟ PРΡ QԚ SЅ TТΤ UՍ VѴ WԜ XХΧ YҮΥ ZΖ " +
	"aаɑα cсϲ dԁ eе gɡ hһ iіı jјϳ lӏ nո oоο pрρ qԛ sѕ uս vѵν wԝ xх yуγ -‐‑‒–—− _ˍ"

var lookAlikes = func() map[rune]byte {
	m := map[rune]byte{}
	for group := range strings.FieldsSeq(letters) {
		for _, c := range group[1:] {
			m[c] = group[0]
		}
	}
	return m
}()

// plain returns the text that a person reads in a User-Agent. Letters that look like ASCII letters become those, and
// invisible characters are removed. Every other character outside ASCII, and every invalid byte, becomes a space.
func plain(ua string) string {
	var b strings.Builder
	for _, c := range ua {
		switch like := lookAlikes[c]; {
		case c < utf8.RuneSelf:
			b.WriteByte(byte(c))
		case like != 0:
			b.WriteByte(like)
		case c >= '！' && c <= '～': // the full width of ASCII
			b.WriteByte(byte(c - '！' + '!'))
		case c >= 0x200b && c <= 0x200f, c == 0x2060, c == 0xfeff, c == 0xad, c >= 0xfe00 && c <= 0xfe0f:
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// isAppName reports whether the name at the beginning of a User-Agent belongs to an app on an
// Apple phone or computer, which the system writes there. Its user is a person.
func isAppName(ua string) bool {
	_, rest, ok := strings.Cut(ua, " CFNetwork/")
	return ok && strings.Contains(rest, " Darwin/")
}

// bareVersion returns where a version such as 1.2 begins that stands right after a name
// and reaches to end or a digit before it, or end.
func bareVersion(ua string, end int) int {
	if end+1 >= len(ua) || ua[end] != '.' || !isDigit(ua[end+1]) {
		return end
	}
	begin := end
	for begin > 0 && isDigit(ua[begin-1]) {
		begin--
	}
	return begin
}

// beginsVersion reports whether a version such as 1.2 begins at i, right after a name.
func beginsVersion(ua string, i int) bool {
	if i == 0 || !isDigit(ua[i]) || isDigit(ua[i-1]) {
		return false
	}
	end := i
	for end < len(ua) && isDigit(ua[end]) {
		end++
	}
	return bareVersion(ua, end) == i
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
