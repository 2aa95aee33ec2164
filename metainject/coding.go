// SPDX-License-Identifier: Apache-2.0

package metainject

import "strings"

// coding is a content coding (RFC 9110 §8.4.1).
type coding uint8

const (
	identity coding = iota
	unknownCoding
)

// codingOf reads a Content-Encoding field. More than one coding is unknown.
func codingOf(values []string) coding {
	if len(values) == 0 {
		return identity
	}
	v := strings.Trim(values[0], " \t")
	if len(values) == 1 && (v == "" || equalFold(v, "identity")) {
		return identity
	}
	return unknownCoding
}
