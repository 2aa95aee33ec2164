// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/bench/internal/workload"
)

// table returns a table in Markdown. head has the cells of the first line, and lines has the cells of all other lines.
func table(head []string, lines [][]string) string {
	var b strings.Builder
	b.WriteString("| " + strings.Join(head, " | ") + " |\n|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, l := range lines {
		b.WriteString("| " + strings.Join(l, " | ") + " |\n")
	}
	return b.String()
}

// markdown returns the report as Markdown.
func (rep *report) markdown() string {
	m := rep.Machine
	var b strings.Builder
	fmt.Fprintf(&b, "Measured %s on %d CPUs (%s), %s, %s, Caddy %s, this module at %s; %s.\n", rep.Date.Format("2006-01-02 15:04 UTC"),
		m.CPUs, m.CPU, m.System, m.Go, m.Caddy, m.Revision, rep.Settings)
	for _, n := range rep.Notes {
		b.WriteString("\n" + n + "\n")
	}
	section := func(title, text string) {
		if text != "" {
			b.WriteString("\n### " + title + "\n\n" + text)
		}
	}
	section("Targets", rep.targets())
	section("The rows", rep.rows())
	if len(rep.Work) > 0 {
		section("What each row did", workTable(rep.Work, rep.scenarios))
	}
	section("Programs, in several layouts", rep.layoutTable())
	section("CPU time per request, compared with the base", rep.pairTable())
	section("Throughput and latency, alone", rep.soloTable())
	section("Memory: 64 slow readers of 10 MB", rep.memoryTable())
	section("Inside the process", rep.chainTable())
	return b.String()
}

// least returns the ratio of the row "least" to its base in a scenario, as text. It returns "" if the ratio was not
// measured.
func (rep *report) least(scenario string) string {
	for _, p := range rep.Pairs {
		if p.Scenario == scenario && p.Row == leastRow {
			return fmt.Sprintf("%.3f ± %.3f×", p.Ratio, p.Error)
		}
	}
	return ""
}

// noise returns how far the measured ratio of the row againRow to its base is from 1 in a scenario. Both have the same
// configuration, so the difference is an error of measurement.
func (rep *report) noise(scenario string) float64 {
	for _, p := range rep.Pairs {
		if p.Scenario == scenario && p.Row == againRow {
			return math.Abs(p.Ratio - 1)
		}
	}
	return 0
}

