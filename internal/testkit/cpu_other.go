// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package testkit

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// cpuTime returns the time during which goroutines have run.
func cpuTime() time.Duration {
	runtime.GC() // a collection updates the metric
	s := []metrics.Sample{{Name: "/cpu/classes/user:cpu-seconds"}}
	metrics.Read(s)
	return time.Duration(s[0].Value.Float64() * float64(time.Second))
}
