// SPDX-License-Identifier: Apache-2.0

// Package routecheck warns about routes in which the handler robots_policy probably does not do what the author
// expects. Requests for /robots.txt or for pages may not reach it, two handlers may apply to the same request, or
// the directive templates may execute the handler's output.
package routecheck

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

const (
	module    = "http.handlers.robots_policy"
	templates = "http.handlers.templates"
	robots    = "/robots.txt"
)

// pending holds the configurations to check. The key is the Done channel that all contexts of a configuration
// share.
var pending sync.Map

// OnStart checks the routes of a configuration once it has started, and logs the warnings of Check. It may be
// called several times for a configuration.
func OnStart(ctx caddy.Context, logger *zap.Logger) error {
	s := &starter{ctx, logger}
	if _, already := pending.LoadOrStore(ctx.Done(), s); already {
		return nil
	}
	app, err := ctx.App("events")
	if err != nil {
		return fmt.Errorf("getting the events app: %w", err)
	}
	return app.(*caddyevents.App).On("started", s)
}

// OnStop checks the routes of a configuration that never started, for example one that caddy validate has read.
func OnStop(ctx caddy.Context) {
	if s, ok := pending.Load(ctx.Done()); ok {
		s.(*starter).check()
	}
}

type starter struct {
	ctx    caddy.Context
	logger *zap.Logger
}

func (s *starter) Handle(_ context.Context, _ caddy.Event) error {
	s.check()
	return nil // an error would have no effect here
}

// check logs the warnings, once.
func (s *starter) check() {
	if _, still := pending.LoadAndDelete(s.ctx.Done()); !still {
		return
	}
	app, err := s.ctx.AppIfConfigured("http")
	if err != nil {
		return
	}
	for _, w := range Check(app.(*caddyhttp.App)) {
		fields := []zap.Field{zap.String("host", cmp.Or(english.Some(w.Hosts, 3), "every host"))}
		if w.Directive != "" {
			fields = append(fields, zap.String("directive", w.Directive))
		}
		if w.Handler != "" {
			fields = append(fields, zap.String("handler", w.Handler))
		}
		s.logger.Warn(w.Message, fields...)
	}
}

// Warning is a warning about the routes of some hosts.
type Warning struct {
	Message   string
	Hosts     []string // as the configuration writes them, "" for every host of a server
	Directive string   // the places of robots_policy in a Caddyfile, if known
	Handler   string   // the handler that answers instead
}

// Check returns warnings about the routes of all servers, sorted by server name. It does not examine error routes.
func Check(app *caddyhttp.App) []Warning {
	names := slices.Sorted(maps.Keys(app.Servers))
	var warnings []Warning
	for _, name := range names {
		w := &walker{}
		w.routes(app.Servers[name].Routes, nil)
		warnings = append(warnings, w.warnings()...)
		policies := slices.DeleteFunc(slices.Clone(w.found), func(f found) bool { return f.kind != policyHandler })
		warnings = append(warnings, unreached(app.Servers[name], policies)...)
		believes, trusts := believesClients(app.Servers[name]), trustsProxies(app.Servers[name])
		for _, f := range policies {
			if f.Verifies && believes {
				warnings = append(warnings, Warning{Message: forged, Hosts: []string{f.host}, Directive: f.Place})
			}
			if f.Decides && !trusts {
				warnings = append(warnings, Warning{Message: nobody, Hosts: []string{f.host}, Directive: f.Place})
			}
		}
	}
	return merged(warnings)
}

func merged(all []Warning) (some []Warning) {
	for _, w := range all {
		i := slices.IndexFunc(some, func(s Warning) bool {
			return s.Message == w.Message && s.Directive == w.Directive && s.Handler == w.Handler
		})
		if i < 0 {
			some = append(some, w)
		} else if !slices.Contains(some[i].Hosts, w.Hosts[0]) {
			some[i].Hosts = append(some[i].Hosts, w.Hosts...)
		}
	}
	return some
}

