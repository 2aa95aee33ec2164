// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"runtime/metrics"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// BenchmarkLoad loads files of 1 MiB that are expensive to load. In the series of files with many rules, each file has
// twice as many rules as the previous one, and should take about twice as long. Peak-MB is the maximum heap size.
func BenchmarkLoad(b *testing.B) {
	files := policytest.Hostile(policyfile.MaxSize)
	files["1200-rules"] = policytest.ManyRules(1200)
	files["2400-rules"] = policytest.ManyRules(2400)
	files["4800-rules"] = policytest.ManyRules(4800)
	for name, data := range files {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			peak := watchHeap()
			for b.Loop() {
				if s, ds := site.Load("hostile.yaml", data); s == nil && len(ds) == 0 {
					b.Fatal("no site and no reason")
				}
			}
			b.ReportMetric(float64(peak())/(1<<20), "peak-MB")
		})
	}
}

// watchHeap samples the size of the heap. The returned function stops the sampling, and returns the largest sample in
// bytes.
func watchHeap() (stop func() uint64) {
	done, result := make(chan struct{}), make(chan uint64)
	go func() {
		var most uint64
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			select {
			case <-tick.C:
			case <-done:
				tick.Stop()
				result <- most
				return
			}
		}
	}()
	return func() uint64 {
		close(done)
		return <-result
	}
}
