// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "time"

var start = time.Now()

// cpuNow is the time of the clock, where the CPU time is not available.
func cpuNow() time.Duration { return time.Since(start) }
