// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/internal/cli/policyinput"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

func importCommand() *cobra.Command {
	cmd := Command("import ROBOTS.TXT | URL | -", "Converts a robots.txt to a policy file with the same meaning",
		exactly(1, "ROBOTS.TXT or its URL", func(cmd *cobra.Command, args []string) error {
			raw, c, err := convert(cmd, args[0])
			if err != nil {
				return fmt.Errorf("%w. No policy was written", err)
			}
			if raw.Note != "" {
				fmt.Fprintln(cmd.ErrOrStderr(), raw.Note)
			}
			q := c.Judge()
			losses := q.SearchLosses()
			if len(losses) > 0 {
				var lost []string
				for i := range losses {
					lost = append(lost, losses[i].What())
				}
				why := strings.TrimSuffix(" "+c.Imported.Stricter, " ")
				fmt.Fprintf(cmd.ErrOrStderr(), "Search engines lose %s.%s\n", english.Some(slices.Compact(lost), 3), why)
				for _, l := range losses[:min(len(losses), 3)] {
					fmt.Fprintf(cmd.ErrOrStderr(), "  %s\n", l.Says)
				}
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
Reads a robots.txt in the same way as Google's crawlers, and prints a policy file that has
the same meaning for every crawler. The command reports lines that it leaves out, and
lines whose meaning is different in the policy. The policy keeps the comments, and has
tests that check what search engines may crawl.

At the end, an independent parser compares this robots.txt with the robots.txt that the
policy produces. For many pairs of a crawler and a path, it asks whether each file lets the
crawler fetch the path. It also compares the preferences about AI and search in both files.
The command prints how many answers differ, and the lines that cause the differences. If
the answers differ for one spelling of a path, such as /a%3Ab, but not for another, such as
/a:b, the command counts the difference separately.

A robots.txt without lines lets crawlers fetch everything, so it becomes a policy without
rules.

If you give the URL of a site, the command reads its /robots.txt. It follows redirects.

The exit code is:
  0  success
  1  one of these is true:
     - Search engines may no longer crawl a path, or no longer show it in search results.
       The first line on standard error names the path. The exit code is not 1 if this only
       affects another spelling of a path, such as /a%3Ab for /a:b.
     - The input is not a robots.txt, but a web page or a policy file, or its status is 404.
     - The input cannot be converted, or is too large to be compared with the robots.txt
       that the policy produces.
  2  the input cannot be read, and nothing is printed`
	cmd.Example = `  caddy robots-policy import robots.txt > site-policy.yaml
  caddy robots-policy import https://www.example.com/ > site-policy.yaml`
	return cmd
}

// convert reads a robots.txt and converts it to a policy file.
func convert(cmd *cobra.Command, name string) (*policyinput.Raw, *policyinput.Converted, error) {
	raw, err := policyinput.ReadRobots(cmd.Context(), name, cmd.InOrStdin())
	if err != nil {
		return nil, nil, err
	}
	if raw.None {
		return nil, nil, failure{errors.New(raw.Note + "; so there is nothing to import")}
	}
	c, err := policyinput.Convert(raw.Name, raw.Data)
	if err != nil {
		return nil, nil, failure{err}
	}
	return raw, c, nil
}
