// SPDX-License-Identifier: Apache-2.0

// Package original reads a request as the client sent it, whatever rewrites earlier
// in Caddy's route have made of it.
package original

import (
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// Target returns the path and query of the request target, which pathpattern.Readings
// takes apart. Of a target in absolute form, and of one of CONNECT, the scheme and
// the host are dropped; without a path it is "/". The host needs no such function:
// Caddy keeps no original of it.
func Target(r *http.Request) string {
	if first, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		r = &first
	}
	if strings.HasPrefix(r.RequestURI, "/") {
		return r.RequestURI
	}
	return pathpattern.Target(r.URL)
}
