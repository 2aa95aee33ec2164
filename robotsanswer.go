// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// robotsAge is what Cache-Control says of robots.txt: always, and where the
// upstream's should be merged and is not known.
type robotsAge struct{ usual, unsure string }

// parseRobotsAge reads how long robots.txt may be kept.
func parseRobotsAge(text string) (robotsAge, error) {
	age := robotsserve.DefaultMaxAge
	if text != "" {
		var err error
		age, err = caddy.ParseDuration(text)
		switch {
		case err != nil || age < 0:
			return robotsAge{}, fmt.Errorf("%q is no value of robots_txt_max_age: it takes how long robots.txt may be kept, such as 10m, or 0", text)
		case age > robotsserve.MaxMaxAge:
			return robotsAge{}, fmt.Errorf("robots_txt_max_age %s is too long: crawlers keep robots.txt for at most 24h (RFC 9309 section 2.4), so write 24h or less", text)
		case age > 0 && age < time.Second:
			return robotsAge{}, fmt.Errorf("robots_txt_max_age %s is less than a second: write 1s or more, or 0", text)
		}
	}
	return robotsAge{robotsserve.CacheControl(age), robotsserve.CacheControl(min(age, unsureMaxAge))}, nil
}

// robotsAnswer is how this handler answers a request for robots.txt.
func (h *Handler) robotsAnswer(r *http.Request, next caddyhttp.Handler) robotsserve.Answer {
	a := robotsserve.Answer{CacheControl: h.robotsAge.usual}
	if h.upstreams == nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return a
	}
	other, known := h.upstreams.of(r, next)
	if !known {
		a.CacheControl = h.robotsAge.unsure
	}
	if other != nil {
		a.Other, a.Tell = other, h.upstreams.tell(r.Host)
	}
	return a
}
