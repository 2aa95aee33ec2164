// SPDX-License-Identifier: Apache-2.0

package routecheck

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/fileserver"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
)

// pages are paths that stand for the pages of a site. There are several, because the home page may be a redirect.
var pages = []string{"/", "/a-page.html", "/a/page/"}

// walk follows a request through the routes to robots_policy, in the order in which Caddy runs the routes. Some
// matchers can only be evaluated for a real request, such as those that look for files. At such a matcher, walk assumes
// the result that leads to robots_policy. After a handler that ends the request, walk continues nevertheless, to find
// out whether robots_policy comes too late.
type walk struct {
	server   *caddyhttp.Server
	request  *http.Request
	policies []reached // handlers that the request reaches, in this order, until it ends
	executed bool      // the directive "templates" comes before the first handler in policies
	answerer string    // directive of the handler that ends the request
	own      bool      // answerer is in a route for /robots.txt
	late     bool      // robots_policy comes only after the handler that ends the request
	inOwn    bool
	guessed  int // the number of undecided matchers on the way
	template bool
}

// reached is a robots_policy handler that a request reaches.
type reached struct {
	Description
	sure bool // the request certainly reaches the handler: no matcher before it needs a real request
}

// follow returns the walk of a crawler's request for a path through the routes of a server.
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

// routes follows the request through a list of routes. It returns true if the walk can end here: it has found
// everything, or the request does not reach any further route.
func (w *walk) routes(list caddyhttp.RouteList) bool {
	taken := map[string]bool{}
	for i := range list {
		r := &list[i]
		if r.Group != "" && taken[r.Group] && w.answerer == "" {
			continue
		}
		matches, known := w.match(r.MatcherSets)
		holds := holdsPolicy(r.Handlers)
		if !known && !holds || known && !matches {
			continue
		}
		taken[r.Group] = true
		outside, guessed := w.inOwn, w.guessed
		w.inOwn = outside || namesRobots(r.MatcherSets) && !holds
		if !known {
			w.guessed++
		}
		if slices.ContainsFunc(r.Handlers, w.handle) || r.Terminal && w.answerer == "" {
			return true
		}
		w.inOwn, w.guessed = outside, guessed
	}
	return false
}

func (w *walk) handle(h caddyhttp.MiddlewareHandler) bool {
	switch id := moduleOf(h); {
	case id == module && w.answerer == "":
		w.executed = w.executed || w.template && len(w.policies) == 0
		w.policies = append(w.policies, reached{describe(h), w.guessed == 0})
		return false
	case id == module:
		w.late = len(w.policies) == 0
		return true
	case id == templates:
		w.template = true
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
	return w.answerer != "" && len(w.policies) > 0
}

// ending lists handlers that always end a request, or end all requests without a password.
var ending = []caddy.ModuleID{
	"http.handlers.static_response", "http.handlers.file_server", "http.handlers.reverse_proxy", "http.handlers.error",
	"http.handlers.authentication", "http.handlers.metrics", "http.handlers.acme_server",
}

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

// match reports whether w.request matches the matchers of a route. known is false if this is unknown, because some
// matchers can only be evaluated for a real request.
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

// deciding lists the matchers whose result depends only on the host, the path and other known parts of the request.
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

// onTheWay returns warnings about the requests for /robots.txt and for pages of each host.
func onTheWay(server *caddyhttp.Server, policies []placed) (all []Warning) {
	for _, host := range hostsOf(policies) {
		of := slices.DeleteFunc(slices.Clone(policies), func(p placed) bool { return !slices.Contains(p.hosts, host) })
		example := strings.Replace(caddy.NewReplacer().ReplaceKnown(cmp.Or(host, "www.example.com"), ""), "*", "www", 1)
		warn := func(message, place, handler string) {
			all = append(all, Warning{Message: message, Hosts: []string{host}, Directive: place, Handler: handler})
		}
		way, passes := follow(server, example, robots), false
		paths := slices.Clone(pages)
		for _, p := range of {
			passes = passes || p.takesRobots
			paths = append(paths, p.paths...)
		}
		for _, path := range paths {
			if passes && len(of) == 1 {
				break
			}
			page := follow(server, example, strings.ReplaceAll(path, "*", "x"))
			if passes = passes || len(page.policies) > 0; page.isTwice() {
				warn(twice, page.policies[0].Place, "")
			}
		}
		switch {
		case way.isTwice():
			warn(twice, way.policies[0].Place, "")
		case way.executed:
			warn(executed, way.policies[0].Place, "")
		case len(way.policies) > 0 && way.policies[0].sure && way.answerer != "" && way.own:
			warn(after, way.policies[0].Place, "")
		}
		of = slices.DeleteFunc(of, func(p placed) bool { return !p.Robots })
		switch {
		case len(of) == 0:
		case way.late:
			warn(answered, of[0].Place, way.answerer)
		// No warning: the site has its own robots.txt, and the policy applies only to some paths.
		case len(way.policies) == 0 && way.own:
		case len(way.policies) == 0:
			warn(noRoute, of[0].Place, "")
		case !passes:
			warn(noPages, of[0].Place, "")
		}
	}
	return all
}

func (w *walk) isTwice() bool {
	return len(w.policies) > 1 && slices.ContainsFunc(w.policies, func(r reached) bool { return r.sure })
}

func hostsOf(policies []placed) (hosts []string) {
	for _, p := range policies {
		for _, host := range p.hosts {
			if !slices.Contains(hosts, host) {
				hosts = append(hosts, host)
			}
		}
	}
	return hosts
}

const (
	answered = "another handler answers /robots.txt before robots_policy, so crawlers do not get the policy; put robots_policy before that handler"
	noRoute  = "requests for /robots.txt do not reach robots_policy, so crawlers do not get the policy; move robots_policy out of the matcher, handle or handle_path that excludes them"
	noPages  = "requests for pages do not reach robots_policy, so it adds no headers and blocks no crawler; put robots_policy before the handler that answers them"
)
