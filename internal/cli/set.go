// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/textdiff"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/wholefile"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site/edit"
)

func setCommand() *cobra.Command {
	var host string
	var intended, write, yes bool
	cmd := Command("set FILE WHO allow|ask|block|slow|snippet [USAGE|N] [PATH|RATE]", "Writes one decision into a policy file, and changes as little of its text as possible",
		between(3, 5, "FILE, WHO, what to do, and a path, a rate or a number", func(cmd *cobra.Command, args []string) error {
			if write && args[0] == "-" {
				return errors.New("the standard input cannot be changed; save it as a file first")
			}
			do, place, err := decisionIn(args[2:])
			if err != nil {
				return err
			}
			c, err := edit.NewChoice(args[1], do, place, host, intended)
			if err != nil {
				return err
			}
			data, err := readFile(cmd, args[0])
			if err != nil {
				return err
			}
			r, err := edit.Apply(fileName(args[0]), string(data), c, time.Now())
			if invalid, ok := errors.AsType[*edit.InvalidError](err); ok {
				_ = report(cmd, invalid.Diagnostics)
				return failure{errors.New("nothing was written: the file would have the errors above")}
			}
			if err != nil {
				return failure{err}
			}
			out := cmd.OutOrStdout()
			if err := errors.Join(writeEdit(out, string(data), c, r), report(cmd, r.Diagnostics)); err != nil {
				return err
			}
			switch loss := r.Diff.Losses; {
			case r.Text == string(data):
				return nil
			case !write:
				fmt.Fprintln(out, "\nNothing is written yet. To change the file, add --write.")
				return nil
			case !yes && loss != nil && len(loss.Found) > 0:
				return failure{errors.New("not written, because search engines would lose something (see above); to write it anyway, add --yes")}
			case !yes && !r.Diff.Complete:
				return failure{errors.New("not written, because the policies are too large to show all changes; to write it anyway, add --yes")}
			}
			if err := replaceFile(args[0], r.Text); err != nil {
				return err
			}
			fmt.Fprintf(out, "\nWritten to %s.\n", args[0])
			return nil
		}))
	cmd.Long = `
Adds a decision to a policy file. Without --write, the command does not change the file. It
only shows the lines that would change, and the effect on crawlers. Comments, order and
layout stay as they are.

WHO is everyone, the name of a crawler, category:NAME or operator:NAME. The decisions:
  allow PATH      WHO may crawl PATH
  ask PATH        robots.txt asks WHO not to crawl PATH
  block PATH      robots.txt asks WHO not to crawl PATH, and the server blocks WHO there
  slow RATE       WHO may make requests at this rate, such as 60/m; "slow none" removes
                  the limit
  snippet N       WHO may show N characters of a page in search results
  ask USAGE PATH  WHO is asked not to use PATH for USAGE, as in: ask train-ai /news/
Without a PATH, the decision is for the whole site.

If search engines would lose something, --write changes the file only with --yes. Without
--yes, the exit code is then 1.`
	cmd.Example = `  caddy robots-policy set site-policy.yaml GPTBot block
  caddy robots-policy set site-policy.yaml category:search allow /members/ --write
  caddy robots-policy set site-policy.yaml AhrefsBot slow 60/m --write
  caddy robots-policy set site-policy.yaml everyone snippet 160
  caddy robots-policy set site-policy.yaml everyone ask / --host staging.example.com --intended`
	cmd.Flags().StringVar(&host, "host", "", "apply the decision to this `HOST` only")
	cmd.Flags().BoolVar(&intended, "intended", false, "mark the rule as intended to keep out search engines or link previews")
	cmd.Flags().BoolVar(&write, "write", false, "write the change to the file")
	cmd.Flags().BoolVar(&yes, "yes", false, "write the change even if search engines lose something")
	return cmd
}

// decisionIn splits args into a decision, and the path or rate after it, which may be missing. The decision can consist
// of two words, as in "ask train-ai" and "snippet 160".
func decisionIn(args []string) (do edit.Action, place string, err error) {
	word, rest := args[0], args[1:]
	if len(rest) > 0 {
		if _, usage := policy.ParseUsage(rest[0]); usage || edit.Action(word) == edit.Snippet {
			word, rest = word+" "+rest[0], rest[1:]
		}
	}
	if len(rest) > 1 {
		return "", "", fmt.Errorf("only one path or rate can follow %q, not %q", word, rest)
	}
	return edit.Action(word), strings.Join(rest, ""), nil
}

// writeEdit prints the lines that an edit changes, and the effects of these changes.
func writeEdit(w io.Writer, before string, c edit.Choice, r *edit.Result) error {
	if r.Text == before {
		_, err := fmt.Fprintln(w, "The policy already has this decision, so nothing changes.")
		return err
	}
	rows, ok := textdiff.Rows(before, r.Text)
	if !ok {
		fmt.Fprintln(w, "(too many lines to show)")
	}
	line := 1
	for _, row := range rows {
		if text := cmp.Or(row.Old, row.New); row.Kind != "same" {
			fmt.Fprintf(w, "%4d %s %s\n", line, map[string]string{"ins": "+", "del": "-"}[row.Kind], text)
		}
		if row.Kind != "del" {
			line++
		}
	}
	fmt.Fprintln(w)
	if err := r.Diff.WriteText(w); err != nil {
		return err
	}
	for i := range r.Unmet {
		fmt.Fprintf(w, "The decision does not fully apply to %s: %s.\n", c.Who, r.Unmet[i].String())
	}
	return nil
}

// replaceFile replaces the content of a file and keeps the file's mode. If name is a symbolic link, replaceFile
// replaces the file that the link points to. A server that watches the file never reads a partial file.
func replaceFile(name, text string) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	return wholefile.Write(name, []byte(text), info.Mode().Perm())
}
