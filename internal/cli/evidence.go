// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
)

func evidenceCommand() *cobra.Command {
	var crawler, host, since, until string
	var asJSON, withText bool
	cmd := Command("evidence DIR [--crawler NAME] [--since TIME]", "Shows what was published when, who read it, and what was fetched against it",
		exactly(1, "DIR", func(cmd *cobra.Command, args []string) error {
			q := evidence.Question{Crawler: crawler, Host: host, Paths: evidencePaths}
			if asJSON {
				q.Paths = 0
			}
			var err error
			if q.Since, err = parseTime("--since", since); err != nil {
				return err
			}
			if q.Until, err = parseTime("--until", until); err != nil {
				return err
			}
			check, err := evidence.Verify(args[0])
			if err != nil {
				return err
			}
			answer, err := evidence.Ask(args[0], q)
			if err != nil && len(check.Problems) == 0 {
				return err
			}
			if answer == nil {
				return failure{errors.New(check.Problems[0])}
			}
			result := struct {
				*evidence.Answer
				Problems []string `json:"problems"`
			}{answer, check.Problems}
			err = printResult(cmd, asJSON, result, func(w io.Writer) error { return writeEvidence(w, answer, check, withText) })
			if err != nil || len(check.Problems) == 0 {
				return err
			}
			return errReported
		}))
	cmd.Long = `
Shows what the evidence log in a directory (the option evidence of robots_policy) says:
which policy was in force when; when each robots.txt was first read by a crawler; which
crawlers read it, and how they were verified; and what they fetched although the robots.txt that they had read
disallows it.

The log is checked first, as by verify-evidence. The exit code is 0 if it is whole, 1 if it
was changed, and 2 if it cannot be read.`
	cmd.Example = `  caddy robots-policy evidence /var/lib/caddy/evidence --crawler GPTBot --since 30d
  caddy robots-policy evidence /var/lib/caddy/evidence --since 2026-11-01 --text`
	flags := cmd.Flags()
	flags.StringVar(&crawler, "crawler", "", "only this crawler, by its product token")
	flags.StringVar(&host, "host", "", "only this host")
	flags.StringVar(&since, "since", "", "from this day or time on, such as 2026-11-22 or 2026-11-22T10:00:00Z, or for a duration such as 30d")
	flags.StringVar(&until, "until", "", "before this day or time")
	flags.BoolVar(&withText, "text", false, "print the texts that were published")
	flags.BoolVar(&asJSON, "json", false, "print the answer as JSON, with all texts and paths")
	return cmd
}

// evidencePaths is how many paths the text names for each violation.
const evidencePaths = 5

func writeEvidence(w io.Writer, a *evidence.Answer, c *evidence.Check, withText bool) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, p := range c.Problems {
		line("NOT WHOLE: %s", p)
	}
	line("The log covers %s to %s. Times are UTC.", stamp(a.First), stamp(a.Last))
	if a.Omitted > 0 {
		line("%d events of this time did not fit into the log.", a.Omitted)
	}
	line("\nPublished:")
	for _, p := range a.Published {
		line("  %s (%s, sha256 %s)", publishedText(&p), p.Name, p.SHA256)
		if withText {
			line("%s", indent(p.Text))
		}
	}
	line("\nRead by crawlers: %s", none(len(a.Reads)))
	for _, r := range a.Reads {
		line("  %s (%s) read robots.txt %s of %s %s, first at %s, last at %s", r.Crawler, identityText(r.Identity), r.Robots, r.Host, times(r.Count), stamp(r.First), stamp(r.Last))
	}
	line("\nFetched against it: %s", none(len(a.Violations)))
	for _, v := range a.Violations {
		read := "read before this log begins"
		if !v.Read.IsZero() {
			read = "read at " + stamp(v.Read)
		}
		line("  %s (%s) on %s, against robots.txt %s, %s:", v.Crawler, identityText(v.Identity), v.Host, v.Robots, read)
		line("    %s from %s to %s; %d answered, %d refused", times(v.Count), stamp(v.First), stamp(v.Last), v.Served, v.Refused)
		for _, p := range v.Paths {
			line("    %d  %s", p.Count, p.Path)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// publishedText says when something was published. The log has a robots.txt from when
// a crawler first read it: what no crawler read is not in it.
func publishedText(p *evidence.Publication) string {
	if p.Kind != "robots" {
		until := "now"
		if !p.Until.IsZero() {
			until = stamp(p.Until)
		}
		return fmt.Sprintf("policy %s, in force from %s to %s", p.Version, stamp(p.From), until)
	}
	next := "no other since"
	if !p.Until.IsZero() {
		next = "another one at " + stamp(p.Until)
	}
	return fmt.Sprintf("robots.txt %s of %s, first read by a crawler at %s, %s", p.Version, p.Host, stamp(p.From), next)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

func none(n int) string {
	if n == 0 {
		return "nothing in the log"
	}
	return ""
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func indent(text string) string {
	return "    | " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    | ")
}

// identityText says how far a crawler's name can be relied on.
func identityText(i activity.Identity) string {
	if i == activity.Claimed {
		return "claimed, not verified"
	}
	return string(i)
}

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