// targets compares the targets with the results. A target is missed if the result is above it by more than two standard
// errors, and by more than the noise.
func (rep *report) targets() string {
	var lines [][]string
	add := func(what, target string, found, err, noise, limit float64, unit, least string) {
		verdict := "met"
		switch {
		case found > limit+max(2*err, noise):
			verdict = "**missed**"
		case found > limit:
			verdict = "within the noise"
		}
		value := fmt.Sprintf("%.2f", found)
		if unit == "×" {
			value = fmt.Sprintf("%.3f", found)
		}
		if err > 0 {
			value += fmt.Sprintf(" ± %.3f", err)
		}
		lines = append(lines, []string{what, target, value + unit, verdict, least})
	}
	for _, p := range rep.Pairs {
		i := slices.IndexFunc(workload.Scenarios, func(s workload.Scenario) bool { return s.Name == p.Scenario })
		s, noise := workload.Scenarios[i], rep.noise(p.Scenario)
		switch {
		case p.Row == ourRow && s.TargetMicros > 0:
			add(s.What, fmt.Sprintf("≤ +%.0f µs", s.TargetMicros), p.More, p.MoreError, noise*p.BaseCPU, s.TargetMicros, " µs", "")
		case p.Row == unusedRow:
			add(s.Name+": module and console linked and not used, over bare Caddy", "≤ 1.005×", p.Ratio, p.Error, noise, 1.005, "×", "")
		case p.Row == ourRow:
			add(s.What+", over "+p.Base, fmt.Sprintf("≤ %.3f×", s.Target), p.Ratio, p.Error, noise*p.Ratio, s.Target, "×",
				rep.least(p.Scenario))
		case p.Base == ourRow:
			add(s.Name+" with 10,000 rules, over the small policy", "≤ 1.02×", p.Ratio, p.Error, noise, 1.02, "×", "")
		}
	}
	for _, c := range rep.Chain {
		if c.Row == ourRow && c.Scenario == "json" {
			add("json, inside the process", "≤ 0.6 µs", c.More/1000, 0, 0, 0.6, " µs", "")
			add("json, allocations", "≤ 2", c.MoreAllocs, 0, 0, 2, "", "")
		}
	}
	for _, m := range rep.Memory {
		if m.Row == ourRow {
			add("64 slow readers of 10 MB, memory added", "≤ 1.1×", m.PerStreamX, 0, 0, 1.1, "×", "")
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return table([]string{"", "target", "found", "", "`least`"}, lines)
}

func (rep *report) rows() string {
	var lines [][]string
	for _, r := range rep.Rows {
		lines = append(lines, []string{"`" + r.Name + "`", r.What, r.Base})
	}
	if len(lines) == 0 {
		return ""
	}
	return table([]string{"row", "what it is", "base"}, lines)
}

// workTable returns a table of the work that the rows did. It has a line for each row and a column for each scenario.
func workTable(all []*work, scenarios []workload.Scenario) string {
	head := []string{"row"}
	for _, s := range scenarios {
		head = append(head, s.Name)
	}
	var lines [][]string
	for _, w := range all {
		line := []string{"`" + w.Row + "`"}
		for _, s := range scenarios {
			line = append(line, w.Did[s.Name])
		}
		lines = append(lines, line)
	}
	return table(head, lines)
}

func (rep *report) pairTable() string {
	var lines [][]string
	for _, p := range rep.Pairs {
		lines = append(lines, []string{
			p.Scenario, "`" + p.Row + "`", p.Base, fmt.Sprintf("%.1f", p.BaseCPU), fmt.Sprintf("%.1f", p.CPU),
			fmt.Sprintf("**%.3f** ± %.3f", p.Ratio, p.Error), fmt.Sprintf("%+.1f ± %.1f", p.More, p.MoreError),
			fmt.Sprintf("%.0f %%, %.0f %%", 100*p.Foreign, 100*p.Worst),
		})
	}
	if len(lines) == 0 {
		return ""
	}
	return table([]string{"scenario", "row", "base", "base µs", "row µs", "ratio", "more µs", "others' CPU: median, worst"}, lines)
}

func (rep *report) soloTable() string {
	var lines [][]string
	for _, s := range rep.Solos {
		lines = append(lines, []string{
			s.Scenario, "`" + s.Row + "`", fmt.Sprintf("%.0f", s.Rate), fmt.Sprintf("%.2f×", s.RateX),
			fmt.Sprintf("%.0f, %.0f", s.P50, s.P99), fmt.Sprintf("%.2f×, %.2f×", s.P50X, s.P99X), fmt.Sprintf("%.0f", s.Unloaded), fmt.Sprintf("%.2f×", s.UnloadedX),
		})
	}
	if len(lines) == 0 {
		return ""
	}
	return table([]string{"scenario", "row", "answers/s", "over `caddy`", "p50, p99 µs", "over `caddy`", "one connection, p50 µs", "over `caddy`"}, lines)
}

func (rep *report) memoryTable() string {
	var lines [][]string
	for _, m := range rep.Memory {
		lines = append(lines, []string{
			"`" + m.Row + "`", fmt.Sprintf("%.2f", m.Start.Seconds()), fmt.Sprintf("%.1f", m.Idle/(1<<20)),
			fmt.Sprintf("%.1f", m.Peak/(1<<20)), fmt.Sprintf("%.2f×", m.PeakX), fmt.Sprintf("%.0f", m.PerStream/(1<<10)), fmt.Sprintf("%.2f×", m.PerStreamX),
		})
	}
	if len(lines) == 0 {
		return ""
	}
	return table([]string{"row", "start, s", "idle MB", "peak MB", "over `caddy`", "added KB per stream", "over `caddy`"}, lines)
}

func (rep *report) chainTable() string {
	var lines [][]string
	for _, c := range rep.Chain {
		lines = append(lines, []string{
			c.Scenario, "`" + c.Row + "`", fmt.Sprintf("%.0f", c.Nanos), fmt.Sprintf("%+.0f", c.More),
			fmt.Sprintf("%.1f", c.Allocs), fmt.Sprintf("%+.1f", c.MoreAllocs), fmt.Sprintf("%+.0f", c.MoreOctets), fmt.Sprintf("%d, %d octets", c.Status, c.Size),
		})
	}
	if len(lines) == 0 {
		return ""
	}
	return table([]string{"scenario", "row", "ns", "more ns", "allocations", "more", "more octets", "answer"}, lines)
}
