// SPDX-License-Identifier: Apache-2.0

package storecmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/internal/cli"
)

// forgetCommand deletes rows of an activity store.
func forgetCommand() *cobra.Command {
	var crawler, host string
	cmd := cli.Command("forget DIR [--crawler NAME] [--host HOST]", "Deletes what an activity store has about a crawler or a host",
		func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return errors.New("expected DIR, the directory of the activity store")
			case crawler == "" && host == "":
				return errors.New("give --crawler, --host, or both")
			}
			ctx := context.Background()
			r, err := store.OpenReader(ctx, args[0]) // it fails if there is no store
			if err != nil {
				return err
			}
			if err := r.Close(); err != nil {
				return err
			}
			s, err := store.Open(ctx, args[0], store.Options{})
			if err != nil {
				return fmt.Errorf("%w; stop Caddy first", err)
			}
			if err := errors.Join(s.Delete(ctx, crawler, host), s.Close()); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "deleted")
			return err
		})
	cmd.Long = `
Deletes all totals of a crawler, of a host, or of a crawler on a host from the activity
store in a directory. Caddy must not be running with it.`
	cmd.Flags().StringVar(&crawler, "crawler", "", "the crawler, by its product token")
	cmd.Flags().StringVar(&host, "host", "", "the host")
	return cmd
}
