// SPDX-License-Identifier: Apache-2.0

// Package console adds to a build of Caddy the store of what crawlers do, the pages that
// show it, and the subcommands that open the store. It is a package of its own because it
// links SQLite, which a plain plugin does not need.
package console

import (
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
	_ "github.com/robotspolicy/caddy-robots-policy/internal/cli/storecmd" // subcommands
)

func init() { caddy.RegisterModule(new(Console)) }

// Console is the option `console` of the global option `robots_policy`: where the pages
// are, and what they may do beyond showing this server's own policies and store.
type Console struct {
	// Where the pages are, an address of this machine or a unix socket, such as
	// `unix//run/caddy/console.sock|0600`, or `off` for the admin API alone.
	// Default: localhost:2020.
	Listen string `json:"listen,omitempty"`

	// The name of the publisher or the site, shown on every page. Default: the first
	// host that a policy names.
	Title string `json:"title,omitempty"`

	// Whether a policy may be published from the page "What would change", to sources
	// that begin with `storage:`, and only through the admin API.
	Write bool `json:"write,omitempty"`

	ctx       caddy.Context
	logger    *zap.Logger
	listening *optional.Part[*listener] // nil if it does not listen
}

// CaddyModule returns the Caddy module information.
func (*Console) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "robots_policy.options.console", New: func() caddy.Module { return new(Console) }}
}

// options are those of the running configuration.
var options optional.Latest[Console]

// currentOptions returns the options of the running configuration, or the defaults.
func currentOptions() *Console {
	if c := options.Get(); c != nil {
		return c
	}
	return new(Console)
}

// Provision checks the options; Start puts them into force.
func (c *Console) Provision(ctx caddy.Context) error {
	c.ctx, c.logger = ctx, ctx.Logger()
	if c.Listen == "" {
		c.Listen = defaultListen
	}
	if c.Listen != "off" {
		if _, err := parseListen(c.Listen); err != nil {
			return err
		}
	}
	return nil
}

// Cleanup takes the options out of force.
func (c *Console) Cleanup() error {
	options.Remove(c)
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
//	}
func (c *Console) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() {
		c.Listen = d.Val()
	}
	if d.NextArg() {
		return d.Err("console takes one argument, an address such as localhost:2020, and a block")
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch name := d.Val(); name {
		case "title":
			if !d.AllArgs(&c.Title) {
				err = errors.New("title takes one argument")
			}
		case "write":
			if c.Write = true; d.NextArg() {
				err = errors.New("write takes no arguments")
			}
		default:
			err = fmt.Errorf("unrecognized option '%s': must be title or write", name)
		}
		if err != nil {
			return d.WrapErr(err)
		}
	}
	return nil
}

var (
	_ caddy.Provisioner     = (*Console)(nil)
	_ caddy.CleanerUpper    = (*Console)(nil)
	_ caddyfile.Unmarshaler = (*Console)(nil)
)
