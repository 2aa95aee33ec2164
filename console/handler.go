// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

func init() {
	caddy.RegisterModule(new(Handler))
	httpcaddyfile.RegisterHandlerDirective("robots_policy_console", parseHandler)
	httpcaddyfile.RegisterDirectiveOrder("robots_policy_console", httpcaddyfile.Before, "respond")
}

// Handler serves the pages of the console on a site. Everyone who can request these pages sees the policy and the
// crawlers of the site's hosts, so put `basic_auth` or `forward_auth` before this directive. Without authentication,
// the pages are read-only.
type Handler struct {
	// The hosts that the pages show, and whose rules the users may change, or `*` for all hosts. Default: the host of
	// the request.
	Hosts []string `json:"hosts,omitempty"`

	server *server
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.robots_policy_console", New: func() caddy.Module { return new(Handler) }}
}

// Provision implements caddy.Provisioner.
func (h *Handler) Provision(ctx caddy.Context) error {
	for i, host := range h.Hosts {
		h.Hosts[i] = policy.NormalizeHost(host)
	}
	h.server = &server{hosts: h.Hosts, all: slices.Contains(h.Hosts, "*"), logger: ctx.Logger()}
	return nil
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	h.server.ServeHTTP(w, r)
	return nil
}

// parseHandler parses the directive. Syntax:
//
//	robots_policy_console [<matcher>] {
//	    hosts <hosts...>|*
//	}
func parseHandler(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(Handler)
	return handler, handler.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() {
		return d.Err("robots_policy_console takes an optional matcher and a block")
	}
	for d.NextBlock(0) {
		if d.Val() != "hosts" {
			return d.Errf(`unrecognized subdirective '%s': the only subdirective is "hosts", as in: hosts www.example.com`, d.Val())
		}
		if h.Hosts = append(h.Hosts, d.RemainingArgs()...); len(h.Hosts) == 0 {
			return d.Err("hosts takes one or more hosts, such as www.example.com")
		}
	}
	return nil
}

var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
