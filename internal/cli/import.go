// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/internal/cli/policyinput"
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
			writeNotes(cmd.ErrOrStderr(), raw.Name, c.Notes)
			if _, err = cmd.OutOrStdout().Write(c.Text); err != nil {
				return err
			}
			q := c.Judge(raw.Name, raw.Data)
			if err := q.WriteText(cmd.ErrOrStderr()); err != nil {
				return err
			}
			if !q.Complete {
				return errReported
			}
			return nil
		}))
	cmd.Long = `
Prints a policy file that says to every crawler what the robots.txt says, as Google's
crawlers read it, with its comments, and with tests for search engines. What
cannot be taken over is reported with its line. At the end, a reader that shares no code
with the conversion is asked about the robots.txt and about the one that the policy is
served as: how many questions differ, and by which lines.

The URL of a site stands for its /robots.txt. Redirects are followed.

The exit code is 0 on success, 1 if there is no robots.txt in it (a web page, an empty
file, a policy file, status 404) or it is too large to judge whether the two say the
same, and 2 if it cannot be read; then nothing is printed.`
	cmd.Example = `  caddy robots-policy import robots.txt > site-policy.yaml
  caddy robots-policy import https://www.example.com/ > site-policy.yaml`
	return cmd
}
