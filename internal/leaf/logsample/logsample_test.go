// SPDX-License-Identifier: Apache-2.0

package logsample

import (
	"strconv"
	"testing"
	"time"
)

var start = time.Unix(1_800_000_000, 0)

func TestSampler(t *testing.T) {
	t.Parallel()
	var s Sampler[int]
	logged, skipped := 0, 0
	for range first + 2*then + 7 {
		if ok, n := s.Sample(1, start); ok {
			logged++
			skipped += n
		}
	}
	if logged != first+2 || skipped != 2*(then-1) {
		t.Errorf("%d lines logged, %d reported as skipped", logged, skipped)
	}
	if ok, _ := s.Sample(2, start); !ok {
		t.Error("a line of another kind was skipped")
	}
	if ok, n := s.Sample(1, start.Add(window)); !ok || n != 7 {
		t.Errorf("in the next window: %v, %d skipped", ok, n)
	}
}

func TestSamplerIsBounded(t *testing.T) {
	t.Parallel()
	var s Sampler[int]
	logged := 0
	for i := range 10 * maxKeys {
		if ok, _ := s.Sample(i+1, start); ok {
			logged++
		}
		if len(s.counts) > maxKeys+1 {
			t.Fatalf("%d kinds are counted", len(s.counts))
		}
	}
	if logged > maxKeys+first+10*maxKeys/then {
		t.Errorf("%d lines logged", logged)
	}
}

func TestOnce(t *testing.T) {
	t.Parallel()
	var o Once
	if !o.First("a") || o.First("a") || !o.First("b") {
		t.Error("a message is not logged exactly once")
	}
	logged := 0
	for i := range 10 * maxOnce {
		if o.First(strconv.Itoa(i)) {
			logged++
		}
	}
	if logged != maxOnce-2 {
		t.Errorf("%d more messages logged", logged)
	}
}
