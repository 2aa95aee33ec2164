// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
)

func verifyEvidenceCommand() *cobra.Command {
	var asJSON bool
	cmd := Command("verify-evidence DIR", "Checks that an evidence log is whole and was not changed",
		exactly(1, "DIR", func(cmd *cobra.Command, args []string) error {
			c, err := evidence.Verify(args[0])
			if err != nil {
				return err
			}
			err = printResult(cmd, asJSON, c, func(out io.Writer) error {
				_, err := io.WriteString(out, checkText(c))
				return err
			})
			if err != nil || len(c.Problems) == 0 {
				return err
			}
			return errReported
		}))
	cmd.Long = `
Checks the chain of hashes of an evidence log, the texts that were published, and the
signatures of the days that have ended.

The exit code is 0 if the log is whole, 1 if it was changed, and 2 if it cannot be
read.`
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return cmd
}

// checkText says what a check found, what that proves, and what it does not.
func checkText(c *evidence.Check) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("Events: %d, in files: %d, from %s to %s.", c.Events, c.Files, c.First.UTC().Format(time.RFC3339), c.Last.UTC().Format(time.RFC3339))
	if len(c.Problems) > 0 {
		line("The log was changed or damaged:")
		for _, p := range c.Problems {
			line("  %s", p)
		}
		return b.String()
	}
	line("Every line follows the one before: none was changed, removed or added in between.")
	if !c.FromStart {
		line("The log does not begin at its first event: earlier files were deleted for their age, or are missing.")
	}
	if c.Omitted > 0 {
		line("Events left out because their day's file was full: %d.", c.Omitted)
	}
	if c.Signed > 0 {
		line("Signed files: %d, by the key %s. Nobody without that key has changed them since.", c.Signed, strings.Join(c.Keys, " or "))
	}
	if n := len(c.Unsigned); n > 0 {
		line("Files of past days without a signature: %d. Whoever can write to them can make a new chain.", n)
	}
	line("This does not prove when the lines were written, nor what was not written.")
	return b.String()
}
