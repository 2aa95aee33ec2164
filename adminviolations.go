// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/internal/recorders"
)

// Violations are those of the last week, unless the request says otherwise, and at
// most maxViolations rows.
const (
	violationsSince = 7 * 24 * time.Hour
	maxViolations   = 1000
)

// violations shows what crawlers fetched against the robots.txt that they had read.
func violations(w http.ResponseWriter, r *http.Request) error {
	since := violationsSince
	if word := r.URL.Query().Get("since"); word != "" {
		var err error
		if since, err = caddy.ParseDuration(word); err != nil || since <= 0 {
			return apiError(http.StatusBadRequest, fmt.Errorf("invalid since %q: must be a duration such as 24h or 30d", word))
		}
	}
	stored, ok := recorders.Find[recorders.ViolationStore]()
	if !ok {
		if _, err := caddy.GetModule(recorderNamespace + ".activity"); err != nil {
			return apiError(http.StatusNotImplemented, errors.New("violations are in the activity store, which this build does not have: "+consoleMissing))
		}
		return apiError(http.StatusNotFound, errors.New("violations are in the activity store, which is off: write `activity DIRECTORY` in the global option robots_policy"))
	}
	all, err := stored.Violations(r.Context(), time.Now().Add(-since), maxViolations)
	if err != nil {
		return apiError(http.StatusInternalServerError, err)
	}
	return respondJSON(w, http.StatusOK, map[string]any{"violations": all})
}
