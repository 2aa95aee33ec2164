// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// refusalTag is what a refusal itself is marked with.
var refusalTag, _ = robotstag.Build(
	[]robotstag.Member{{Token: robotstag.Everyone, Rules: robotsrule.Of("noindex")}}, robotstag.Usage{}, time.Time{})

var errRefused = errors.New("the site's policy does not allow this crawler here")

// refuse answers a crawler that is refused: with an error for the site's error
// routes, where nothing is refused a second time, or, where nobody does anything
// with errors, with what Caddy would make of that one, and the policy's message. To
// have Caddy find out costs more than all the rest of a refusal.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, s *site.Site) error {
	e := s.File.Spec.Enforcement
	if e.Close {
		panic(http.ErrAbortHandler)
	}
	header := w.Header()
	header["Cache-Control"] = []string{"no-store"}
	if e.RetryAfter > 0 {
		header["Retry-After"] = []string{strconv.Itoa(int((e.RetryAfter + time.Second - 1) / time.Second))}
	}
	robotstag.Apply(header, refusalTag, robotstag.Options{Channels: h.channels &^ robotstag.ContentUsage})
	status := e.Status
	if status == 0 {
		status = http.StatusForbidden
	}
	if !h.errorsCaught && !catchesErrors(r) && onlyPasses(w) {
		if e.Message != "" {
			header["Content-Type"] = []string{"text/plain; charset=utf-8"}
		}
		w.WriteHeader(status)
		if e.Message != "" && r.Method != http.MethodHead {
			_, _ = io.WriteString(w, e.Message+"\n") // a client that has left is refused too
		}
		return nil
	}
	reason := errRefused
	if e.Message != "" {
		reason = errors.New(e.Message)
	}
	// Not caddyhttp.Error, whose stack trace costs as much as all the rest and always
	// says that it was here.
	return caddyhttp.HandlerError{Err: reason, StatusCode: status, ID: errorID()}
}

// errorID makes an identifier such as Caddy gives its errors ({err.id}).
func errorID() string {
	const letters = "abcdefghijkmnpqrstuvwxyz0123456789"
	var id [9]byte
	for i, n := 0, rand.Uint64(); i < len(id); i, n = i+1, n/uint64(len(letters)) {
		id[i] = letters[n%uint64(len(letters))]
	}
	return string(id[:])
}

// errorsCaughtIn reports whether one of the modules that hold a handler has routes
// for errors.
func errorsCaughtIn(holders []caddy.Module) bool {
	for _, m := range holders {
		if s, ok := m.(*caddyhttp.Subroute); ok && s.Errors != nil && len(s.Errors.Routes) > 0 {
			return true
		}
	}
	return false
}

// catchesErrors reports whether the server of a request may do more with an error
// than to write its status. A route with a name is called from anywhere, also from
// where errors have routes.
func catchesErrors(r *http.Request) bool {
	s, _ := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if s == nil || len(s.NamedRoutes) > 0 {
		return true
	}
	return s.Errors != nil && slices.ContainsFunc(s.Errors.Routes, func(route caddyhttp.Route) bool {
		return len(route.MatcherSets) == 0 || slices.ContainsFunc(route.MatcherSets, func(set caddyhttp.MatcherSet) bool {
			return !isOfOtherHosts(set, r)
		})
	})
}

// isOfOtherHosts reports whether a route is that of another site. Other matchers
// can depend on the error.
func isOfOtherHosts(set caddyhttp.MatcherSet, r *http.Request) bool {
	return slices.ContainsFunc(set, func(m any) bool {
		host, ok := m.(*caddyhttp.MatchHost)
		if !ok {
			return false
		}
		match, err := host.MatchWithError(r)
		return err == nil && !match
	})
}

// onlyPasses reports whether what is written to w goes out as it is. The writers of
// most handlers do not get to see an error; Caddy's header directive, for one,
// would put another Cache-Control on a refusal, which caches then keep for people.
func onlyPasses(w http.ResponseWriter) bool {
	for {
		below, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return true // of net/http and its like
		}
		t := reflect.TypeOf(w)
		if t.Kind() != reflect.Pointer {
			return false
		}
		switch t.Elem().PkgPath() {
		case "github.com/caddyserver/caddy/v2/modules/caddyhttp", // access logs, timeouts
			"github.com/caddyserver/caddy/v2/modules/caddyhttp/encode": // has no body to encode
		default:
			return false
		}
		w = below.Unwrap()
	}
}
