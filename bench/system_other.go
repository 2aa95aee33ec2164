// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"errors"
	"os/exec"
	"time"
)

var errLinux = errors.New("the benchmarks need Linux, for the CPU time and the memory of other processes")

type cores struct{ own bool }

func pinSelf() (cores, error)             { return cores{}, errLinux }
func (cores) startPinned(*exec.Cmd) error { return errLinux }
func cpuTime(int) (time.Duration, error)  { return 0, errLinux }
func machineTime() (time.Duration, error) { return 0, errLinux }
func memory(int, string) (int, error)     { return 0, errLinux }
func resetPeak(int) error                 { return errLinux }
