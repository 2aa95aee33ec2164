// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "time"

var start = time.Now()

// cpuNow returns the time since the start, because the CPU time is not available on this system.
func cpuNow() time.Duration { return time.Since(start) }
