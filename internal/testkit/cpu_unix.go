// SPDX-License-Identifier: Apache-2.0

//go:build unix

package testkit

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // cannot happen for the current process
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
