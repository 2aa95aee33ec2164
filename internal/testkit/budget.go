// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"testing"
	"time"
)

// The limits of Budget. Code that reads input from outside, such as a file or a response, must not need more memory or
// processor time for any input that its size limit accepts.
const (
	BudgetMemory = 64 << 20
	BudgetCPU    = 2 * time.Second
)

// Budget calls f a few times. The test fails if f at any moment needs more memory than BudgetMemory, or if it needs
// more processor time on an idle machine than BudgetCPU. The test must not run in parallel. Under the race detector, f
// is called once, and nothing is measured.
func Budget(t *testing.T, f func()) {
	t.Helper()
	Within(t, BudgetMemory, BudgetCPU, f)
}

// Within is like Budget, with other limits: limit is in bytes, and most is processor time.
func Within(t *testing.T, limit int64, most time.Duration, f func()) {
	t.Helper()
	if raceEnabled {
		f()
		return
	}
	slow := slowness()
	began := cpuTime()
	f()
	cpu := cpuTime() - began
	cpu = time.Duration(float64(cpu) / max(1, (slow+slowness())/2)).Round(time.Millisecond)
	used := memory(f, 30)
	if used > limit {
		used = memory(f, 5) // collects garbage early, so that it adds little to the result
	}
	t.Logf("%.1f MB, %s of a processor", float64(used)/1e6, cpu)
	if used > limit {
		t.Errorf("%d MB, want at most %d", used>>20, limit>>20)
	}
	if cpu > most {
		t.Errorf("%s of a processor, want at most %s", cpu, most)
	}
}

// memory returns the difference, in bytes, between the largest size of the heap while f runs and its size before. The
// heap also contains values that are no longer used. The argument garbage limits these values to a percentage of the
// values in use, like GOGC.
func memory(f func(), garbage int) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(garbage))
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
	f()
	close(done)
	<-sampled
	return int64(max(most, before) - before)
}

// slowness returns the time of a fixed task now, divided by its time on an idle machine. It is more than 1 if other
// programs share the processor.
func slowness() float64 {
	const idle = 45 * time.Millisecond
	began := cpuTime()
	numbers := make([]uint32, 1<<19)
	x := uint32(1)
	for i := range numbers {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		numbers[i] = x
	}
	slices.Sort(numbers)
	return float64(cpuTime()-began) / float64(idle)
}

// heap returns the number of heap bytes in use.
func heap() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
