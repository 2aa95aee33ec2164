// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "os"

func peakMemory(*os.ProcessState) int64 { return 0 }
