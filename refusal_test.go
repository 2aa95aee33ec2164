// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Whoever may do something with an error gets one.
func TestRefusalIsAnErrorForWhoeverCatchesErrors(t *testing.T) {
	routes := caddyhttp.RouteList{{}}
	for name, c := range map[string]struct {
		server *caddyhttp.Server
		caught bool
		w      http.ResponseWriter
		direct bool
	}{
		"nobody":              {server: &caddyhttp.Server{}, direct: true},
		"no routes":           {server: &caddyhttp.Server{Errors: &caddyhttp.HTTPErrorConfig{}}, direct: true},
		"the server":          {server: &caddyhttp.Server{Errors: &caddyhttp.HTTPErrorConfig{Routes: routes}}},
		"a subroute":          {server: &caddyhttp.Server{}, caught: true},
		"a caller":            {server: &caddyhttp.Server{NamedRoutes: map[string]*caddyhttp.Route{"x": {}}}},
		"no server's request": {},
		"an access log":       {server: &caddyhttp.Server{}, w: caddyhttp.NewResponseRecorder(httptest.NewRecorder(), nil, nil), direct: true},
		"a writer in between": {server: &caddyhttp.Server{}, w: caddyhttp.NewResponseRecorder(thirdWriter{httptest.NewRecorder()}, nil, nil)},
	} {
		h := benchHandler(t)
		h.errorsCaught = c.caught
		r := benchRequest("GPTBot/1.0")
		r = r.WithContext(context.WithValue(r.Context(), caddyhttp.ServerCtxKey, c.server))
		inner := httptest.NewRecorder()
		if c.w == nil {
			c.w = inner
		}
		err := h.ServeHTTP(c.w, r, caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
			t.Errorf("%s: the request went on", name)
			return nil
		}))
		if refused, ok := err.(caddyhttp.HandlerError); (err == nil) != c.direct || err != nil && (!ok || refused.StatusCode != 403 || refused.ID == "") {
			t.Errorf("%s: %v", name, err)
		}
		if c.w == inner && c.direct != (inner.Code == 403) {
			t.Errorf("%s: status %d", name, inner.Code)
		}
	}
}

type thirdWriter struct{ http.ResponseWriter }

func (w thirdWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
