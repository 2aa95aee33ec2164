// SPDX-License-Identifier: Apache-2.0

// Package fleet lets servers that share Caddy's storage exchange messages. A message says which robots.txt each crawler
// has read on the server that wrote it. The messages also show how many servers there are.
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
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/block"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
)

func init() { caddy.RegisterModule(new(Fleet)) }

// Fleet is the option `fleet` of the global option `robots_policy`. Servers with the same storage tell each other which
// crawlers have read which robots.txt. So a server detects violations by a crawler even if the crawler has read
// robots.txt on a different server, or before a restart.
type Fleet struct {
	// The server's name in the fleet, which must be unique. Default: the name of the host.
	Node string `json:"name,omitempty"`

	// How often this server writes its message. It reads the messages of the other servers less often: the time between
	// two reads is one and a half times this interval. In a large fleet, it reads at most one message a second.
	// Default: 20s.
	Interval caddy.Duration `json:"interval,omitempty"`

	// Divides every rate limit of a policy among the running servers. If a load balancer sends a crawler to only
	// one server, the crawler is then limited too early. Default: each server applies the whole limit.
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

// check applies the defaults, and returns an error if a setting is not valid.
func (f *Fleet) check() error {
	if f.Node == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("the name of this host cannot be determined; write a name after \"fleet\" (%w)", err)
		}
		f.Node = name
	}
	if strings.ContainsAny(f.Node, "/\\:*?\"<>|") || strings.HasPrefix(f.Node, ".") || len(f.Node) > 100 {
		return fmt.Errorf("invalid server name %q after \"fleet\": must be a word such as web-17, because it becomes a part of a storage key", f.Node)
	}
	f.Interval = cmp.Or(f.Interval, caddy.Duration(20*time.Second))
	if time.Duration(f.Interval) < time.Second {
		return errors.New("invalid interval of fleet: must be 1s or more")
	}
	return nil
}

// running holds the exchange of this process while a configuration needs it. Its data survive reloads.
var running struct {
	sync.Mutex
	settings optional.Latest[Fleet]
	exchange *exchange
}

// Start begins the exchange, or changes the settings of the running exchange.
func (f *Fleet) Start() error {
	running.Lock()
	defer running.Unlock()
	running.settings.Add(f)
	if running.exchange == nil {
		running.exchange = newExchange(running.settings.Get)
	}
	return nil
}

// Cleanup ends the exchange if no other configuration needs it.
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
	return block.Read(d, block.Duration("interval", &f.Interval, time.Second, "a duration of 1s or more, such as 20s"), block.Flag("shared_limits", &f.SharedLimits))
}

var (
	_ caddy.Provisioner     = (*Fleet)(nil)
	_ caddy.CleanerUpper    = (*Fleet)(nil)
	_ caddyfile.Unmarshaler = (*Fleet)(nil)
)
