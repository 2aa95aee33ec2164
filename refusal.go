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
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// refusalTag is what a refusal itself is marked with.
var refusalTag, _ = robotstag.Build(
	[]robotstag.Member{{Token: robotstag.Everyone, Rules: robotsrule.Of("noindex")}}, robotstag.Usage{}, time.Time{})

// noStore is shared by the refusals that are answered at once: nothing that comes
// after them changes a header.
var noStore = []string{"no-store"}

var errRefused = errors.New("the site's policy does not allow this crawler here")

// refuse answers a crawler that is refused: with an error for the site's error
// routes, where nothing is refused a second time, or, where nobody does anything
// with errors, with what Caddy would make of that one, and the policy's message. To
// have Caddy find out costs more than all the rest of a refusal.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, v *visit) error {
	e := &v.site.File.Spec.Enforcement
	if e.Close {
		panic(http.ErrAbortHandler)
	}
	direct := !h.catchesErrors(v.server, r) && onlyPasses(w)
	header := w.Header()
	header["Cache-Control"] = noStore
	if !direct {
		header["Cache-Control"] = slices.Clone(noStore)
	}
	if e.RetryAfter > 0 {
		header["Retry-After"] = []string{strconv.Itoa(int((e.RetryAfter + time.Second - 1) / time.Second))}
	}
	robotstag.Apply(header, refusalTag, robotstag.Options{Channels: h.channels &^ robotstag.ContentUsage, Shared: direct})
	status := e.Status
	if status == 0 {
		status = http.StatusForbidden
	}
	if direct {
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

// hasErrorRoutes reports whether any request of a server may get to routes for
// errors. A route with a name is called from anywhere, also from where errors have
// routes.
func (h *Handler) hasErrorRoutes(s *caddyhttp.Server) bool {
	return h.errorsCaught || s == nil || len(s.NamedRoutes) > 0 || s.Errors != nil && len(s.Errors.Routes) > 0
}

// catchesErrors reports whether more may be done with an error of a request than to
// write its status.
func (h *Handler) catchesErrors(s *caddyhttp.Server, r *http.Request) bool {
	if h.errorsCaught || s == nil || len(s.NamedRoutes) > 0 {
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
		switch writerRoleOf(reflect.TypeOf(w)) {
		case lastWriter:
			return true
		case strangeWriter:
			return false
		}
		w = w.(interface{ Unwrap() http.ResponseWriter }).Unwrap()
	}
}

// writerRole is what a type of writers does with what is written.
type writerRole uint8

const (
	strangeWriter writerRole = iota // who knows
	passingWriter                   // passes it on to the writer that it wraps
	lastWriter                      // wraps none: of net/http and its like
)

// writerRoles are those of the types that were met; replaced, never changed.
var writerRoles atomic.Pointer[[]typeRole]

type typeRole struct {
	of   reflect.Type
	role writerRole
}

// maxWriterRoles bounds the types that are remembered. A program has few; Caddy's
// server has three.
const maxWriterRoles = 32

func writerRoleOf(t reflect.Type) writerRole {
	known := writerRoles.Load()
	if known != nil {
		for _, k := range *known {
			if k.of == t {
				return k.role
			}
		}
	}
	role := strangeWriter
	switch {
	case !t.Implements(reflect.TypeFor[interface{ Unwrap() http.ResponseWriter }]()):
		role = lastWriter
	case t.Kind() == reflect.Pointer:
		switch t.Elem().PkgPath() {
		case "github.com/caddyserver/caddy/v2/modules/caddyhttp", // access logs, timeouts
			"github.com/caddyserver/caddy/v2/modules/caddyhttp/encode": // has no body to encode
			role = passingWriter
		}
	}
	remember := []typeRole{{t, role}}
	if known != nil {
		remember = append(remember, *known...)
	}
	if len(remember) <= maxWriterRoles {
		writerRoles.CompareAndSwap(known, &remember) // whoever was quicker will do: the next one remembers this
	}
	return role
}
