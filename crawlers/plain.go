// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"strings"
	"unicode/utf8"
)

// letters are characters of other scripts that look like letters of ASCII, before each of
// them the letter.
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

// plain returns what somebody who looks at a User-Agent reads: letters that look like
// those of ASCII become them, what cannot be seen goes, and every other character that is
// not of ASCII, or a byte that is none, becomes a space.
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

// isAppName reports whether the name at the beginning of a User-Agent is that of an app on
// a phone or computer of Apple, which the system writes there: its user is a person.
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
