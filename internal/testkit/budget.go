// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// The budget of reading what comes from elsewhere, for any input within the limits of size.
const (
	BudgetMemory = 64 << 20
	BudgetCPU    = 2 * time.Second
)

// Budget fails a test if f needs more memory than BudgetMemory at any moment, or more time
// of a processor than BudgetCPU. The test must not run in parallel. Under the race detector
// only f runs.
func Budget(t *testing.T, f func()) {
	t.Helper()
	if raceEnabled {
		f()
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(5)) // so that garbage hardly counts
	runtime.GC()
	before, most := heap(), uint64(0)
	done, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				most = max(most, heap())
			}
		}
	}()
	began := cpuTime()
	f()
	cpu := cpuTime() - began
	close(done)
	<-sampled
	used := int64(max(most, before) - before)
	t.Logf("%.1f MB, %s of a processor", float64(used)/1e6, cpu.Round(time.Millisecond))
	if used > BudgetMemory {
		t.Errorf("%d MB, want at most %d", used>>20, BudgetMemory>>20)
	}
	if cpu > BudgetCPU {
		t.Errorf("%s of a processor, want at most %s", cpu, BudgetCPU)
	}
}

// heap is how many bytes of the heap are in use.
func heap() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// cpuTime is how much time goroutines have run, without that of the garbage collector,
// which Budget makes run all the time.
func cpuTime() time.Duration {
	runtime.GC() // it brings the figure up to date
	s := []metrics.Sample{{Name: "/cpu/classes/user:cpu-seconds"}}
	metrics.Read(s)
	return time.Duration(s[0].Value.Float64() * float64(time.Second))
}
