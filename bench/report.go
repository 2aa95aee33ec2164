// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/bench/internal/workload"
)

// report holds the results of a run. Times are in µs, memory is in octets.
type report struct {
	Date     time.Time              `json:"date"`
	Machine  machine                `json:"machine"`
	Settings string                 `json:"settings"`
	Notes    []string               `json:"notes,omitempty"`
	Rows     []*row                 `json:"rows,omitempty"`
	Work     []*work                `json:"work,omitempty"`
	Pairs    []pairSummary          `json:"pairs,omitempty"`
	Layouts  []layoutSummary        `json:"layouts,omitempty"` // results of the flag -binary, by layout of the programs
	Solos    []soloSummary          `json:"alone,omitempty"`
	Memory   []memorySummary        `json:"memory,omitempty"`
	Chain    []workload.ChainResult `json:"chain,omitempty"`

	scenarios []workload.Scenario
}

type machine struct {
	CPU      string `json:"cpu"`
	CPUs     int    `json:"cpus"`
	System   string `json:"system"`
	Go       string `json:"go"`
	Caddy    string `json:"caddy"`
	Revision string `json:"revision"` // Git revision of this module
}

// pairSummary compares a row with its base. More is the additional CPU time of the row.
type pairSummary struct {
	Scenario  string  `json:"scenario"`
	Row       string  `json:"row"`
	Base      string  `json:"base"`
	Windows   int     `json:"windows"`
	BaseCPU   float64 `json:"base_cpu"`
	CPU       float64 `json:"cpu"`
	Ratio     float64 `json:"ratio"`
	Error     float64 `json:"error"` // standard error of the ratio
	More      float64 `json:"more_cpu"`
	MoreError float64 `json:"more_cpu_error"`
	Foreign   float64 `json:"foreign_cpu"` // share of the machine that other programs used; median
	Worst     float64 `json:"foreign_cpu_worst"`
}

// soloSummary holds the results of a row that ran alone. The fields whose names end in X are ratios to bare Caddy in
// the same round.
type soloSummary struct {
	Scenario  string  `json:"scenario"`
	Row       string  `json:"row"`
	Rate      float64 `json:"rate"`
	RateX     float64 `json:"rate_x"`
	P50       float64 `json:"p50"`
	P99       float64 `json:"p99"`
	P50X      float64 `json:"p50_x"`
	P99X      float64 `json:"p99_x"`
	Unloaded  float64 `json:"unloaded"`
	UnloadedX float64 `json:"unloaded_x"`
}

type memorySummary struct {
	Row        string        `json:"row"`
	Start      time.Duration `json:"start_ns"`
	Idle       float64       `json:"idle"`
	Peak       float64       `json:"peak"`
	PerStream  float64       `json:"per_stream"`
	PerStreamX float64       `json:"per_stream_x"` // ratio to bare Caddy
	PeakX      float64       `json:"peak_x"`
}

func newReport(o options) *report {
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		kernel = nil
	}
	return &report{
		Date:     time.Now().UTC().Truncate(time.Minute),
		Settings: fmt.Sprintf("%d windows of %v for each pair, in %d parts", o.rounds, o.duration, o.parts),
		Machine: machine{
			CPU: cpuModel(), CPUs: cpus, System: strings.TrimSpace(runtime.GOOS + " " + string(kernel)),
			Go: runtime.Version(), Caddy: "unknown", Revision: "unknown",
		},
	}
}

func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func (rep *report) note(text string) {
	rep.Notes = append(rep.Notes, text)
	fmt.Fprintln(os.Stderr, "bench:", text)
}

// take adds the summaries of the results to the report.
func (rep *report) take(res *results, rows []*row, scenarios []workload.Scenario) {
	rep.scenarios = scenarios
	if res.short {
		rep.note("Time was up before all rounds were done.")
	}
	for _, s := range scenarios {
		for _, r := range rows {
			at := cell{r.Name, s.Name}
			if pairs := res.pairs[at]; len(pairs) > 0 {
				rep.Pairs = append(rep.Pairs, sumPairs(r, s.Name, pairs))
				if rows[0].Name == "stock" {
					rep.Layouts = append(rep.Layouts, sumLayouts(r, s.Name, pairs))
				}
			}
			if solos := res.solos[at]; len(solos) > 0 {
				rep.Solos = append(rep.Solos, sumSolos(r, s.Name, solos, res.solos[cell{bareRow, s.Name}]))
			}
		}
	}
	for _, r := range rows {
		if uses := res.memory[r.Name]; len(uses) > 0 {
			rep.Memory = append(rep.Memory, sumMemory(r, uses, res.memory[bareRow]))
		}
	}
}

func sumPairs(r *row, scenario string, pairs []pair) pairSummary {
	ratios := each(pairs, func(p pair) float64 { return p.ratio })
	foreign := each(pairs, func(p pair) float64 { return p.foreign })
	s := pairSummary{
		Scenario: scenario, Row: r.Name, Base: r.base(scenario), Windows: len(pairs),
		BaseCPU: median(each(pairs, func(p pair) float64 { return p.base })), CPU: median(each(pairs, func(p pair) float64 { return p.ours })),
		Ratio: median(ratios), Error: medianError(ratios), Foreign: median(foreign), Worst: quantile(foreign, 1),
	}
	s.More, s.MoreError = (s.Ratio-1)*s.BaseCPU, s.Error*s.BaseCPU
	return s
}

func sumSolos(r *row, scenario string, solos, bare []solo) soloSummary {
	rate, p50 := func(s solo) float64 { return s.rate }, func(s solo) float64 { return s.p50 }
	p99, one := func(s solo) float64 { return s.p99 }, func(s solo) float64 { return s.unloaded }
	// over returns the ratio of the row's value, such as p99, to the value of bare Caddy. It is the median of all rounds.
	over := func(value func(solo) float64) float64 {
		var ratios []float64
		for i := range min(len(solos), len(bare)) {
			ratios = append(ratios, value(solos[i])/value(bare[i]))
		}
		return median(ratios)
	}
	return soloSummary{
		Scenario: scenario, Row: r.Name, Rate: median(each(solos, rate)), RateX: over(rate),
		P50: median(each(solos, p50)), P50X: over(p50), P99: median(each(solos, p99)), P99X: over(p99),
		Unloaded: median(each(solos, one)), UnloadedX: over(one),
	}
}

func sumMemory(r *row, uses, bare []memoryUse) memorySummary {
	idle, peak := func(m memoryUse) float64 { return float64(m.idle) }, func(m memoryUse) float64 { return float64(m.peak) }
	s := memorySummary{
		Row: r.Name, Start: r.Start, Idle: median(each(uses, idle)), Peak: median(each(uses, peak)),
		PerStream: median(each(uses, memoryUse.perStream)),
	}
	if len(bare) > 0 {
		s.PerStreamX = s.PerStream / median(each(bare, memoryUse.perStream))
		s.PeakX = s.Peak / median(each(bare, peak))
	}
	return s
}

// write writes the report to files in the folder o.out, if the options name one.
func (rep *report) write(o options) error {
	if o.out != "" {
		if err := os.MkdirAll(o.out, 0o755); err != nil {
			return err
		}
		text, err := json.MarshalIndent(rep, "", "\t")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.out, "report.json"), append(text, '\n'), 0o644); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.out, "report.md"), []byte(rep.markdown()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
