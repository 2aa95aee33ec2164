// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// standingOf reads the text and the versions of a policy from a storage.
func standingOf(ctx context.Context, storage source.Storage, key string) (*source.Standing, error) {
	limited, stop := context.WithTimeout(ctx, storageTimeout)
	defer stop()
	return source.StandingOf(limited, storage, key)
}

func historyCommand() *cobra.Command {
	var of storageOf
	var asJSON bool
	var text string
	cmd := Command("history storage:KEY", "Lists the versions of a policy in Caddy's storage, with times, authors and notes",
		exactly(1, "storage:KEY", func(cmd *cobra.Command, args []string) error {
			key, err := storageKey("storage:KEY", args[0])
			if err != nil {
				return err
			}
			ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
			defer cancel()
			storage, err := of.open(ctx)
			if err != nil {
				return err
			}
			st, err := standingOf(ctx, storage, key)
			if err == nil && len(st.History) == 0 {
				err = fmt.Errorf("%s has no history, because no version was published at %s", args[0], storage.place(key))
			}
			if err != nil {
				return failure{err}
			}
			if text != "" {
				return writeText(cmd.OutOrStdout(), st, text)
			}
			return printResult(cmd, asJSON, st.History, func(w io.Writer) error { return writeHistory(w, st) })
		}))
	cmd.Long = `
Lists the latest versions of the policy at KEY in Caddy's storage, at most 20. The newest
version comes first. A version that another program wrote to the storage has no author. The
column "served" shows when a server first loaded the version. "publish --undo" and "publish
--version" can only go back to versions that were served.`
	cmd.Example = `  caddy robots-policy history storage:robots_policy/site.yaml
  caddy robots-policy history storage:robots_policy/site.yaml --text v2 > v2.yaml`
	of.flags(cmd, "the Caddy configuration that sets the storage (default: ./Caddyfile, or else Caddy's default storage)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the versions as JSON, with their texts")
	cmd.Flags().StringVar(&text, "text", "", "print the text of this `VERSION`, such as v2")
	return cmd
}

// versionNumber parses the number of a version, such as v3 or 3.
func versionNumber(version string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(version, "v"))
	if err != nil || n < 1 {
		return 0, fmt.Errorf("invalid version %q: must be a number such as v3; the command \"history\" lists the versions", version)
	}
	return n, nil
}

func writeText(out io.Writer, st *source.Standing, version string) error {
	n, err := versionNumber(version)
	if err != nil {
		return err
	}
	if v := st.Version(n); v != nil {
		_, err := io.WriteString(out, v.Text)
		return err
	}
	return failure{fmt.Errorf("the history has no version v%d", n)}
}

func writeHistory(out io.Writer, st *source.Standing) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "version\ttime (UTC)\tserved (UTC)\tauthor\tsha256\tnote")
	known := false
	for i := range st.History {
		v := &st.History[i]
		name, served, note := v.Label(), "-", english.OneLine(v.Note)
		if v.SHA256 == st.SHA256 && !known {
			name, known = name+" *", true
		}
		if !v.Served.IsZero() {
			served = stamp(v.Served)
		}
		if v.Undo {
			note = strings.TrimSuffix("undo: "+note, ": ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.12s\t%s\n", name, stamp(v.Time), served, cmp.Or(english.OneLine(v.By), "-"), v.SHA256, note)
	}
	if !known {
		fmt.Fprintf(w, "*\t-\t-\t-\t%.12s\twritten to the storage by another program\n", cmp.Or(st.SHA256, "-"))
	}
	fmt.Fprintln(w, "* is the version in the storage now")
	return w.Flush()
}
