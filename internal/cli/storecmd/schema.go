// SPDX-License-Identifier: Apache-2.0

package storecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/activity/store/clickhouse"
	"github.com/robotspolicy/caddy-robots-policy/internal/cli"
)

const clickHouseAddress = "http[s]://HOST:PORT/DATABASE?user=NAME&password_file=FILE"

// schemaCommand creates and prunes the tables of a fleet database.
func schemaCommand() *cobra.Command {
	var run, prune bool
	var hourly, daily int
	cmd := cli.Command("activity-schema [ADDRESS] [--apply] [--prune]", "Prints or runs the SQL that creates the ClickHouse tables for the request totals of several servers",
		func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1 || len(args) == 0 && (run || prune):
				return errors.New("expected one ADDRESS: " + clickHouseAddress)
			case hourly < 1 || daily < 1:
				return errors.New("--hourly-months and --months must be 1 or more")
			}
			if len(args) == 1 {
				if _, err := clickhouse.Parse(args[0]); err != nil {
					return err
				}
			}
			ctx, out := context.Background(), cmd.OutOrStdout()
			statements := store.FleetSchema()
			if prune {
				c, err := clickhouse.Parse(args[0])
				if err != nil {
					return err
				}
				now := time.Now()
				if statements, err = store.FleetPrune(ctx, c, now.AddDate(0, -hourly, 0), now.AddDate(0, -daily, 0)); err != nil {
					return err
				}
			}
			if run {
				return apply(ctx, out, args[0], statements)
			}
			_, err := fmt.Fprintf(out, "%s;\n", strings.Join(statements, ";\n"))
			return err
		})
	cmd.Long = `
Prints the SQL statements that create the ClickHouse tables in which several servers (a
fleet) store the totals of their requests. With --apply, the command runs the statements in
the database at ADDRESS, which must exist. Existing tables are not changed, so you can run
the command again with each new version of the program.

With --prune, the statements delete old rows. --hourly-months and --months set how many
months of rows are kept.

In ClickHouse, servers need the right to INSERT. The console and "replay --database" need
the right to SELECT. This command needs the rights to CREATE, ALTER and DROP.`
	cmd.Example = `  caddy robots-policy activity-schema 'https://clickhouse.example.net:8443/robots?user=admin&password_file=/etc/caddy/admin.password' --apply
  caddy robots-policy activity-schema http://localhost:8123/robots --prune --months 13 --apply`
	flags := cmd.Flags()
	flags.BoolVar(&run, "apply", false, "run the statements")
	flags.BoolVar(&prune, "prune", false, "delete the rows of old months instead of creating tables")
	flags.IntVar(&hourly, "hourly-months", 3, "with --prune: keep the hourly rows of this many months before the current month")
	flags.IntVar(&daily, "months", 13, "with --prune: keep the daily rows of this many months before the current month")
	return cmd
}

// apply runs statements in ClickHouse. It prints the beginning of each statement that it has run.
func apply(ctx context.Context, out io.Writer, address string, statements []string) error {
	c, err := clickhouse.Parse(address)
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if err := c.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%w\nThe statement was: %s", err, statement)
		}
		first, _, _ := strings.Cut(statement, " (")
		if _, err := fmt.Fprintln(out, "started: "+first); err != nil {
			return err
		}
	}
	return nil
}
