// SPDX-License-Identifier: Apache-2.0

package headscan

import "bytes"

// spaceReference reports how long the character reference at the start of b is
// if it stands for white space, and 0 if it does not. ok is false if more bytes
// are needed to tell.
func spaceReference(b []byte, eof bool) (n int, ok bool) {
	for _, name := range [...]string{"&Tab;", "&NewLine;"} {
		if bytes.HasPrefix(b, []byte(name)) {
			return len(name), true
		}
		if !eof && len(b) < len(name) && name[:len(b)] == string(b) {
			return 0, false
		}
	}
	if len(b) == 1 {
		return 0, eof
	}
	if b[1] != '#' {
		return 0, true
	}
	i, base, v, digits := 2, 10, 0, 0
	if i < len(b) && b[i]|0x20 == 'x' {
		i, base = 3, 16
	}
	for ; i < len(b) && i < 64; i++ {
		d := hexDigit(b[i])
		if d >= base {
			break
		}
		digits++
		v = min(v*base+d, 1<<20)
	}
	if i >= 64 {
		return 0, true
	}
	if i == len(b) && !eof {
		return 0, false
	}
	if digits == 0 || v > ' ' || class[byte(v)]&isSpace == 0 {
		return 0, true
	}
	if i < len(b) && b[i] == ';' {
		i++
	}
	return i, true
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return 16
}
