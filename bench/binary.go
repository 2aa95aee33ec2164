// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/bench/internal/workload"
)

// The module has two costs: the program is larger, and the handler takes time. The flag -binary measures both. The
// benchmark then compares Caddy alone, Caddy with the unused module, Caddy with the unused module and console, and
// Caddy with the module in use. All of them are built from the go.mod of this repository. The order of functions in
// memory can make a program a few percent faster or slower, so each program is linked in several layouts.

// programs lists the programs to compare, each with the packages that its main package imports in addition to Caddy.
var programs = []struct {
	name    string
	imports []string
}{
	{"stock", nil},
	{"linked", []string{"github.com/robotspolicy/caddy-robots-policy"}},
	{"console", []string{"github.com/robotspolicy/caddy-robots-policy", "github.com/robotspolicy/caddy-robots-policy/console"}},
}

func binaryRows() []*row {
	return []*row{
		{Name: "stock", What: "Caddy", server: "stock", template: "bare.Caddyfile"},
		{Name: "stock-again", What: "the same again: shows the noise", Base: "stock", server: "stock", template: "bare.Caddyfile"},
		{Name: "linked", What: "with the module linked and not used", Base: "stock", server: "linked", template: "bare.Caddyfile"},
		{Name: "console", What: "with module and console linked and not used", Base: "stock", server: "console", template: "bare.Caddyfile"},
		{
			Name: "in-use", What: "with both in use", Base: "console", server: "console", template: "policy.Caddyfile", policy: &workload.Small,
		},
	}
}

// buildPrograms links all programs in one layout, and returns the paths of the binaries by program. Layout 0 is the
// linker's own layout, and each other number shuffles the functions in a different way.
func buildPrograms(ctx context.Context, dir string, layout int, rep *report) (map[string]string, error) {
	dir = filepath.Join(dir, fmt.Sprintf("layout-%d", layout))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := filepath.Abs("..")
	if err != nil {
		return nil, err
	}
	flags := "-s -w"
	if layout > 0 {
		flags += fmt.Sprintf(" -randlayout=%d", layout)
	}
	binaries := map[string]string{}
	for _, p := range programs {
		source := filepath.Join(dir, p.name+".go")
		overlay := filepath.Join(dir, p.name+".json")
		pkg := "cmd/bench-" + p.name // this package exists only in the overlay
		replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, pkg, "main.go"): source}})
		if err != nil {
			return nil, err
		}
		var text strings.Builder
		text.WriteString("package main\n\nimport (\n\tcaddycmd \"github.com/caddyserver/caddy/v2/cmd\"\n\t_ \"github.com/caddyserver/caddy/v2/modules/standard\"\n")
		for _, i := range p.imports {
			fmt.Fprintf(&text, "\t_ %q\n", i)
		}
		text.WriteString(")\n\nfunc main() { caddycmd.Main() }\n")
		for name, content := range map[string]string{source: text.String(), overlay: string(replace)} {
			if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
				return nil, err
			}
		}
		if binaries[p.name], err = build(ctx, dir, root, "./"+pkg, "-ldflags="+flags, "-overlay="+overlay); err != nil {
			return nil, err
		}
	}
	rep.Machine.Caddy, rep.Machine.Revision = caddyVersion(binaries["console"]), revision(ctx)
	return binaries, nil
}

// layoutSummary compares the CPU time of a row with the CPU time of its base, over all layouts.
type layoutSummary struct {
	Scenario string    `json:"scenario"`
	Row      string    `json:"row"`
	Base     string    `json:"base"`
	Ratio    float64   `json:"ratio"` // median of Layouts
	Error    float64   `json:"error"` // standard error of Ratio
	Layouts  []float64 `json:"layouts"`
}

// sumLayouts computes the median ratio of the pairs in each layout, and the median of these medians. A ratio is a row's
// CPU time per request divided by the CPU time of its base.
func sumLayouts(r *row, scenario string, pairs []pair) layoutSummary {
	s := layoutSummary{Scenario: scenario, Row: r.Name, Base: r.Base}
	for layout := 0; ; layout++ {
		var ratios []float64
		for _, p := range pairs {
			if p.part == layout {
				ratios = append(ratios, p.ratio)
			}
		}
		if len(ratios) == 0 {
			break
		}
		s.Layouts = append(s.Layouts, median(ratios))
	}
	s.Ratio, s.Error = median(s.Layouts), medianError(s.Layouts)
	return s
}

func (rep *report) layoutTable() string {
	var lines [][]string
	for _, s := range rep.Layouts {
		each := make([]string, len(s.Layouts))
		for i, ratio := range s.Layouts {
			each[i] = fmt.Sprintf("%.3f", ratio)
		}
		lines = append(lines, []string{s.Scenario, "`" + s.Row + "`", s.Base, fmt.Sprintf("**%.3f** ± %.3f", s.Ratio, s.Error), strings.Join(each, " ")})
	}
	if len(lines) == 0 {
		return ""
	}
	return table([]string{"scenario", "row", "base", "CPU over the base", "in each layout, the linker's own first"}, lines)
}
