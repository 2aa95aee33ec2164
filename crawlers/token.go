// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"errors"
	"fmt"
	"strings"
)

// maxPattern is the greatest length of a [Pattern]'s token, in bytes.
const maxPattern = 128

// What a byte means while a User-Agent is read.
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

// ReadAs returns what a reader that follows RFC 9309 §2.2.1 to the letter makes of
// token: it stops at the first character that is no letter, hyphen or
// underscore. AI2Bot becomes AI, which is another crawler's name or nobody's.
func ReadAs(token string) string {
	for i := range len(token) {
		c := fold[token[i]]
		if (c < 'a' || c > 'z') && c != '-' && c != '_' {
			return token[:i]
		}
	}
	return token
}

// CheckPattern returns an error that says why s can never be found in a
// User-Agent, or nil.
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
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return errors.New("contains a control character")
		}
	}
	return nil
}