// step is a route on the way to a handler.
type step struct {
	list          *caddyhttp.Route // the first route of its list, which identifies the list
	index         int
	group         string
	unconditional bool
	terminal      bool
	takesRobots   bool     // its path matcher names /robots.txt
	hosts         []string // the hosts that its matchers name
}

// found is a relevant handler, with the routes that lead to it.
type found struct {
	path        []step
	kind        kind
	host        string // that the innermost matcher names, "" for every host
	Description        // set for robots_policy
}

type kind uint8

const (
	robotsRoute      kind = iota // a route for /robots.txt with another handler
	policyHandler                // robots_policy
	templatesHandler             // templates, which executes what the handlers after it write
)

type walker struct {
	found []found // in the order in which requests reach them
}

// Described is implemented by robots_policy handlers.
type Described interface{ Describe() Description }

// Description describes a robots_policy handler.
type Description struct {
	Place    string // in a Caddyfile, "" if it is not known
	Robots   bool   // answers /robots.txt
	Verifies bool   // verifies crawlers by their addresses
	Decides  bool   // decides for another server, which must be a trusted proxy
}

func (w *walker) routes(list caddyhttp.RouteList, above []step) {
	for i := range list {
		r := &list[i]
		at := step{&list[0], i, r.Group, len(r.MatcherSets) == 0, r.Terminal, namesRobots(r.MatcherSets), hostsNamed(r.MatcherSets)}
		path := append(slices.Clip(above), at)
		for _, h := range r.Handlers {
			w.handler(h, path)
		}
		if at.takesRobots && !holdsPolicy(r.Handlers) && answers(r.Handlers) {
			w.found = append(w.found, found{path: path, kind: robotsRoute})
		}
	}
}

func (w *walker) handler(h caddyhttp.MiddlewareHandler, path []step) {
	switch moduleOf(h) {
	case module:
		description := Description{Robots: true}
		if d, ok := h.(Described); ok {
			description = d.Describe()
		}
		for _, host := range innermostHosts(path) {
			w.found = append(w.found, found{path, policyHandler, host, description})
		}
	case templates:
		w.found = append(w.found, found{path: path, kind: templatesHandler})
	}
	if s, ok := h.(*caddyhttp.Subroute); ok {
		w.routes(s.Routes, path)
	}
}

// innermostHosts returns the hosts of the last route that names hosts, or "" for all hosts.
func innermostHosts(path []step) []string {
	for _, s := range slices.Backward(path) {
		if len(s.hosts) > 0 {
			return s.hosts
		}
	}
	return []string{""}
}

// hostsNamed returns the hosts that matchers name.
func hostsNamed(sets caddyhttp.MatcherSets) (hosts []string) {
	for _, set := range sets {
		for _, m := range set {
			switch m := m.(type) {
			case caddyhttp.MatchHost:
				hosts = append(hosts, m...)
			case *caddyhttp.MatchHost:
				hosts = append(hosts, *m...)
			}
		}
	}
	return hosts
}

func moduleOf(h caddyhttp.MiddlewareHandler) caddy.ModuleID {
	if m, ok := h.(caddy.Module); ok {
		return m.CaddyModule().ID
	}
	return ""
}

// holdsPolicy reports whether handlers contain robots_policy, directly or in subroutes.
func holdsPolicy(handlers []caddyhttp.MiddlewareHandler) bool {
	return slices.ContainsFunc(handlers, func(h caddyhttp.MiddlewareHandler) bool {
		s, ok := h.(*caddyhttp.Subroute)
		return moduleOf(h) == module || ok && slices.ContainsFunc(s.Routes, func(r caddyhttp.Route) bool { return holdsPolicy(r.Handlers) })
	})
}

// answering are handlers that answer every request.
var answering = []caddy.ModuleID{"http.handlers.static_response", "http.handlers.file_server", "http.handlers.reverse_proxy", "http.handlers.error"}

// answers reports whether handlers, or those in their subroutes, answer requests.
func answers(handlers []caddyhttp.MiddlewareHandler) bool {
	return slices.ContainsFunc(handlers, func(h caddyhttp.MiddlewareHandler) bool {
		if s, ok := h.(*caddyhttp.Subroute); ok {
			return slices.ContainsFunc(s.Routes, func(r caddyhttp.Route) bool { return answers(r.Handlers) })
		}
		return slices.Contains(answering, moduleOf(h))
	})
}

