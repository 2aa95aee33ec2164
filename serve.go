// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/robotspolicy/caddy-robots-policy/internal/original"
	"github.com/robotspolicy/caddy-robots-policy/internal/recorders"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// ServeHTTP calls the channels in turn: robots.txt, the edge, and what responses
// carry. It goes by the request target as the client sent it, before any rewrite.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) (err error) {
	s, err := h.policies.Get(r.Context(), r.Host)
	if err != nil {
		return caddyhttp.Error(http.StatusServiceUnavailable, err)
	}
	if s == nil {
		return next.ServeHTTP(w, r)
	}
	path := original.Target(r)
	robots := h.robots != nil && r.Method != http.MethodConnect && isRobotsTxt(path)
	if !robots && isInclude(r) {
		return next.ServeHTTP(w, r)
	}
	var known visit
	v := h.edge.evaluate(s, r, path, &known)
	v.publish(r)
	if recorders.Active() {
		if rec := record(w, r, s, v, path, robots); rec != nil {
			defer func() { rec.end(v, err) }()
			err = h.answer(rec, r, s, v, path, robots, next)
			rec.returned = true
			return err
		}
	}
	return h.answer(w, r, s, v, path, robots, next)
}

// answer answers a request that has been evaluated. v is nil for anyone but a known crawler.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, s *source.Snapshot, v *visit, path string, robots bool, next caddyhttp.Handler) error {
	tunnel := r.Method == http.MethodConnect // refused as any other, as respond answers it too
	if robots {
		h.pages.addHeaders(w.Header(), s, v, r.Host, path)
		h.robots.serve(w, r, s, v, next)
		return nil
	}
	if !tunnel && h.registers.serve(w, r, s, path, func() { h.pages.addHeaders(w.Header(), s, v, r.Host, path) }, next) {
		return nil
	}
	enforced := v != nil && h.edge.applies(r)
	if enforced {
		if refused, err := h.edge.enforce(w, r, s, v); refused {
			return err
		}
	}
	if tunnel {
		return next.ServeHTTP(w, r)
	}
	return h.pages.serve(w, r, s, path, v, enforced, next)
}

// isInclude reports whether Caddy's templates request a part of a page
// (httpInclude), with the headers of the crawler that requested the page. Meta
// elements in the part would speak for the whole page. A client can send the header
// too, but never a request without a target.
func isInclude(r *http.Request) bool {
	if r.Header["Caddy-Templates-Include"] == nil {
		return false
	}
	first, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	return ok && first.RequestURI == ""
}

var _ caddyhttp.MiddlewareHandler = (*Handler)(nil)
