// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/bench/internal/workload"
)

// chooseRows returns the rows listed in names, and the rows that they are compared with. If names is "", it returns all
// rows. It leaves out the rows whose programs are not installed on this machine, and adds a note to the report.
func chooseRows(names string, rep *report) ([]*row, error) {
	all := allRows()
	var wanted []string
	for _, r := range all {
		if names == "" {
			wanted = append(wanted, r.Name)
		}
	}
	if names != "" {
		wanted = strings.Split(names, ",")
	}
	for i := 0; i < len(wanted); i++ {
		r := find(all, wanted[i])
		if r == nil {
			return nil, fmt.Errorf("there is no row %q", wanted[i])
		}
		for _, base := range []string{r.Base, r.refusing} {
			if base != "" {
				wanted = append(wanted, base)
			}
		}
	}
	_, missing := findNginx()
	if missing != nil {
		rep.note(missing.Error() + ": its rows are left out.")
	}
	return slices.DeleteFunc(all, func(r *row) bool {
		return !slices.Contains(wanted, r.Name) || r.server == "nginx" && missing != nil
	}), nil
}

// buildAll builds the programs for the rows. It returns the paths of their binaries, keyed by the name of the program
// (see row.server).
func buildAll(ctx context.Context, o options, dir string, rep *report) (binaries map[string]string, err error) {
	binaries = map[string]string{}
	if binaries["caddy"], err = build(ctx, dir, "..", "./cmd/caddy"); err != nil {
		return nil, err
	}
	binaries["barecaddy"] = binaries["caddy"]
	if !o.sameBinary {
		if binaries["barecaddy"], err = build(ctx, dir, ".", "./barecaddy"); err != nil {
			return nil, err
		}
	}
	if path, err := findNginx(); err == nil {
		binaries["nginx"] = path
	}
	rep.Machine.Caddy, rep.Machine.Revision = caddyVersion(binaries["caddy"]), revision(ctx)
	return binaries, nil
}

// runChain builds the command `chain` and runs it for the scenarios. The strings in more are passed as further flags.
func runChain(ctx context.Context, dir string, scenarios []string, more ...string) (results []workload.ChainResult, err error) {
	binary, err := build(ctx, dir, ".", "./chain")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, binary, append([]string{"-scenarios", strings.Join(scenarios, ",")}, more...)...)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "HOME="+dir, "TMPDIR="+dir) // so that no files are left if the process is killed
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("chain: %w\n%s", err, said.String())
	}
	if len(out) == 0 {
		return nil, nil // the command wrote profiles instead of results
	}
	return results, json.Unmarshal(out, &results)
}
