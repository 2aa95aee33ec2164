// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"syscall"
)

// peakMemory returns the peak memory of a process that has ended, in bytes.
func peakMemory(s *os.ProcessState) int64 {
	if r, ok := s.SysUsage().(*syscall.Rusage); ok {
		return r.Maxrss << 10
	}
	return 0
}
