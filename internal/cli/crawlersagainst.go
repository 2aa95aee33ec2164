// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/publiclist"
)

// checkAgainst compares the catalogue with public collections: how many of their
// User-Agents it recognises, by kind, and which it does not.
func checkAgainst(out io.Writer, known *crawlers.Catalogue, files []string, asJSON bool) (int, error) {
	recognizer := crawlers.NewRecognizer(known.Patterns())
	reports := make([]publiclist.Report, len(files))
	for i, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return ExitUsage, err
		}
		list, err := publiclist.Parse(data)
		if err != nil {
			return ExitUsage, fmt.Errorf("%s: %w", name, err)
		}
		reports[i] = list.Compare(known, recognizer)
	}
	if asJSON {
		return caddy.ExitCodeSuccess, writeJSON(out, reports)
	}
	if err := publiclist.WriteTable(out, reports); err != nil {
		return ExitUsage, err
	}
	for _, r := range reports {
		if len(r.Missing) == 0 {
			continue
		}
		fmt.Fprintf(out, "\nnot recognised, of %s:\n", r.Format)
		for _, m := range r.Missing {
			fmt.Fprintf(out, "  %s (%s): %s\n", m.Name, strings.Join(m.Kinds, ", "), m.UserAgents[0])
		}
	}
	return caddy.ExitCodeSuccess, nil
}
