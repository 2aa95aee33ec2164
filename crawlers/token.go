// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxPattern is the maximum length of a [Pattern]'s token, in bytes.
const maxPattern = 128

// These bits describe how the recognizer treats a byte of a User-Agent.
const (
	isWord    = 1 << iota // part of a product token
	isBefore              // may come before a token
	isAfter               // may come after a token
	isURLEnd              // ends a URL
	isOpening             // opens a quotation; a comparison such as "like" may come before it
	isPlain               // part of a word, except hyphen and underscore
)

// class maps each byte to its properties. fold maps each byte to itself, and ASCII letters to lower case.
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
	class['/'], class[':'] = isBefore|isAfter, isBefore|isAfter // Recognizer.next and the function ends treat both bytes specially
	return class, fold
}

// ValidToken reports whether s is a valid product token according to RFC 9309 section 2.2.1, which allows only letters,
// hyphens and underscores.
func ValidToken(s string) bool { return s != "" && ReadAs(s) == s }

// ReadAs returns the part of token that a strict parser of robots.txt reads. According to RFC 9309 section 2.2.1, the
// parser stops at the first character that is not a letter, hyphen or underscore. For example, it reads AI2Bot as AI,
// which may be the name of another crawler.
func ReadAs(token string) string {
	for i := range len(token) {
		c := fold[token[i]]
		if (c < 'a' || c > 'z') && c != '-' && c != '_' {
			return token[:i]
		}
	}
	return token
}

// CheckPattern returns an error if s can never be found in a User-Agent. The error says why.
func CheckPattern(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case len(s) > maxPattern:
		return fmt.Errorf("is longer than %d bytes", maxPattern)
	case class[s[0]]&isWord == 0:
		return fmt.Errorf("begins with %q; it must begin with a letter, a digit, a hyphen or an underscore", s[:1])
	case strings.Contains(s, "://"):
		return errors.New("contains a URL; names within URLs are not recognized")
	case s[len(s)-1] == ' ':
		return errors.New("ends with a space")
	case strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return errors.New("contains a control character")
	}
	return nil
}

// CanBeListed reports whether a policy file can add a crawler with this name to its crawlers, so that rules can name
// this crawler.
func CanBeListed(name string) bool { return IsListedName(name) && CheckPattern(name) == nil }

// IsListedName reports whether a name has only characters that the name of a crawler in a policy file can have.
func IsListedName(name string) bool {
	return !strings.ContainsAny(name, ":#,*;()") && !strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c > '~' })
}

// letters is a list of words. The first character of each word is an ASCII letter, a hyphen or an underscore. The other
// characters of the word are outside ASCII and look like the first one.
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

// plain converts a User-Agent to ASCII. It replaces characters that look like ASCII letters by these letters, and
// removes invisible characters. It replaces every other character outside ASCII, and every invalid byte, by a space.
func plain(ua string) string {
	var b strings.Builder
	for _, c := range ua {
		switch like := lookAlikes[c]; {
		case c < utf8.RuneSelf:
			b.WriteByte(byte(c))
		case like != 0:
			b.WriteByte(like)
		case c >= '！' && c <= '～': // the full-width variants of ASCII characters
			b.WriteByte(byte(c - '！' + '!'))
		case c >= 0x200b && c <= 0x200f, c == 0x2060, c == 0xfeff, c == 0xad, c >= 0xfe00 && c <= 0xfe0f:
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// isAppName reports whether the name at the beginning of a User-Agent is the name of an app. On Apple's phones and
// computers, the system begins the User-Agent with the name of the app, and a person uses the app.
func isAppName(ua string) bool {
	_, rest, ok := strings.Cut(ua, " CFNetwork/")
	return ok && strings.Contains(rest, " Darwin/")
}

// bareVersion returns the position where a version begins directly after a name. For GPTBot1.2, this is the position of
// the 1. The parameter end is the position of the first dot. If there is no version at this dot, bareVersion returns
// end.
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

// beginsVersion reports whether a version such as 1.2 begins at ua[i], directly after a name.
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
