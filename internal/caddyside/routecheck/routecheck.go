// SPDX-License-Identifier: Apache-2.0

// Package routecheck warns about routes in which the handler robots_policy probably does not do what the author
// expects. Requests for /robots.txt or for pages may not reach it, two handlers may apply to the same request, or the
// directive "templates" may execute the handler's output.
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
	Hosts     []string // hosts as in the configuration; "" for every host of a server
	Directive string   // places of the robots_policy directives in a Caddyfile, if known
	Handler   string   // the handler that answers instead of robots_policy
}

// Check returns warnings about the routes of all servers, sorted by server name. It does not examine error routes.
func Check(app *caddyhttp.App) []Warning {
	var warnings []Warning
	for _, name := range slices.Sorted(maps.Keys(app.Servers)) {
		server := app.Servers[name]
		policies := policiesIn(server.Routes, placed{hosts: []string{""}})
		warnings = append(warnings, onTheWay(server, policies)...)
		believes, trusts := believesClients(server), trustsProxies(server)
		for _, p := range policies {
			if p.Verifies && believes {
				warnings = append(warnings, Warning{Message: forged, Hosts: p.hosts, Directive: p.Place})
			}
			if p.Decides && !trusts {
				warnings = append(warnings, Warning{Message: nobody, Hosts: p.hosts, Directive: p.Place})
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
			continue
		}
		for _, host := range w.Hosts {
			if !slices.Contains(some[i].Hosts, host) {
				some[i].Hosts = append(slices.Clip(some[i].Hosts), host)
			}
		}
	}
	return some
}

// Described is implemented by robots_policy handlers.
type Described interface{ Describe() Description }

// Description describes a robots_policy handler.
type Description struct {
	Place    string // place in a Caddyfile, or "" if it is not known
	Robots   bool   // the handler answers /robots.txt
	Verifies bool   // the handler verifies crawlers by their addresses
	Decides  bool   // the handler decides for another server, which must be a trusted proxy
}

// placed is a robots_policy handler, together with the hosts and paths of the matchers around it.
type placed struct {
	Description
	hosts       []string // the hosts that the innermost matcher names, or "" for every host
	paths       []string // the paths that the matchers name
	takesRobots bool     // a path matcher names /robots.txt
}

// policiesIn returns the robots_policy handlers in routes. around has the hosts and paths of the matchers around these
// routes.
func policiesIn(list caddyhttp.RouteList, around placed) (all []placed) {
	for i := range list {
		r := &list[i]
		at := around
		at.takesRobots = at.takesRobots || namesRobots(r.MatcherSets)
		at.paths = append(slices.Clip(at.paths), named[caddyhttp.MatchPath](r.MatcherSets)...)
		if hosts := named[caddyhttp.MatchHost](r.MatcherSets); len(hosts) > 0 {
			at.hosts = hosts
		}
		for _, h := range r.Handlers {
			if moduleOf(h) == module {
				found := at
				found.Description = describe(h)
				all = append(all, found)
			}
			if s, ok := h.(*caddyhttp.Subroute); ok {
				all = append(all, policiesIn(s.Routes, at)...)
			}
		}
	}
	return all
}

func describe(h caddyhttp.MiddlewareHandler) Description {
	if d, ok := h.(Described); ok {
		return d.Describe()
	}
	return Description{Robots: true}
}

// named returns all values in the matchers of type T, such as all hosts or all paths.
func named[T ~[]string](sets caddyhttp.MatcherSets) (all []string) {
	for _, set := range sets {
		for _, m := range set {
			switch m := m.(type) {
			case T:
				all = append(all, m...)
			case *T:
				all = append(all, *m...)
			}
		}
	}
	return all
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

// namesRobots reports whether matchers match hardly any path except /robots.txt.
func namesRobots(sets caddyhttp.MatcherSets) bool {
	return slices.ContainsFunc(named[caddyhttp.MatchPath](sets), func(p string) bool {
		return strings.EqualFold(strings.TrimSuffix(p, "*"), robots) || strings.EqualFold(p, "/robots*")
	})
}

// A proxy appends the address of its client to X-Forwarded-For. So a client can send this field itself, and choose the
// address at the left end. believesClients reports whether the server s takes the client's address from this left end.
func believesClients(s *caddyhttp.Server) bool {
	return trustsProxies(s) && s.TrustedProxiesStrict == 0 && (len(s.ClientIPHeaders) == 0 ||
		slices.ContainsFunc(s.ClientIPHeaders, func(name string) bool { return strings.EqualFold(name, "X-Forwarded-For") }))
}

func trustsProxies(s *caddyhttp.Server) bool {
	proxies := reflect.ValueOf(s).Elem().FieldByName("trustedProxies") // the JSON was dropped by provisioning
	return proxies.IsValid() && !proxies.IsNil()
}

const (
	nobody   = "robots_policy_decide answers only trusted proxies, but none is configured, so every server that asks it gets status 403. List the addresses of these servers in trusted_proxies, under servers in the global options"
	forged   = "trusted_proxies is set without trusted_proxies_strict. If a proxy appends to X-Forwarded-For, a client can send Googlebot's address in it and be verified as Googlebot. Add trusted_proxies_strict"
	twice    = "two robots_policy directives apply to the same request: the first one answers robots.txt, and both add headers and meta tags. Remove one of them, or give them matchers that exclude each other"
	executed = "templates runs before robots_policy, so {{…}} in a comment or address of robots.txt would be executed as a template; put robots_policy before templates"
	after    = "another route for /robots.txt is never used, because robots_policy answers first; remove that route, or set robots_txt to merge or off"
)
