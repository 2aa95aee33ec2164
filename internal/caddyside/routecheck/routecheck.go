// SPDX-License-Identifier: Apache-2.0

// Package routecheck warns of routes in which the robots_policy handler does not do
// what their author expects: because another route takes /robots.txt, because two
// handlers apply to one request, or because templates executes what the handler
// writes.
package routecheck

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
)

const (
	module    = "http.handlers.robots_policy"
	templates = "http.handlers.templates"
	robots    = "/robots.txt"
)

// pending holds the configurations that are to be checked, by the Done channel that
// all contexts of a configuration share.
var pending sync.Map

// OnStart checks the routes of a configuration once it has started, however often it
// is called for it, and logs what check finds.
func OnStart(ctx caddy.Context, logger *zap.Logger) error {
	if _, already := pending.LoadOrStore(ctx.Done(), nil); already {
		return nil
	}
	app, err := ctx.App("events")
	if err != nil {
		return fmt.Errorf("getting the events app: %w", err)
	}
	return app.(*caddyevents.App).On("started", &starter{ctx, logger})
}

type starter struct {
	ctx    caddy.Context
	logger *zap.Logger
}

// Handle implements caddyevents.Handler.
func (s *starter) Handle(_ context.Context, _ caddy.Event) error {
	pending.Delete(s.ctx.Done())
	app, err := s.ctx.AppIfConfigured("http")
	if err != nil {
		return nil // an error here would stop nothing
	}
	for _, w := range check(app.(*caddyhttp.App)) {
		s.logger.Warn(w.Message, zap.String("server", w.Server))
	}
	return nil
}

// warning is about the routes of one server.
type warning struct {
	Server, Message string
}

// check returns warnings about the routes of all servers, in the order of their
// names. Routes for errors and named routes are not looked at.
func check(app *caddyhttp.App) []warning {
	names := slices.Sorted(maps.Keys(app.Servers))
	var warnings []warning
	for _, name := range names {
		w := &walker{server: name}
		w.routes(app.Servers[name].Routes, nil)
		warnings = append(warnings, w.warnings()...)
	}
	return warnings
}

// step is a route on the way to a handler.
type step struct {
	list          *caddyhttp.Route // the first of its list, which identifies the list
	index         int
	group         string
	unconditional bool
	terminal      bool
	takesRobots   bool // its path matcher names /robots.txt
}

// found is a handler that matters, with the routes on the way to it.
type found struct {
	path []step
	kind kind
}

type kind uint8

const (
	robotsRoute      kind = iota // a route for /robots.txt with another handler
	policyHandler                // robots_policy
	templatesHandler             // templates, which executes what the handlers after it write
)

type walker struct {
	server string
	found  []found // in the order in which requests get to them
}

func (w *walker) routes(list caddyhttp.RouteList, above []step) {
	for i := range list {
		r := &list[i]
		at := step{&list[0], i, r.Group, len(r.MatcherSets) == 0, r.Terminal, namesRobots(r.MatcherSets)}
		path := append(slices.Clip(above), at)
		for _, h := range r.Handlers {
			w.handler(h, path)
		}
		if at.takesRobots && !holdsPolicy(r.Handlers) && answers(r.Handlers) {
			w.found = append(w.found, found{path, robotsRoute})
		}
	}
}

func (w *walker) handler(h caddyhttp.MiddlewareHandler, path []step) {
	switch moduleOf(h) {
	case module:
		w.found = append(w.found, found{path, policyHandler})
	case templates:
		w.found = append(w.found, found{path, templatesHandler})
	}
	if s, ok := h.(*caddyhttp.Subroute); ok {
		w.routes(s.Routes, path)
	}
}

// moduleOf returns the ID of a handler's module.
func moduleOf(h caddyhttp.MiddlewareHandler) caddy.ModuleID {
	if m, ok := h.(caddy.Module); ok {
		return m.CaddyModule().ID
	}
	return ""
}

// holdsPolicy reports whether robots_policy is among handlers or below them.
func holdsPolicy(handlers []caddyhttp.MiddlewareHandler) bool {
	return slices.ContainsFunc(handlers, func(h caddyhttp.MiddlewareHandler) bool {
		s, ok := h.(*caddyhttp.Subroute)
		return moduleOf(h) == module || ok && slices.ContainsFunc(s.Routes, func(r caddyhttp.Route) bool { return holdsPolicy(r.Handlers) })
	})
}

// answering are handlers that answer every request that gets to them.
var answering = []caddy.ModuleID{"http.handlers.static_response", "http.handlers.file_server", "http.handlers.reverse_proxy", "http.handlers.error"}

// answers reports whether handlers, or what is below them, answer requests.
func answers(handlers []caddyhttp.MiddlewareHandler) bool {
	return slices.ContainsFunc(handlers, func(h caddyhttp.MiddlewareHandler) bool {
		if s, ok := h.(*caddyhttp.Subroute); ok {
			return slices.ContainsFunc(s.Routes, func(r caddyhttp.Route) bool { return answers(r.Handlers) })
		}
		return slices.Contains(answering, moduleOf(h))
	})
}

// namesRobots reports whether matchers match little else than /robots.txt by its
// path.
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

// warnings checks each pair of handlers that one request can get to.
func (w *walker) warnings() (all []warning) {
	warn := func(message string) {
		if one := (warning{w.server, message}); !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	for i, first := range w.found {
		for _, second := range w.found[i+1:] {
			a, b, exclusive := diverge(first.path, second.path)
			switch {
			case second.kind == templatesHandler:
			case first.kind == templatesHandler:
				if second.kind == policyHandler && !exclusive && unconditional(a) {
					warn(executed)
				}
			case first.kind == policyHandler && second.kind == policyHandler:
				if !exclusive && (unconditional(a) || unconditional(b)) {
					warn(twice)
				}
			case second.kind == policyHandler:
				if unconditional(a[:len(a)-1]) && unconditional(b) {
					warn(before)
				}
			case first.kind == policyHandler:
				if unconditional(a) && unconditional(b[:len(b)-1]) {
					warn(after)
				}
			}
		}
	}
	return all
}

const (
	twice    = "robots_policy applies twice to one request: the first one answers robots.txt, and headers and meta elements come from both; remove one, or give them matchers that exclude each other"
	before   = "another route answers /robots.txt before robots_policy, so crawlers do not get the policy; remove that route, or put it after robots_policy with robots_txt merge"
	executed = "templates comes before robots_policy, so it executes what the policy writes: {{…}} in a comment or address of robots.txt would run as a template; put robots_policy before templates"
	after    = "robots_policy answers /robots.txt before another route for it, which is never used; remove that route, or set robots_txt to merge or off"
)

// diverge returns the steps of two paths from where they part, and whether a request
// that takes the first cannot take the second: after a terminal route, and in a group,
// of whose routes only one is taken.
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
