// SPDX-License-Identifier: Apache-2.0

// Package fleet tells servers that share Caddy's storage which crawlers have read which
// robots.txt, and how many servers there are.
package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/certmagic"

	"github.com/robotspolicy/caddy-robots-policy/handler"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
)

func init() { caddy.RegisterModule(new(Fleet)) }

// Fleet is the option `fleet` of the global option `robots_policy`. Servers with the same
// storage tell each other which crawlers have read which robots.txt. A crawler's violation is
// then found on any server, and after a restart.
type Fleet struct {
	// The server's name in the fleet, which must be unique. Default: the name of the host.
	Node string `json:"name,omitempty"`

	// How often this server writes what it knows. It reads what the others know half as often
	// again, and in a large fleet after a second for each server. Default: 20s.
	Interval caddy.Duration `json:"interval,omitempty"`

	// Divides every limit of a policy among the servers that are alive. Where a balancer sends
	// a crawler to one server, it is then limited early. Default: each server has the whole
	// limit.
	SharedLimits bool `json:"shared_limits,omitempty"`

	storage certmagic.Storage
}

// CaddyModule returns the Caddy module information.
func (*Fleet) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "robots_policy.options.fleet", New: func() caddy.Module { return new(Fleet) }}
}

// Provision implements caddy.Provisioner.
func (f *Fleet) Provision(ctx caddy.Context) error {
	f.storage = ctx.Storage()
	return f.check()
}

// check applies the defaults, and reports what cannot be.
func (f *Fleet) check() error {
	if f.Node == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("the name of this server is not known: give fleet a name (%w)", err)
		}
		f.Node = name
	}
	if strings.ContainsAny(f.Node, "/\\:*?\"<>|") || strings.HasPrefix(f.Node, ".") || len(f.Node) > 100 {
		return fmt.Errorf("invalid name %q of a server in fleet: must be a word such as web-17, as it becomes part of a key in the storage", f.Node)
	}
	f.Interval = cmp.Or(f.Interval, caddy.Duration(20*time.Second))
	if time.Duration(f.Interval) < time.Second {
		return errors.New("invalid interval of fleet: must be 1s or more")
	}
	return nil
}

// running is the exchange of the process, for as long as a configuration has one. What it
// knows outlives reloads.
var running struct {
	sync.Mutex
	settings optional.Latest[Fleet]
	exchange *exchange
}

// Start begins the exchange, or changes its settings.
func (f *Fleet) Start() error {
	running.Lock()
	defer running.Unlock()
	running.settings.Add(f)
	if running.exchange == nil {
		running.exchange = newExchange(running.settings.Get)
	}
	return nil
}

// Cleanup ends the exchange if no other configuration has one.
func (f *Fleet) Cleanup() error {
	running.Lock()
	defer running.Unlock()
	running.settings.Remove(f)
	if running.exchange != nil && running.settings.Get() == nil {
		running.exchange.close(f)
		running.exchange = nil
		handler.ShareLimits(1)
	}
	return nil
}

// UnmarshalCaddyfile sets up the option from Caddyfile tokens. Syntax:
//
//	fleet [<name>] {
//	    interval <duration>
//	    shared_limits
//	}
func (f *Fleet) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	d.Args(&f.Node)
	if d.NextArg() {
		return d.Err("fleet takes one argument, the name of this server")
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		switch name := d.Val(); name {
		case "interval":
			value := ""
			if !d.AllArgs(&value) {
				return d.Err("interval takes one argument")
			}
			interval, err := caddy.ParseDuration(value)
			if err != nil || interval < time.Second {
				return d.Errf("invalid interval %q: must be a duration of 1s or more, such as 20s", value)
			}
			f.Interval = caddy.Duration(interval)
		case "shared_limits":
			if f.SharedLimits = true; d.NextArg() {
				return d.Err("shared_limits takes no arguments")
			}
		default:
			return d.Errf("unrecognized option '%s' of fleet: must be interval or shared_limits", name)
		}
	}
	return nil
}

var (
	_ caddy.Provisioner     = (*Fleet)(nil)
	_ caddy.CleanerUpper    = (*Fleet)(nil)
	_ caddyfile.Unmarshaler = (*Fleet)(nil)
)
