// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/policies"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// allDocuments returns the documents in use, including those without a version.
func allDocuments() []*source.Document {
	return slices.Concat(policies.Pool.Documents(), policies.Pool.Waiting(), policies.Pool.Unavailable())
}

func namesOf(ds []*source.Document) string {
	names := make([]string, len(ds))
	for i, d := range ds {
		names[i] = d.Name
	}
	return strings.Join(names, ", ")
}

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
