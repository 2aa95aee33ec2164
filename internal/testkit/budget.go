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

// The budget of reading what comes from elsewhere, for any input within the limits of size.
const (
	BudgetMemory = 64 << 20
	BudgetCPU    = 2 * time.Second
)

// Budget calls f a few times, and fails a test if it needs more memory than BudgetMemory at
// any moment, or more time of an idle machine's processor than BudgetCPU. The test must not
// run in parallel. Under the race detector f is called once, and nothing is measured.
func Budget(t *testing.T, f func()) {
	t.Helper()
	Within(t, BudgetMemory, BudgetCPU, f)
}

// Within is Budget with other limits.
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
		used = memory(f, 5) // so that garbage hardly counts
	}
	t.Logf("%.1f MB, %s of a processor", float64(used)/1e6, cpu)
	if used > limit {
		t.Errorf("%d MB, want at most %d", used>>20, limit>>20)
	}
	if cpu > most {
		t.Errorf("%s of a processor, want at most %s", cpu, most)
	}
}

// memory returns the most bytes of the heap that f needs, garbage included: up to that
// percentage of the memory in use.
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

// slowness returns how much longer than on an idle machine a fixed task takes now, because
// other programs may share the processor.
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

// heap returns the bytes of the heap in use.
func heap() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
