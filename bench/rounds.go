// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/bench/internal/workload"
)

// pair holds the results of a row and its base, measured at the same time.
type pair struct {
	ratio      float64 // CPU time per request: the row's divided by the base's
	base, ours float64 // CPU time per request, µs
	foreign    float64
	part       int
}

// solo holds the results of a row that ran alone on its CPU in one round.
type solo struct {
	rate     float64 // answers per second under full load
	p50, p99 float64 // latency under full load, µs
	unloaded float64 // latency of one connection, median, µs
}

type cell struct{ row, scenario string }

// results holds all measured figures, in the order of measurement. The lists in solos have one element for each round,
// so that the figures of two rows in the same round can be compared.
type results struct {
	pairs  map[cell][]pair
	solos  map[cell][]solo
	memory map[string][]memoryUse
	short  bool // the time limit passed before all rounds were measured
}

func newResults() *results {
	return &results{pairs: map[cell][]pair{}, solos: map[cell][]solo{}, memory: map[string][]memoryUse{}}
}

// scenario measures one scenario with rows whose programs are running. In each round, it measures every row together
// with its base, and begins with a different row. If alone is true, it also measures each row alone.
func (res *results) scenario(ctx context.Context, m *meter, rows []*row, s *workload.Scenario, part, rounds int, alone bool, until time.Time) error {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r *row) bool { return r.only != "" && r.only != s.Name })
	warm := *m
	warm.duration, warm.maxForeign = 200*time.Millisecond, 1
	for _, r := range rows {
		if _, _, err := warm.together(ctx, []*row{r}, s, s.Conns); err != nil {
			return err
		}
	}
	if s.Stream {
		rounds = (rounds + 1) / 2
	}
	for round := range rounds {
		for i := range rows {
			r := rows[(i+round)%len(rows)]
			base := find(rows, r.base(s.Name))
			if base == nil || r.coarse && round%3 != 0 {
				continue
			}
			if time.Now().After(until) {
				res.short = true
				return nil
			}
			w, foreign, err := m.together(ctx, []*row{base, r}, s, s.Conns)
			if err != nil {
				return err
			}
			at := cell{r.Name, s.Name}
			res.pairs[at] = append(res.pairs[at], pair{w[1].micros() / w[0].micros(), w[0].micros(), w[1].micros(), foreign, part})
		}
	}
	if !alone || s.Stream {
		return nil // streams are not measured alone
	}
	return res.alone(ctx, m, rows, s, until)
}

func (res *results) alone(ctx context.Context, m *meter, rows []*row, s *workload.Scenario, until time.Time) error {
	if time.Now().After(until) {
		res.short = true
		return nil
	}
	for _, r := range rows {
		full, _, err := m.together(ctx, []*row{r}, s, s.Conns)
		if err != nil {
			return err
		}
		one, _, err := m.together(ctx, []*row{r}, s, 1)
		if err != nil {
			return err
		}
		micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
		latencies := each(full[0].latencies, micros)
		at := cell{r.Name, s.Name}
		res.solos[at] = append(res.solos[at], solo{
			rate: full[0].requests / full[0].wall.Seconds(),
			p50:  quantile(latencies, 0.5), p99: quantile(latencies, 0.99),
			unloaded: median(each(one[0].latencies, micros)),
		})
	}
	return nil
}

func find(rows []*row, name string) *row {
	i := slices.IndexFunc(rows, func(r *row) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return rows[i]
}
