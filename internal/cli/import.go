// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/internal/cli/policyinput"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

func importCommand() *cobra.Command {
	cmd := Command("import ROBOTS.TXT | URL | -", "Converts a robots.txt to a policy file that says the same",
		exactly(1, "ROBOTS.TXT or its URL", func(cmd *cobra.Command, args []string) error {
			raw, err := policyinput.ReadRaw(cmd.Context(), args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			if raw.None {
				return failure{errors.New(raw.Note)}
			}
			c, err := policyinput.Convert(raw.Name, raw.Data)
			if errors.Is(err, policyinput.ErrInvalid) {
				return failure{err}
			}
			if err != nil {
				return err
			}
			if raw.Note != "" {
				fmt.Fprintln(cmd.ErrOrStderr(), raw.Note)
			}
			q := c.Judge(raw.Name, raw.Data)
			losses := q.SearchLosses()
			if len(losses) > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "Search engines lose: %s\n", english.Some(losses, 3))
			}
			writeNotes(cmd.ErrOrStderr(), raw.Name, c.Notes)
			if _, err = cmd.OutOrStdout().Write(c.Text); err != nil {
				return err
			}
			if err := q.WriteText(cmd.ErrOrStderr()); err != nil {
				return err
			}
			if !q.Complete || len(losses) > 0 {
				return errReported
			}
			return nil
		}))
	cmd.Long = `
Prints a policy file with the same meaning as the robots.txt for every crawler, as
Google's crawlers read it. It keeps the comments and adds tests for search engines. A
line that cannot be taken over is reported. At the end, a reader that shares no code
with the conversion compares the robots.txt with the one that the policy produces. It
prints the number of different answers, and the lines that cause them.

The URL of a site stands for its /robots.txt. Redirects are followed.

The exit code is:
  0  success
  1  search engines lose a path (the first line says which), the input is not a
     robots.txt (a web page, an empty file, a policy file, status 404), or it is too
     large to compare the two
  2  the input cannot be read, and nothing is printed`
	cmd.Example = `  caddy robots-policy import robots.txt > site-policy.yaml
  caddy robots-policy import https://www.example.com/ > site-policy.yaml`
	return cmd
}
