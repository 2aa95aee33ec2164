// SPDX-License-Identifier: Apache-2.0

// Package storecmd has the subcommands of `caddy robots-policy` that open an activity database. Only the package
// console imports this package, so that a Caddy without the console does not contain SQLite.
package storecmd

import (
	"context"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/activity/store/clickhouse"
	"github.com/robotspolicy/caddy-robots-policy/internal/cli"
)

func init() {
	cli.RegisterStore(openStore)
	cli.Register(forgetCommand)
	cli.Register(schemaCommand)
	cli.Register(demoCommand)
}

// openStore opens the database in a directory, or a fleet database at a URL.
func openStore(ctx context.Context, name string) (cli.Store, error) {
	if !strings.Contains(name, "://") {
		return store.OpenReader(ctx, name)
	}
	c, err := clickhouse.Parse(name)
	if err != nil {
		return nil, err
	}
	return fleet{&store.FleetReader{Client: *c}}, nil
}

type fleet struct{ *store.FleetReader }

// Close does nothing, because each query is a separate request.
func (fleet) Close() error { return nil }
