// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"encoding/json"
	"net/http"

	"github.com/caddyserver/caddy/v2"
)

func respondJSON(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func apiError(status int, err error) error {
	return caddy.APIError{HTTPStatus: status, Err: err}
}
