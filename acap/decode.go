// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
)

// Decode returns the text of a file without its byte order mark, and in UTF-8
// where that says that it is UTF-16.
func Decode(data []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		return bytes.TrimPrefix(data, []byte("\ufeff"))
	}
	units := make([]uint16, 0, len(data)/2)
	for i := 2; i+1 < len(data); i += 2 {
		units = append(units, order.Uint16(data[i:]))
	}
	return []byte(string(utf16.Decode(units)))
}
