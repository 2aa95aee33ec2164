// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuNow returns the CPU time of this process.
func cpuNow() time.Duration {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) // does not fail for the process itself
	return time.Duration(t.Nano())
}
