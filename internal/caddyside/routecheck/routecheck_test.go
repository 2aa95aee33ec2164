// SPDX-License-Identifier: Apache-2.0

package routecheck

import (
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// fakeHandler represents the handler of another module.
type fakeHandler caddy.ModuleID

func (h fakeHandler) CaddyModule() caddy.ModuleInfo { return caddy.ModuleInfo{ID: caddy.ModuleID(h)} }

func (fakeHandler) ServeHTTP(http.ResponseWriter, *http.Request, caddyhttp.Handler) error {
	return nil
}

func route(group string, match any, handlers ...caddyhttp.MiddlewareHandler) caddyhttp.Route {
	r := caddyhttp.Route{Group: group, Handlers: handlers}
	switch m := match.(type) {
	case string:
		path := caddyhttp.MatchPath{m}
		r.MatcherSets = caddyhttp.MatcherSets{{&path}}
	case caddyhttp.MatchHost:
		r.MatcherSets = caddyhttp.MatcherSets{{&m}}
		r.Terminal = true
	}
	return r
}

func sub(routes ...caddyhttp.Route) *caddyhttp.Subroute { return &caddyhttp.Subroute{Routes: routes} }

func TestCheck(t *testing.T) {
	t.Parallel()
	policy, respond, next := fakeHandler(module), &caddyhttp.StaticResponse{}, &caddyhttp.VarsMiddleware{}
	templates := fakeHandler(templates)
	a, b := caddyhttp.MatchHost{"a.example"}, caddyhttp.MatchHost{"b.example"}
	for name, c := range map[string]struct {
		routes caddyhttp.RouteList
		want   string
	}{
		"alone":                        {caddyhttp.RouteList{route("", nil, policy), route("", nil, respond)}, ""},
		"twice in a row":               {caddyhttp.RouteList{route("", nil, policy), route("", "/a/*", policy)}, twice},
		"twice in one route":           {caddyhttp.RouteList{route("", nil, policy, policy)}, twice},
		"around a subroute":            {caddyhttp.RouteList{route("", nil, policy), route("", "/a/*", sub(route("", nil, policy)))}, twice},
		"by path":                      {caddyhttp.RouteList{route("", "/a/*", policy), route("", "/b/*", policy)}, noRoute},
		"in two handles":               {caddyhttp.RouteList{route("g", "/a/*", sub(route("", nil, policy))), route("g", nil, sub(route("", nil, policy)))}, ""},
		"two sites":                    {caddyhttp.RouteList{route("", a, sub(route("", nil, policy))), route("", b, sub(route("", nil, policy)))}, ""},
		"a site and one for the rest":  {caddyhttp.RouteList{route("", a, sub(route("", nil, policy))), route("", nil, sub(route("", nil, policy)))}, ""},
		"respond before":               {caddyhttp.RouteList{route("", robots, respond), route("", nil, policy)}, answered},
		"respond before, with a *":     {caddyhttp.RouteList{route("", "/robots.txt*", respond), route("", nil, policy)}, answered},
		"respond before, another site": {caddyhttp.RouteList{route("", a, sub(route("", robots, respond))), route("", b, sub(route("", nil, policy)))}, ""},
		"a handle of its own":          {caddyhttp.RouteList{route("g", robots, sub(route("", nil, respond))), route("g", nil, sub(route("", nil, policy)))}, answered},
		"a handle after":               {caddyhttp.RouteList{route("", nil, policy), route("g", robots, sub(route("", nil, respond)))}, after},
		"a policy for a part":          {caddyhttp.RouteList{route("", "/blog/*", policy), route("", robots, respond)}, ""},
		"no answer":                    {caddyhttp.RouteList{route("", robots, next), route("", nil, policy)}, ""},
		"templates after":              {caddyhttp.RouteList{route("", nil, policy), route("", nil, templates)}, ""},
		"templates before":             {caddyhttp.RouteList{route("", nil, templates), route("", nil, policy)}, executed},
		"templates in the same route":  {caddyhttp.RouteList{route("", nil, templates, policy)}, executed},
		"templates around a subroute":  {caddyhttp.RouteList{route("", nil, templates, sub(route("", a, policy)))}, executed},
		"templates for other paths":    {caddyhttp.RouteList{route("", "/docs/*", templates), route("", nil, policy)}, ""},
		"templates in another handle":  {caddyhttp.RouteList{route("g", "/docs/*", sub(route("", nil, templates))), route("g", nil, sub(route("", nil, policy)))}, ""},
		"a policy for robots.txt":      {caddyhttp.RouteList{route("", robots, policy), route("", nil, respond)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Check(&caddyhttp.App{Servers: map[string]*caddyhttp.Server{"s": {Routes: c.routes}}})
			switch {
			case c.want == "" && len(got) > 0, c.want != "" && (len(got) != 1 || got[0].Message != c.want):
				t.Errorf("%+v, want %q", got, c.want)
			}
		})
	}
}
