// SPDX-License-Identifier: Apache-2.0

package routecheck

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/fileserver"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
)

// pages are examples of the paths of pages. There are several, because the home page may be a redirect.
var pages = []string{"/", "/a-page.html", "/a/page/"}

// walk follows a request through the routes to robots_policy, in the order in which Caddy runs them. Some matchers
// can only be decided for a real request, such as those that look for files. At these, walk takes the way that
// leads to robots_policy. After a handler that ends the request, it continues to look for robots_policy.
type walk struct {
	server   *caddyhttp.Server
	request  *http.Request
	reached  bool
	answerer string // the directive that ends the request before robots_policy
	own      bool   // that directive is in a route for /robots.txt
	inOwn    bool
}

// follow sends a crawler's request for a path through the routes of a server.
func follow(server *caddyhttp.Server, host, path string) *walk {
	r := &http.Request{
		Method: http.MethodGet, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: host, URL: &url.URL{Path: path}, RequestURI: path,
		RemoteAddr: "203.0.113.7:40000", // RFC 5737
		Header:     http.Header{"User-Agent": {"Mozilla/5.0 (compatible; ExampleBot/1.0; +https://example.com/bot)"}}, Body: http.NoBody,
	}
	w := &walk{server: server, request: caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, server)}
	w.routes(server.Routes)
	return w
}

// routes reports whether the request has reached robots_policy, or ends before it.
func (w *walk) routes(list caddyhttp.RouteList) bool {
	taken := map[string]bool{}
	for i := range list {
		r := &list[i]
		if r.Group != "" && taken[r.Group] && w.answerer == "" {
			continue
		}
		matches, known := w.match(r.MatcherSets)
		if !known && !holdsPolicy(r.Handlers) || known && !matches {
			continue
		}
		taken[r.Group] = true
		outside := w.inOwn
		w.inOwn = outside || namesRobots(r.MatcherSets)
		if slices.ContainsFunc(r.Handlers, w.handle) || r.Terminal && w.answerer == "" {
			return true
		}
		w.inOwn = outside
	}
	return false
}

func (w *walk) handle(h caddyhttp.MiddlewareHandler) bool {
	if moduleOf(h) == module {
		w.reached = true
		return true
	}
	switch h := h.(type) {
	case *caddyhttp.Subroute:
		return w.routes(h.Routes)
	case *caddyhttp.Invoke:
		route := w.server.NamedRoutes[h.Name]
		return route != nil && w.routes(caddyhttp.RouteList{*route})
	case *rewrite.Rewrite:
		h.Rewrite(w.request, w.request.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer))
	case *fileserver.FileServer:
		if h.PassThru {
			return false
		}
	}
	if w.answerer == "" && slices.Contains(ending, moduleOf(h)) {
		w.answerer, w.own = directive(h), w.inOwn
	}
	return false
}

// ending are handlers that pass no request on, or only requests with a password.
var ending = append([]caddy.ModuleID{"http.handlers.authentication", "http.handlers.metrics", "http.handlers.acme_server"}, answering...)

// directive returns the name of a handler's directive.
func directive(h caddyhttp.MiddlewareHandler) string {
	if r, ok := h.(*caddyhttp.StaticResponse); ok {
		if r.Headers.Get("Location") != "" {
			return "redir"
		}
		return "respond"
	}
	id := moduleOf(h)
	if id == "http.handlers.authentication" {
		return "basic_auth"
	}
	return id.Name()
}

// match reports whether a request matches. known is false if only a real request could decide that.
func (w *walk) match(sets caddyhttp.MatcherSets) (matches, known bool) {
	for _, set := range sets {
		for _, m := range set {
			if !decidable(m) {
				return false, false
			}
		}
	}
	matches, err := sets.AnyMatchWithError(w.request)
	return matches, err == nil
}

// deciding are the matchers whose result depends only on the host, path and other known parts of the request.
var deciding = []string{"host", "path", "path_regexp", "method", "header", "header_regexp", "query", "remote_ip", "client_ip"}

func decidable(m any) bool {
	var sets []caddyhttp.MatcherSet
	switch m := m.(type) {
	case caddyhttp.MatchNot:
		sets = m.MatcherSets
	case *caddyhttp.MatchNot:
		sets = m.MatcherSets
	default:
		module, ok := m.(caddy.Module)
		return ok && slices.Contains(deciding, strings.TrimPrefix(string(module.CaddyModule().ID), "http.matchers."))
	}
	return !slices.ContainsFunc(sets, func(set caddyhttp.MatcherSet) bool {
		return slices.ContainsFunc(set, func(m any) bool { return !decidable(m) })
	})
}

// unreached returns warnings about hosts whose robots_policy is not reached by requests for robots.txt or for
// pages.
func unreached(server *caddyhttp.Server, policies []found) (all []Warning) {
	policies = slices.DeleteFunc(policies, func(f found) bool { return !f.Robots })
	for _, host := range hostsOf(policies) {
		of := slices.DeleteFunc(slices.Clone(policies), func(f found) bool { return f.host != host })
		w := Warning{Hosts: []string{host}, Directive: of[0].Place}
		example := strings.Replace(host, "*", "www", 1)
		if host == "" {
			example = "www.example.com"
		}
		onlyRobots := slices.ContainsFunc(of, func(f found) bool {
			return slices.ContainsFunc(f.path, func(s step) bool { return s.takesRobots })
		})
		passes := func(page string) bool {
			way := follow(server, example, page)
			return way.reached && way.answerer == ""
		}
		switch way := follow(server, example, robots); {
		case way.reached && way.answerer != "":
			w.Message, w.Handler = answered, way.answerer
		case !way.reached && way.own:
			continue // the site has its own robots.txt, and a policy for a part of its paths
		case !way.reached:
			w.Message = noRoute
		case !onlyRobots && !slices.ContainsFunc(pages, passes):
			w.Message = noPages
		default:
			continue
		}
		all = append(all, w)
	}
	return all
}

func hostsOf(policies []found) (hosts []string) {
	for _, f := range policies {
		if !slices.Contains(hosts, f.host) && !strings.Contains(f.host, "{") {
			hosts = append(hosts, f.host)
		}
	}
	return hosts
}

const (
	answered = "another handler answers /robots.txt before robots_policy, so crawlers do not get the policy; put robots_policy before that handler"
	noRoute  = "requests for /robots.txt do not reach robots_policy, so crawlers do not get the policy; move robots_policy out of the matcher, handle or handle_path that excludes them"
	noPages  = "requests for pages do not reach robots_policy, so it adds no headers and blocks no crawler; put robots_policy before the handler that answers them"
)
