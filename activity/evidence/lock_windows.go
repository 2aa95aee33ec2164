// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockFile locks a file for this process without waiting. The system releases the lock when the file is closed, even if
// the process is killed.
func lockFile(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
}

func unlockFile(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, new(windows.Overlapped))
}
