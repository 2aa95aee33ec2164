// SPDX-License-Identifier: Apache-2.0

//go:build unix

package testkit

import (
	"syscall"
	"time"
)

// cpuTime is how much time of a processor the process has had: what others took of it
// meanwhile does not count.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // never for the process itself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
