// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the CPU time of a process, including user and system time. The files in /proc have the same time, but
// with a resolution of only 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	const schedClock = 2 // CPUCLOCK_SCHED of the kernel's posix-timers.h
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|schedClock, &t); err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// machineTime returns the time that all CPUs together were busy, with a resolution of 10 ms. It includes the time that
// other virtual machines on the same host used.
func machineTime() (time.Duration, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line)
	if len(f) < 9 {
		return 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	var ticks int
	for _, i := range []int{1, 2, 3, 6, 7, 8} { // user nice system irq softirq steal
		n, err := strconv.Atoi(f[i])
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100), nil
}

// memory returns a memory value of a process in octets. key is VmRSS for the present memory, or VmHWM for the peak
// since resetPeak.
func memory(pid int, key string) (int, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte(key+":")); ok {
			kb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(string(rest)), " kB"))
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("process %d has no %s", pid, key)
}

func resetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// cores holds the CPUs for the proxies and the CPUs for everything else. On a machine with one CPU, they are the same.
type cores struct {
	proxies, rest unix.CPUSet
	own           bool // the proxies have a CPU that nothing else uses
}

// pinSelf finds the available CPUs. It reserves the last CPU for the proxies, and moves this process to the other CPUs.
func pinSelf() (c cores, err error) {
	if err := unix.SchedGetaffinity(0, &c.rest); err != nil {
		return c, err
	}
	if c.rest.Count() < 2 {
		c.proxies = c.rest
		return c, nil
	}
	last := 0
	for i, left := 0, c.rest.Count(); left > 0; i++ {
		if c.rest.IsSet(i) {
			last, left = i, left-1
		}
	}
	c.own = true
	c.proxies.Set(last)
	c.rest.Clear(last)
	runtime.GOMAXPROCS(c.rest.Count())
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return c, err
	}
	for _, t := range tasks { // later threads inherit these CPUs
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			if err := unix.SchedSetaffinity(tid, &c.rest); err != nil && err != unix.ESRCH {
				return c, err
			}
		}
	}
	return c, nil
}

// startPinned starts a process on the CPU of the proxies. The new process ends when this process ends, even if this
// process is killed.
func (c cores) startPinned(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if !c.own {
		return cmd.Start()
	}
	runtime.LockOSThread() // children inherit the CPUs of the thread that starts them
	defer runtime.UnlockOSThread()
	if err := unix.SchedSetaffinity(0, &c.proxies); err != nil {
		return err
	}
	err := cmd.Start()
	if back := unix.SchedSetaffinity(0, &c.rest); err == nil {
		err = back
	}
	return err
}
