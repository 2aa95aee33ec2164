// SPDX-License-Identifier: Apache-2.0

package rsl

import (
	"net/http"
	"slices"
	"strings"
)

// Link is the value of the Link field that names a licence (RFC 8288, RSL 1.0): a path
// on the host of the response, or an absolute URL.
func Link(target string) string {
	return "<" + target + `>; rel="license"; type="` + MediaType + `"`
}

// ApplyLink adds the field to the header of a response, unless it has the same link
// already. Other links, licences among them, stay.
func ApplyLink(h http.Header, link string) {
	for _, line := range h["Link"] {
		if strings.Contains(line, link) {
			return
		}
	}
	h["Link"] = append(slices.Clip(h["Link"]), link)
}
