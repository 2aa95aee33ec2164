// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
)

func init() { caddy.RegisterModule(new(adminPages)) }

// adminPath is where the pages are in Caddy's admin API.
const adminPath = "/robots_policy/console/"

// adminPages serves the pages in Caddy's admin API, for all hosts.
type adminPages struct {
	server *server
}

// CaddyModule returns the Caddy module information.
func (*adminPages) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.robots_policy_console", New: func() caddy.Module { return new(adminPages) }}
}

// Provision implements caddy.Provisioner.
func (a *adminPages) Provision(ctx caddy.Context) error {
	a.server = &server{admin: true, done: ctx.Done(), logger: ctx.Logger()}
	return nil
}

// Routes implements caddy.AdminRouter.
func (a *adminPages) Routes() []caddy.AdminRoute {
	handler := caddy.AdminHandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		a.server.ServeHTTP(w, r)
		return nil
	})
	return []caddy.AdminRoute{{Pattern: adminPath, Handler: handler}}
}

var (
	_ caddy.Provisioner = (*adminPages)(nil)
	_ caddy.AdminRouter = (*adminPages)(nil)
)
