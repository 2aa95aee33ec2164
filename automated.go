// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/behaviour"
)

// readers are the browsers that read robots.txt, while visits are recorded.
var readers behaviour.Watch

// countedVar is the request variable that is set once a request has been counted, so
// that another handler or an error route does not count it again.
const countedVar = "robots_policy.counted"

// automated returns the name to count an automated client by, which its User-Agent or
// its behaviour gives away. It is called for each request of a client that is no known
// crawler, and counts it.
func automated(r *http.Request, path string, robots bool) (name string, ok bool) {
	if name, ok = crawlers.Automated(r.UserAgent()); ok {
		return name, true
	}
	if robots {
		readers.ReadsRobots(clientAddress(r), r.UserAgent(), time.Now())
		return "", false
	}
	if !readers.Any() || caddyhttp.GetVar(r.Context(), countedVar) != nil {
		return "", false
	}
	caddyhttp.SetVar(r.Context(), countedVar, true)
	page := behaviour.IsPage(path, r.Header.Get("Sec-Fetch-Dest"))
	return behaviour.Name, readers.Counts(clientAddress(r), r.UserAgent(), page, time.Now())
}

// isAutomated reports whether the client of a request, which is no known crawler, is
// automated.
func isAutomated(r *http.Request) bool {
	_, ok := crawlers.Automated(r.UserAgent())
	return ok || readers.Any() && readers.Crawls(clientAddress(r), r.UserAgent(), time.Now())
}

func clientAddress(r *http.Request) string {
	address, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	return address
}
