// SPDX-License-Identifier: Apache-2.0

//go:build unix

package evidence

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// TestMain lets a test run this test binary as a process that writes a log.
func TestMain(m *testing.M) {
	if dir := os.Getenv("EVIDENCE_CHILD"); dir != "" {
		child(dir)
		return
	}
	os.Exit(m.Run())
}

// child is the program that the tests start in another process. It writes violations until it is killed, and prints
// their number each second. If the environment variable EVIDENCE_LIMIT is set, its files cannot exceed 50,000 bytes for
// two seconds, as on a full disk. Then it prints its reports and ends.
func child(dir string) {
	var soft syscall.Rlimit
	limited := os.Getenv("EVIDENCE_LIMIT") != ""
	if limited {
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &soft); err != nil {
			panic(err)
		}
		low := soft
		low.Cur = 50_000
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &low); err != nil {
			panic(err)
		}
	}
	var reports []string
	l, err := Open(dir, Options{Report: func(reason string, err error) { reports = append(reports, fmt.Sprint(reason, " ", err != nil)) }})
	if err != nil {
		panic(err)
	}
	begin := time.Now()
	for n := 0; ; n++ {
		l.Record(activity.Request{Time: time.Now(), Crawler: "GPTBot", Identity: activity.Verified, Violation: true, Path: fmt.Sprint("/", n)})
		time.Sleep(500 * time.Microsecond)
		if limited && n == 4000 {
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &soft); err != nil {
				panic(err)
			}
			time.Sleep(1500 * time.Millisecond)
			err := l.Close()
			_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"reports": reports, "troubles": l.Troubles(), "close": fmt.Sprint(err)})
			return
		}
		if !limited && time.Since(begin) > time.Second {
			begin = time.Now()
			fmt.Println(n + 1)
		}
	}
}

func startChild(t *testing.T, dir string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(append(os.Environ(), "EVIDENCE_CHILD="+dir), env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// count returns the number of violations in a log, and the number of events that the log says were left out.
func count(t *testing.T, dir string) (violations, omitted int64, types string) {
	t.Helper()
	var all []string
	if err := Read(dir, func(_ string, e *Event, _ string) error {
		switch e.Type {
		case TypeViolation:
			violations++
		case TypeOmitted:
			omitted += e.Count
		default:
			all = append(all, strings.TrimSpace(e.Type+" "+e.Reason))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return violations, omitted, strings.Join(all, ", ")
}

func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := startChild(t, dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := int64(0)
	for range 3 {
		if _, err := fmt.Fscanln(out, &said); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(cmd.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	l, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	violations, _, types := count(t, dir)
	if violations < said/3 || types != "start, start, error killed, stop" {
		t.Errorf("%d of at least %d; %s", violations, said, types)
	}
	if c := verify(t, dir); c.Whole().Outcome() != claim.CannotBeJudged || len(c.Gaps) != 1 {
		t.Errorf("%s %+v", c.Whole().Outcome(), c)
	}
}

// The disk is full for a short time. No event is lost. Report is called once for the failure, and once when writing
// works again. The log then records the failure.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, err := startChild(t, dir, "EVIDENCE_LIMIT=1").Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var said struct {
		Reports  []string
		Troubles map[string]time.Time
		Close    string
	}
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatal(err)
	}
	violations, omitted, types := count(t, dir)
	if violations != 4001 || omitted != 0 || types != "start, error write, stop" || strings.Join(said.Reports, ", ") != "write true, write false" || said.Troubles[WriteFailed].IsZero() || said.Close != "<nil>" {
		t.Errorf("%d violations, %d omitted; %s; %s", violations, omitted, types, out)
	}
	if c := verify(t, dir); c.Whole().Outcome() != claim.CannotBeJudged || len(c.Gaps) != 1 || !strings.Contains(c.Gaps[0], "file too large") {
		t.Errorf("%s %+v", c.Whole().Outcome(), c)
	}
}

// TestFaults writes three violations to a log. While the log is open, after the first violation, something goes wrong:
// for example, the clock is set back or the file is removed. The test checks the result of Verify and, if the log can
// still be read, the events in it.
func TestFaults(t *testing.T) {
	t.Parallel()
	name := fileName(start.Format(time.DateOnly))
	for _, f := range []struct {
		name   string
		fault  func(t *testing.T, path string, now *time.Time)
		events string // the types of the events, except start and stop
		seen   int64  // number of the three violations that are in the log
		result claim.Outcome
	}{
		{"the clock goes back", func(_ *testing.T, _ string, now *time.Time) { *now = now.Add(-5 * time.Hour) }, "error clock", 3, claim.CannotBeJudged},
		{"the clock goes forward", func(_ *testing.T, _ string, now *time.Time) { *now = now.Add(5 * 24 * time.Hour) }, "", 3, claim.CannotBeJudged},
		{"the file is cut in a line", func(t *testing.T, path string, _ *time.Time) {
			if err := os.Truncate(path, 200); err != nil {
				t.Fatal(err)
			}
		}, "unreadable", 0, claim.Fails},
		{"the file is removed", func(t *testing.T, path string, _ *time.Time) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, "error file", 2, claim.Fails},
		{"a second writer", func(t *testing.T, path string, _ *time.Time) {
			if l, err := Open(filepath.Dir(path), Options{}); err == nil || !strings.Contains(err.Error(), "another process writes evidence to") {
				_ = l.Close()
				t.Error(err)
			}
		}, "", 3, claim.CannotBeJudged},
		{"a page of zeros", func(t *testing.T, path string, _ *time.Time) {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.WriteAt(make([]byte, 60), 90)
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}, "unreadable", 0, claim.Fails},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			dir, now := t.TempDir(), start
			var l *Log
			l, err := Open(dir, Options{Now: func() time.Time { return now }})
			if err != nil {
				t.Fatal(err)
			}
			violate := func() {
				record(l, activity.Request{Time: now, Crawler: "GPTBot", Identity: activity.Verified, Violation: true})
				l.tick()
			}
			violate()
			l.mu.Lock()
			f.fault(t, filepath.Join(dir, name), &now)
			l.mu.Unlock()
			violate()
			violate()
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			c, err := Verify(dir, nil, nil)
			if err != nil || c.Whole().Outcome() != f.result {
				t.Errorf("%v %s: %+v", err, c.Whole().Outcome(), c)
			}
			if f.events == "unreadable" {
				return
			}
			violations, _, types := count(t, dir)
			types = strings.Trim(strings.TrimPrefix(strings.TrimSuffix(types, "stop"), "start"), ", ")
			if violations != f.seen || types != f.events {
				t.Errorf("%d violations; %s", violations, types)
			}
		})
	}
}

// If the directory is not writable, the log cannot be opened. The omitted events are then counted by crawler.
func TestWhileNotOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var missed Omissions
	for range 7 {
		missed.Add(&activity.Request{Crawler: "GPTBot", Identity: activity.Verified, Violation: true}, NotOpen)
		missed.Add(&activity.Request{Crawler: "GPTBot"}, NotOpen) // this request is not an event
	}
	l, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	l.Omit(&missed)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if c := verify(t, dir); c.Omitted != 7 || len(c.Gaps) != 1 || !strings.Contains(c.Gaps[0], "7 events (violation) of GPTBot (verified) were left out: the log could not be opened") {
		t.Errorf("%+v", c)
	}
}
