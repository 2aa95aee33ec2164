// SPDX-License-Identifier: Apache-2.0

package storecmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/internal/cli"
)

// forgetCommand deletes rows of an activity database.
func forgetCommand() *cobra.Command {
	var crawler, host, clickHouse string
	cmd := cli.Command("forget DIR [--crawler NAME] [--host HOST]", "Deletes the request totals of a crawler or a host from an activity database",
		func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return errors.New("expected DIR, the directory of the activity database")
			case crawler == "" && host == "":
				return errors.New("no rows are selected; add --crawler, --host, or both")
			}
			ctx := context.Background()
			r, err := store.OpenReader(ctx, args[0]) // returns an error if there is no database
			if err != nil {
				return err
			}
			sends, err := r.Sends(ctx)
			if err := errors.Join(err, r.Close()); err != nil {
				return err
			}
			s, err := store.Open(ctx, args[0], store.Options{})
			if err != nil {
				return fmt.Errorf("%w; stop Caddy first", err)
			}
			if err := errors.Join(s.Delete(ctx, crawler, host), s.Close()); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if _, err = fmt.Fprintln(out, "deleted"); err != nil || clickHouse == "" && !sends {
				return err
			}
			statements := store.FleetForget(crawler, host)
			if clickHouse != "" {
				if err := apply(ctx, out, clickHouse, statements); err != nil {
					return err
				}
				_, err = fmt.Fprintln(out, "ClickHouse deletes the rows within minutes. But the other servers of the fleet still have today's rows in their activity databases, and send them to ClickHouse again. To delete these rows too, run this command with --clickhouse on each of these servers.")
				return err
			}
			_, err = fmt.Fprintf(out, "This server has sent totals to ClickHouse. To delete the same rows there, add --clickhouse, or run these statements in ClickHouse:\n%s;\n", strings.Join(statements, ";\n"))
			return err
		})
	cmd.Long = `
Deletes the stored numbers of requests (totals) of a crawler, a host, or a crawler on a
host from the activity database in a directory. Stop Caddy first. If the server sends
totals to ClickHouse, the command also prints the SQL statements that delete them there.
With --clickhouse, it runs these statements.`
	cmd.Flags().StringVar(&crawler, "crawler", "", "delete the totals of this crawler, named as in robots.txt, such as GPTBot")
	cmd.Flags().StringVar(&host, "host", "", "delete the totals of this host")
	cmd.Flags().StringVar(&clickHouse, "clickhouse", "", "also delete the totals in this ClickHouse, for all servers of the fleet: "+clickHouseAddress)
	return cmd
}
