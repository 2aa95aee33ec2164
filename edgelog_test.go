// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

func TestSampler(t *testing.T) {
	s := new(sampler)
	now := time.Unix(1_800_000_000, 0)
	told, skipped := 0, 0
	for range sampleFirst + 2*sampleThen + 7 {
		if ok, n := s.take(sampleKey{crawler: 1}, now); ok {
			told++
			skipped += n
		}
	}
	if told != sampleFirst+2 || skipped != 2*(sampleThen-1) {
		t.Errorf("told %d, said of %d that they were not", told, skipped)
	}
	if ok, _ := s.take(sampleKey{crawler: 2}, now); !ok {
		t.Error("another crawler's line was not told")
	}
	if ok, n := s.take(sampleKey{crawler: 1}, now.Add(sampleWindow)); !ok || n != 7 {
		t.Errorf("a minute later: %v, %d not told before", ok, n)
	}
}

// A flood of different kinds of lines takes bounded memory and bounded lines.
func TestSamplerIsBounded(t *testing.T) {
	s := new(sampler)
	now := time.Unix(1_800_000_000, 0)
	told := 0
	for i := range 10 * maxSampleKeys {
		if ok, _ := s.take(sampleKey{crawler: policy.CrawlerID(i + 1)}, now); ok {
			told++
		}
		if len(s.counts) > maxSampleKeys+1 {
			t.Fatalf("%d kinds are kept", len(s.counts))
		}
	}
	if told > maxSampleKeys+sampleFirst+10*maxSampleKeys/sampleThen {
		t.Errorf("%d lines told", told)
	}
}
