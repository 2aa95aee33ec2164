// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxAge returns how long a response may be used (RFC 9111 §5.2.2.1). ok is false if its
// Cache-Control does not say.
func MaxAge(h http.Header) (age time.Duration, ok bool) {
	for _, line := range h["Cache-Control"] {
		for directive := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
			switch strings.ToLower(name) {
			case "no-store", "no-cache":
				return 0, true
			case "max-age":
				seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31)
				if err == nil || errors.Is(err, strconv.ErrRange) { // seconds is the greatest number then
					return time.Duration(seconds) * time.Second, true
				}
			}
		}
	}
	return 0, false
}
