// SPDX-License-Identifier: Apache-2.0

// Package console adds to a build of Caddy the store of what crawlers do, the pages that show it, and the subcommands
// that open the store. It is a separate package because it links SQLite, which a plugin without the console does not
// need.
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
	_ "github.com/robotspolicy/caddy-robots-policy/internal/cli/storecmd" // subcommands
)

func init() { caddy.RegisterModule(new(Console)) }

// Console is the option `console` of the global option `robots_policy`. It sets the address of the pages, and the
// things that people may do there besides reading.
type Console struct {
	// Where the pages are, an address of this machine or a unix socket, such as
	// `unix//run/caddy/console.sock|0600`, or `off`.
	// Default: localhost:2020.
	Listen string `json:"listen,omitempty"`

	// The name of the publisher or the site, on every page. Default: the first host that a policy names.
	Title string `json:"title,omitempty"`

	// Whether policies at `storage:` may be changed: from this machine, and on sites by Roles.
	Write bool `json:"write,omitempty"`

	// What says who uses the pages of a site. Default: `{http.auth.user.id}`. A placeholder
	// of a header counts as true, so something before the pages must remove the client's own.
	User string `json:"user,omitempty"`

	// Who may do what on the pages of sites: names, or `*`, by `viewer`, `editor` and
	// `publisher`. Default: everyone who can open the pages is a viewer.
	Roles map[string][]string `json:"roles,omitempty"`

	// How many people a publication takes. Default: 1.
	Approval int `json:"approval,omitempty"`

	ctx       caddy.Context
	logger    *zap.Logger
	listening *optional.Part[*listener] // nil if it does not listen
}

// CaddyModule returns the Caddy module information.
func (*Console) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "robots_policy.options.console", New: func() caddy.Module { return new(Console) }}
}

// options are the options of the running configuration.
var options optional.Latest[Console]

// currentOptions returns the options of the running configuration, or the defaults.
func currentOptions() *Console {
	if c := options.Get(); c != nil {
		return c
	}
	return new(Console)
}

// user returns the placeholder whose value is the name of the person who uses the console on a site.
func (c *Console) user() string { return cmp.Or(c.User, defaultUser) }

// Provision checks the options. They take effect with Start.
func (c *Console) Provision(ctx caddy.Context) error {
	c.ctx, c.logger = ctx, ctx.Logger()
	for name, people := range c.Roles {
		switch {
		case roles[name] == stranger:
			return fmt.Errorf("unrecognized role %q: must be viewer, editor or publisher", name)
		case roles[name] > viewer && !c.Write:
			return fmt.Errorf("the role %s needs the option write, because without it the console is read-only", name)
		case len(people) == 0:
			return fmt.Errorf("the role %s has no names; add the names of people, as the sign-in gives them, or *", name)
		}
	}
	// With text next to a placeholder, the name would not be empty for people who are not signed in.
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

// Cleanup ends the effect of the options.
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
		return d.Err("console takes one argument, an address such as localhost:2020, and a block")
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
				return d.Err("roles takes a block with viewer, editor and publisher")
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
