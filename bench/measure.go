// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/bench/internal/workload"
)

// The constant settle is the time between the start of a load and its measurement. For streams, both this time and the
// measurement are streamSlow times as long. With shorter times, only the beginning of each stream would be measured.
const (
	settle     = 60 * time.Millisecond
	streamSlow = 4
)

// window holds the measurements of one proxy in a period of time.
type window struct {
	requests  float64
	cpu, wall time.Duration
	latencies []time.Duration
}

// micros returns the CPU time per request, in µs.
func (w *window) micros() float64 {
	return float64(w.cpu.Nanoseconds()) / 1e3 / max(w.requests, 1e-9)
}

// meter measures rows under load.
type meter struct {
	duration   time.Duration // length of a window
	maxForeign float64
	repeats    int // windows that may still be repeated
}

// together sends load to several rows at the same time, and measures all of them in the same window. It also returns
// the share of the machine that other programs used. If other programs used too much, together measures again, at most
// twice, and returns the least disturbed window.
func (m *meter) together(ctx context.Context, rows []*row, s *workload.Scenario, conns int) (best []window, foreign float64, err error) {
	for try := 0; ; try++ {
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		windows, f, err := m.once(rows, s, conns)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", s.Name, err)
		}
		if best == nil || f < foreign {
			best, foreign = windows, f
		}
		if foreign <= m.maxForeign || try == 2 || m.repeats == 0 {
			return best, foreign, nil
		}
		m.repeats--
	}
}

func (m *meter) once(rows []*row, s *workload.Scenario, conns int) (windows []window, foreign float64, err error) {
	var loads []*load
	defer func() {
		for i, l := range loads {
			if stopped := l.stop(); stopped != nil && err == nil {
				err = fmt.Errorf("%s: %w", rows[i].Name, stopped)
			}
		}
	}()
	for _, r := range rows {
		l, err := startLoad(r.addr(), s.Requests(r.etag), conns, r.wants[s.Name])
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", r.Name, err)
		}
		loads = append(loads, l)
	}
	wait, duration := settle, m.duration
	if s.Stream {
		wait, duration = streamSlow*wait, streamSlow*duration
	}
	time.Sleep(wait)
	before, err := m.look(rows, loads, s)
	if err != nil {
		return nil, 0, err
	}
	for _, l := range loads {
		l.timing.Store(true)
	}
	after := before
	// On a busy machine, the window is extended until there are enough answers to compute a ratio.
	for n := 0; n < 10 && (n == 0 || after.fewest(before) < enough); n++ {
		time.Sleep(duration)
		if after, err = m.look(rows, loads, s); err != nil {
			return nil, 0, err
		}
	}
	own := after.self - before.self
	for i := range rows {
		w := window{requests: after.counts[i] - before.counts[i], cpu: after.cpu[i] - before.cpu[i], wall: after.at.Sub(before.at)}
		if w.requests <= 0 {
			return nil, 0, fmt.Errorf("%s answered nothing in %v", rows[i].Name, w.wall)
		}
		own += w.cpu
		windows = append(windows, w)
	}
	for i, l := range loads {
		if err := l.stop(); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", rows[i].Name, err)
		}
		windows[i].latencies = l.latencies()
	}
	others := float64(after.machine-before.machine-own) / float64(after.at.Sub(before.at)) / float64(cpus)
	return windows, min(max(0, others), 1), nil
}

// sight holds the values of all counters at one time.
type sight struct {
	at            time.Time
	counts        []float64
	cpu           []time.Duration
	self, machine time.Duration
}

// enough is the smallest number of answers that a ratio needs.
const enough = 4

// fewest returns the number of answers that the slowest row has sent between before and l.
func (l sight) fewest(before sight) float64 {
	n := math.Inf(1)
	for i := range l.counts {
		n = min(n, l.counts[i]-before.counts[i])
	}
	return n
}

func (m *meter) look(rows []*row, loads []*load, s *workload.Scenario) (l sight, err error) {
	l.at = time.Now()
	for i, r := range rows {
		used, err := cpuTime(r.pid())
		if err != nil {
			return l, fmt.Errorf("%s: %w", r.Name, err)
		}
		l.counts, l.cpu = append(l.counts, loads[i].count(s.Stream)), append(l.cpu, used)
	}
	if l.self, err = cpuTime(os.Getpid()); err != nil {
		return l, err
	}
	l.machine, err = machineTime()
	return l, err
}