// namesRobots reports whether matchers match hardly any path except /robots.txt.
func namesRobots(sets caddyhttp.MatcherSets) bool {
	return slices.ContainsFunc(sets, func(set caddyhttp.MatcherSet) bool {
		return slices.ContainsFunc(set, func(m any) bool {
			var paths caddyhttp.MatchPath
			switch m := m.(type) {
			case caddyhttp.MatchPath:
				paths = m
			case *caddyhttp.MatchPath:
				paths = *m
			}
			return slices.ContainsFunc(paths, func(p string) bool {
				return strings.EqualFold(strings.TrimSuffix(p, "*"), robots) || strings.EqualFold(p, "/robots*")
			})
		})
	})
}

// warnings checks each pair of handlers that the same request can reach.
func (w *walker) warnings() (all []Warning) {
	for i, first := range w.found {
		for _, second := range w.found[i+1:] {
			a, b, exclusive := diverge(first.path, second.path)
			of, message := first, ""
			switch {
			case second.kind == templatesHandler:
			case first.kind == templatesHandler:
				if of = second; second.kind == policyHandler && !exclusive && unconditional(a) {
					message = executed
				}
			case first.kind == policyHandler && second.kind == policyHandler:
				if first.host == second.host && !exclusive && (unconditional(a) || unconditional(b)) {
					message = twice
				}
			case first.kind == policyHandler:
				if unconditional(a) && unconditional(b[:len(b)-1]) {
					message = after
				}
			}
			if message != "" {
				all = append(all, Warning{Message: message, Hosts: []string{of.host}, Directive: of.Place})
			}
		}
	}
	return all
}

// believesClients reports whether a server reads the client's address from the left of X-Forwarded-For, where the
// client itself may have written it.
func believesClients(s *caddyhttp.Server) bool {
	return trustsProxies(s) && s.TrustedProxiesStrict == 0 && (len(s.ClientIPHeaders) == 0 ||
		slices.ContainsFunc(s.ClientIPHeaders, func(name string) bool { return strings.EqualFold(name, "X-Forwarded-For") }))
}

func trustsProxies(s *caddyhttp.Server) bool {
	proxies := reflect.ValueOf(s).Elem().FieldByName("trustedProxies") // the JSON is dropped after provisioning
	return proxies.IsValid() && !proxies.IsNil()
}

const (
	nobody   = "robots_policy_decide answers only trusted proxies, but none is configured, so every asking server gets status 403; list its address in trusted_proxies, under servers in the global options"
	forged   = "trusted_proxies is set without trusted_proxies_strict. If a proxy appends to X-Forwarded-For, a client can send Googlebot's address in it and be verified as Googlebot. Add trusted_proxies_strict"
	twice    = "robots_policy applies twice to one request: the first answers robots.txt, and both add headers and meta tags. Remove one, or give them matchers that exclude each other"
	executed = "templates comes before robots_policy, so {{…}} in a comment or address of robots.txt would be executed as a template; put robots_policy before templates"
	after    = "robots_policy answers /robots.txt before another route for it, which is never used; remove that route, or set robots_txt to merge or off"
)

// diverge returns the steps of two paths after they part. exclusive reports whether a request that takes the first
// path cannot take the second. This is so after a terminal route, and in a group, of which only one route is taken.
func diverge(a, b []step) (restA, restB []step, exclusive bool) {
	n := 0
	for n < len(a) && n < len(b) && a[n].list == b[n].list && a[n].index == b[n].index {
		n++
	}
	restA, restB = a[n:], b[n:]
	if len(restA) > 0 && len(restB) > 0 && restA[0].list == restB[0].list {
		exclusive = restA[0].terminal || restA[0].group != "" && restA[0].group == restB[0].group
	}
	return restA, restB, exclusive
}

func unconditional(path []step) bool {
	return !slices.ContainsFunc(path, func(s step) bool { return !s.unconditional })
}
