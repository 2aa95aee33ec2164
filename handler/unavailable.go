// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"net/http"
	"strconv"

	"github.com/robotspolicy/caddy-robots-policy/handler/upstream"
)

// unavailableRetry is when a crawler is to ask for robots.txt again, in seconds, while the policy is not available.
const unavailableRetry = 60

// serveUnavailable answers while it is not known whether there is a policy: a request for robots.txt with 503, which
// tells crawlers to come back later, and any other request as if there were none.
func serveUnavailable(w http.ResponseWriter, r *http.Request, next upstream.Next, robots bool) error {
	if !robots {
		return next.ServeHTTP(w, r)
	}
	w.Header().Set("Retry-After", strconv.Itoa(unavailableRetry))
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
	return nil
}
