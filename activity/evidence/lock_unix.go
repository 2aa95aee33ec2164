// SPDX-License-Identifier: Apache-2.0

//go:build unix && !solaris && !aix

package evidence

import (
	"os"
	"syscall"
)

// lockFile locks a file for this process without waiting. The system releases the lock when the file is closed, even if
// the process is killed.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

func unlockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
