// SPDX-License-Identifier: Apache-2.0

// Command bench compares Caddy with this module, Caddy without this module, and alternatives. It builds the programs
// and runs them on loopback. If nginx is installed, it runs nginx as well. It measures CPU time per request,
// throughput, latency and memory in one interleaved run. docs/contributing/benchmarks.md describes the measurements and
// how to read them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/bench/internal/workload"
)

// options are the values of the flags.
type options struct {
	rows, scenarios string
	rounds, parts   int
	duration, limit time.Duration
	maxForeign      float64
	paired, chain   bool
	profile, out    string
	binary          bool
	sameBinary      bool // for tests, which build only one program: bare rows also run the binary with the module
}

// cpus is the number of CPUs, including those that this process does not use.
var cpus = runtime.NumCPU()

func main() {
	var o options
	flag.StringVar(&o.rows, "rows", "", "names of the rows, with commas between them (default all; the bases of rows are added)")
	flag.StringVar(&o.scenarios, "scenarios", "", "names of the scenarios, with commas between them (default all)")
	flag.IntVar(&o.rounds, "rounds", 20, "windows of each pair")
	flag.IntVar(&o.parts, "parts", 2, "times that all proxies are started afresh")
	flag.DurationVar(&o.duration, "duration", 300*time.Millisecond, "length of a window")
	flag.DurationVar(&o.limit, "limit", 8*time.Minute, "when to measure no more, builds not counted")
	flag.Float64Var(&o.maxForeign, "max-foreign", 0.15, "share of the machine that others may use before a window is repeated")
	flag.BoolVar(&o.paired, "paired", false, "measure only the CPU time of pairs")
	flag.BoolVar(&o.chain, "chain", false, "measure only handlers inside one process")
	flag.BoolVar(&o.binary, "binary", false, "measure what it costs to have the module linked, in as many layouts of the programs as there are parts")
	flag.StringVar(&o.profile, "profile", "", "write CPU profiles of the handlers into this folder, and measure nothing")
	flag.StringVar(&o.out, "out", "", "write report.md and report.json into this folder")
	flag.Parse()
	if o.binary {
		o.paired = true
		if o.scenarios == "" {
			o.scenarios = "json,page"
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// run runs the benchmarks that the options select. If a row did not do all of its work, run returns an error after it
// has written the report.
func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "robots-policy-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	names := strings.Split(o.scenarios, ",")
	if o.scenarios == "" {
		names = nil
		for _, s := range workload.Scenarios {
			names = append(names, s.Name)
		}
	}
	scenarios, err := workload.ByName(names)
	if err != nil {
		return err
	}
	rep := newReport(o)
	var failed error
	switch {
	case o.profile != "":
		_, err := runChain(ctx, dir, names, "-profile", o.profile)
		return err
	case !o.chain:
		if failed = compare(ctx, o, scenarios, dir, rep); failed != nil && !errors.Is(failed, errWork) {
			return failed
		}
	}
	if !o.paired {
		if rep.Chain, err = runChain(ctx, dir, names); err != nil {
			return err
		}
	}
	fmt.Println(rep.markdown())
	return errors.Join(failed, rep.write(o))
}

// errWork means that a row of this module did not do all of the measured work.
var errWork = errors.New("not all work was done")

// compare runs all rows in several parts. Each part starts the proxies again, because the results depend on where a
// proxy's memory happens to be.
func compare(ctx context.Context, o options, scenarios []workload.Scenario, dir string, rep *report) error {
	rows, binaries, err := prepare(ctx, o, dir, rep)
	if err != nil {
		return err
	}
	rep.Rows = rows
	pinned, err := pinSelf()
	if err != nil {
		return err
	}
	if !pinned.own {
		rep.note("The machine has one CPU: the load shares it with the proxies.")
	}
	site, err := startOrigin()
	if err != nil {
		return err
	}
	defer site.Close()
	m := &meter{duration: o.duration, maxForeign: o.maxForeign, repeats: o.rounds * len(scenarios)}
	res, until := newResults(), time.Now().Add(o.limit)
	var lacks []string
	for part := range o.parts {
		work, err := res.part(ctx, m, rows, scenarios, o, part, until, func(r *row) error {
			return r.start(ctx, pinned, binaries[part%len(binaries)], site.Addr().String(), filepath.Join(dir, fmt.Sprint(part)))
		})
		if err != nil {
			return err
		}
		if part == 0 {
			rep.Work = work
			for _, w := range work {
				if find(rows, w.Row).policy != nil {
					lacks = append(lacks, w.missing()...)
				}
			}
		}
	}
	rep.take(res, rows, scenarios)
	if len(lacks) > 0 {
		return fmt.Errorf("%w:\n%s", errWork, strings.Join(lacks, "\n"))
	}
	return nil
}

// prepare chooses the rows and builds their programs. Each map in binaries has the paths of the programs. With the flag
// -binary, there is one map for each part of the run, because each part uses other binaries. Without it, a single map
// is for all parts.
func prepare(ctx context.Context, o options, dir string, rep *report) (rows []*row, binaries []map[string]string, err error) {
	if !o.binary {
		if rows, err = chooseRows(o.rows, rep); err != nil {
			return nil, nil, err
		}
		all, err := buildAll(ctx, o, dir, rep)
		return rows, []map[string]string{all}, err
	}
	for layout := range o.parts {
		fmt.Fprintf(os.Stderr, "linking layout %d of %d\n", layout+1, o.parts)
		all, err := buildPrograms(ctx, dir, layout, rep)
		if err != nil {
			return nil, nil, err
		}
		binaries = append(binaries, all)
	}
	return binaryRows(), binaries, nil
}

// part starts the programs of all rows, and does one part of the measurements. After the time until, it does not begin
// further measurements.
func (res *results) part(ctx context.Context, m *meter, rows []*row, scenarios []workload.Scenario, o options, part int, until time.Time, start func(*row) error) (all []*work, err error) {
	defer func() {
		for _, r := range rows {
			r.stop()
		}
	}()
	for _, r := range rows {
		if err := start(r); err != nil {
			return nil, err
		}
	}
	for _, r := range rows {
		if !o.paired && r.only == "" && time.Now().Before(until) {
			use, err := streaming(ctx, r)
			if err != nil {
				return nil, err
			}
			res.memory[r.Name] = append(res.memory[r.Name], use)
		}
		w, err := r.check(scenarios)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	if part == 0 {
		fmt.Fprintln(os.Stderr, workTable(all, scenarios))
	}
	for i := range scenarios {
		fmt.Fprintf(os.Stderr, "part %d of %d: %s\n", part+1, o.parts, scenarios[i].Name)
		rounds := (o.rounds + o.parts - 1 - part) / o.parts
		if err := res.scenario(ctx, m, rows, &scenarios[i], part, rounds, !o.paired, until); err != nil {
			return nil, err
		}
	}
	return all, nil
}
