// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package cli

import "os"

// ownerOf returns the ID of the current user if the file exists, because files on this system do not have a user ID.
func ownerOf(path string) (int, bool) {
	_, err := os.Stat(path)
	return os.Geteuid(), err == nil
}
