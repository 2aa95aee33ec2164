// SPDX-License-Identifier: Apache-2.0

// Package storecmd has the subcommands of `caddy robots-policy` that open an activity
// store. It links SQLite, so only the package console imports it.
package storecmd

import (
	"context"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/internal/cli"
)

func init() {
	cli.RegisterStore(func(ctx context.Context, dir string) (cli.Store, error) { return store.OpenReader(ctx, dir) })
	cli.Register(forgetCommand)
	cli.Register(demoCommand)
}
