// SPDX-License-Identifier: Apache-2.0

// Command chain measures handlers inside one Caddy process, without sockets. Each compared configuration, called a row,
// is one server of this Caddy. A handler that answers from memory replaces reverse_proxy. The servers are called in
// turn, in short batches. The command can detect differences of about 50 ns, whereas proxies under load only show
// differences of microseconds. It does not include the costs of the kernel and the connections.
//
// It prints its results as JSON. The command `bench` runs this command.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/bench/internal/workload"
)

func main() {
	scenarios := flag.String("scenarios", "", "names of the scenarios, with commas between them")
	rounds := flag.Int("rounds", 60, "batches of each row")
	batch := flag.Duration("batch", 5*time.Millisecond, "length of a batch")
	profiles := flag.String("profile", "", "write a CPU profile of this module for each scenario into this folder, and measure nothing")
	flag.Parse()
	if err := run(strings.Split(*scenarios, ","), *rounds, *batch, *profiles); err != nil {
		fmt.Fprintln(os.Stderr, "chain:", err)
		os.Exit(1)
	}
}

func run(names []string, rounds int, batch time.Duration, profiles string) error {
	scenarios, err := workload.ByName(names)
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(1)
	dir, err := os.MkdirTemp("", "robots-policy-chain-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	rows := workload.ChainRows
	if profiles != "" {
		rows = slices.DeleteFunc(rows, func(r workload.ChainRow) bool { return r.Policy != &workload.Small })
	}
	handlers, err := load(dir, rows)
	if err != nil {
		return err
	}
	defer caddy.Stop()
	if profiles != "" {
		return profile(handlers[0], scenarios, profiles)
	}
	// Collect garbage only between the measurements, because collections during a batch would affect some rows by
	// chance.
	debug.SetGCPercent(-1)
	var results []workload.ChainResult
	for i := range scenarios {
		results = append(results, measure(handlers, &scenarios[i], rounds, batch)...)
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

// profile writes a CPU profile of each scenario on the handler h to a folder.
func profile(h handler, scenarios []workload.Scenario, dir string) error {
	for i := range scenarios {
		c := newClient(&scenarios[i])
		c.learn(h)
		f, err := os.Create(filepath.Join(dir, scenarios[i].Name+".pprof"))
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		for end := cpuNow() + 5*time.Second; cpuNow() < end; { // five seconds of CPU time, because a profile samples CPU time
			c.batch(h, 20)
		}
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// sample holds the average costs of a request in a batch of requests.
type sample struct {
	nanos, allocs, octets float64
}

func measure(handlers []handler, s *workload.Scenario, rounds int, batch time.Duration) (results []workload.ChainResult) {
	clients, sizes := make([]*client, len(handlers)), make([]int, len(handlers))
	samples := make([][]sample, len(handlers))
	for i, h := range handlers {
		clients[i] = newClient(s)
		clients[i].learn(h)
		clients[i].batch(h, 200)
		one := clients[i].batch(h, 200).nanos
		sizes[i] = max(1, int(float64(batch.Nanoseconds())/one))
	}
	for round := range rounds {
		runtime.GC()
		for n := range handlers {
			i := (n + round) % len(handlers)
			clients[i].batch(handlers[i], max(1, sizes[i]/20)) // fills the caches before the measurement
			samples[i] = append(samples[i], clients[i].batch(handlers[i], sizes[i]))
		}
	}
	base := summary(samples[0])
	for i, h := range handlers {
		own := summary(samples[i])
		results = append(results, workload.ChainResult{
			Scenario: s.Name, Row: h.row.Name, Nanos: own.nanos, More: own.nanos - base.nanos,
			Allocs: own.allocs, MoreAllocs: own.allocs - base.allocs, MoreOctets: own.octets - base.octets,
			Status: clients[i].status, Size: clients[i].size,
		})
	}
	return results
}

// summary returns the lower quartile of the times, because other programs can only make the times longer. For all other
// numbers, it returns the median.
func summary(samples []sample) sample {
	at := func(q float64, value func(sample) float64) float64 {
		var values []float64
		for _, s := range samples {
			values = append(values, value(s))
		}
		slices.Sort(values)
		return values[int(q*float64(len(values)-1))]
	}
	return sample{
		nanos:  at(0.25, func(s sample) float64 { return s.nanos }),
		allocs: at(0.5, func(s sample) float64 { return s.allocs }),
		octets: at(0.5, func(s sample) float64 { return s.octets }),
	}
}
