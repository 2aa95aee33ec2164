// SPDX-License-Identifier: Apache-2.0

// Package console adds three things to a build of Caddy: an activity database, pages that show the requests of
// crawlers, and subcommands that open the database. The package is separate because it links SQLite, which a plugin
// without the console does not need.
package console

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/block"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/policies"
	_ "github.com/robotspolicy/caddy-robots-policy/internal/cli/storecmd" // registers the subcommands
)

func init() { caddy.RegisterModule(new(Console)) }

// Console is the option `console` of the global option `robots_policy`. It sets the address of the console's pages, and
// the permissions of the people who use them.
type Console struct {
	// The address of the pages. It must be a loopback address, a Unix socket such as
	// `unix//run/caddy/console.sock|0600`, or `off`. Default: localhost:2020.
	Listen string `json:"listen,omitempty"`

	// The name of the publisher or the site, which every page shows. Default: the first host that a policy names.
	Title string `json:"title,omitempty"`

	// Whether the console may change policies in Caddy's storage (`storage:KEY`). If so, everyone who uses the
	// console's address on this machine may change them. If a site serves the pages with `robots_policy_console`, the
	// roles decide who may change policies there.
	Write bool `json:"write,omitempty"`

	// The placeholder with the name of the person who uses the console's pages on a site (`robots_policy_console`). If
	// the placeholder reads a request header, such as `{http.request.header.X-User}`, the console trusts this header.
	// Therefore a handler or proxy in front of the console must remove this header from the requests of clients.
	// Default: `{http.auth.user.id}`.
	User string `json:"user,omitempty"`

	// The names of the people with each role, for console pages that sites serve with `robots_policy_console`. The keys
	// are `viewer`, `editor` and `publisher`. The name `*` means everyone for the role `viewer`, and everyone who is
	// signed in for the other roles. Default: everyone who can open the pages is a viewer.
	Roles map[string][]string `json:"roles,omitempty"`

	// The number of people who must agree before a version is published. Default: 1.
	Approval int `json:"approval,omitempty"`

	ctx       caddy.Context
	logger    *zap.Logger
	listening *optional.Part[*listener] // nil if the console does not listen
}

// CaddyModule returns the Caddy module information.
func (*Console) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "robots_policy.options.console", New: func() caddy.Module { return new(Console) }}
}

// options holds the console options of the running configuration.
var options optional.Latest[Console]

// currentOptions returns the options of the running configuration, or the defaults.
func currentOptions() *Console {
	if c := options.Get(); c != nil {
		return c
	}
	return new(Console)
}

// user returns the placeholder whose value is the name of the person who uses the console's pages on a site.
func (c *Console) user() string { return cmp.Or(c.User, defaultUser) }

// Provision checks the options. The options take effect when Start is called.
func (c *Console) Provision(ctx caddy.Context) error {
	c.ctx, c.logger = ctx, ctx.Logger()
	for name, people := range c.Roles {
		switch {
		case roles[name] == stranger:
			return fmt.Errorf("unrecognized role %q: must be viewer, editor or publisher", name)
		case roles[name] > viewer && !c.Write:
			return fmt.Errorf("the role %s needs the option \"write\", because without it the console is read-only", name)
		case len(people) == 0:
			return fmt.Errorf("the role %s has no names; add the names that people sign in with, or * for everyone", name)
		}
	}
	// The option "user" must be a single placeholder. A value such as `{http.auth.user.id}@example.com` would give a
	// name to people who are not signed in, so the console would regard them as signed in.
	if u := c.user(); len(u) < 3 || u[0] != '{' || strings.IndexByte(u, '}') != len(u)-1 || strings.Contains(u[1:], "{") {
		return fmt.Errorf("invalid user %q: must be a single placeholder, such as %s", c.User, defaultUser)
	}
	if c.Approval < 0 || c.Approval > 9 {
		return errors.New("invalid approval: must be the number of people who must approve a version, from 1 to 9")
	}
	if c.Listen = cmp.Or(c.Listen, defaultListen); c.Listen != "off" {
		if _, err := parseListen(c.Listen); err != nil {
			return err
		}
	}
	return nil
}

// Cleanup ends the effect of the options, and closes the console's address on this machine.
func (c *Console) Cleanup() error {
	options.Remove(c)
	policies.Approvals.Remove(&c.Approval)
	if c.listening != nil {
		return c.listening.Close()
	}
	return nil
}

// UnmarshalCaddyfile sets up the options from Caddyfile tokens. Syntax:
//
//	console [<address>|off] {
//	    title <text>
//	    write
//	    user     <placeholder>
//	    roles {
//	        viewer|editor|publisher <names...>|*
//	    }
//	    approval <people>
//	}
func (c *Console) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() {
		c.Listen = d.Val()
	}
	if d.NextArg() {
		return d.Err("console takes at most one argument (an address such as localhost:2020, or off), and then a block")
	}
	return block.Read(d, block.Text("title", "a text", &c.Title), block.Flag("write", &c.Write), block.Text("user", "a placeholder", &c.User),
		block.Nested("roles", func(d *caddyfile.Dispenser) error {
			for nesting := d.Nesting(); d.NextBlock(nesting); {
				if c.Roles == nil {
					c.Roles = map[string][]string{}
				}
				role := d.Val()
				c.Roles[role] = append(c.Roles[role], d.RemainingArgs()...)
			}
			if c.Roles == nil {
				return d.Err("roles takes a block with lines such as: editor alice bob")
			}
			return nil
		}),
		block.Number("approval", &c.Approval, 1, 9, "the number of people who must approve a version, from 1 to 9"))
}

var (
	_ caddy.Provisioner     = (*Console)(nil)
	_ caddy.CleanerUpper    = (*Console)(nil)
	_ caddyfile.Unmarshaler = (*Console)(nil)
)
