// SPDX-License-Identifier: Apache-2.0

package routecheck

import (
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// EveryPage is a robots_policy handler that wants to know whether every request for a page of its hosts gets to it.
type EveryPage interface{ SetEveryPage(every bool) }

// passing are handlers after which a request goes on, or that end it without a page.
var passing = []caddy.ModuleID{
	"http.handlers.authentication", "http.handlers.encode", "http.handlers.headers", "http.handlers.intercept",
	"http.handlers.log_append", "http.handlers.map", "http.handlers.push", "http.handlers.request_body",
	"http.handlers.rewrite", "http.handlers.templates", "http.handlers.tracing", "http.handlers.vars",
}

func tellEveryPage(server *caddyhttp.Server, policies []found) {
	every := map[EveryPage]bool{}
	for _, f := range policies {
		h, ok := f.handler.(EveryPage)
		if !ok {
			continue
		}
		before, seen := every[h]
		s := search{server, f.handler, f.host}
		every[h] = s.list(server.Routes) == reaches && (before || !seen)
	}
	for h, yes := range every {
		h.SetEveryPage(yes)
	}
}

// search follows all requests for a host at once, to one handler.
type search struct {
	server *caddyhttp.Server
	target caddyhttp.MiddlewareHandler
	host   string
}

type outcome int

const (
	goesOn  outcome = iota // every request is still on its way
	reaches                // every request gets to the handler
	escapes                // some may not
)

func (s *search) list(routes caddyhttp.RouteList) outcome {
	maybe := map[string]bool{} // groups of which a route may be taken
	for i := range routes {
		r := &routes[i]
		always, never := s.takes(r)
		if never {
			continue
		}
		always = always && !maybe[r.Group]
		maybe[r.Group] = r.Group != ""
		for _, h := range r.Handlers {
			switch o := s.handler(h); {
			case o == reaches && always:
				return reaches
			case o != goesOn:
				return escapes
			}
		}
		if r.Terminal {
			return escapes
		}
	}
	return goesOn
}

func (s *search) takes(r *caddyhttp.Route) (always, never bool) {
	onlyHosts := len(r.MatcherSets) > 0
	fuzzy := isFuzzy(s.host)
	mine := false
	for _, set := range r.MatcherSets {
		names := hostsNamed(caddyhttp.MatcherSets{set})
		only := len(set) == 1 && len(names) > 0
		mine = mine || slices.Contains(names, s.host)
		always = always || only && slices.Contains(names, s.host)
		onlyHosts = onlyHosts && only
		fuzzy = fuzzy || len(names) == 0 || slices.ContainsFunc(names, isFuzzy)
	}
	// A site for other hosts may take some of these hosts away, with their robots.txt.
	return always || len(r.MatcherSets) == 0, len(r.MatcherSets) > 0 && !mine && (onlyHosts && r.Terminal || !fuzzy)
}

// isFuzzy reports whether the name of a matcher may stand for several hosts.
func isFuzzy(host string) bool { return host == "" || strings.ContainsAny(host, "*{") }

func (s *search) handler(h caddyhttp.MiddlewareHandler) outcome {
	if h == s.target {
		return reaches
	}
	switch h := h.(type) {
	case *caddyhttp.Subroute:
		return s.list(h.Routes)
	case *caddyhttp.Invoke:
		if r := s.server.NamedRoutes[h.Name]; r != nil {
			return s.list(caddyhttp.RouteList{*r})
		}
	case *caddyhttp.StaticResponse:
		if h.Headers.Get("Location") != "" {
			return goesOn // to where it redirects
		}
	}
	if slices.Contains(passing, moduleOf(h)) {
		return goesOn
	}
	return escapes
}
