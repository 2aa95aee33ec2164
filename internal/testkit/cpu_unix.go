// SPDX-License-Identifier: Apache-2.0

//go:build unix

package testkit

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time of the process, without the time that other processes
// took.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // never for the process itself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
