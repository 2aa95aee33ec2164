// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/aside"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// writeLog writes a log of three days and two processes.
func writeLog(t *testing.T, o Options) string {
	t.Helper()
	dir := t.TempDir()
	now := start
	o.Now = func() time.Time { return now }
	o.Report = func(err error) { t.Error(err) }
	open := func() *Log {
		l, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open()
	l.publish(l.published("policy", "p1", "", "site-policy.yaml", "version: 1\n"))
	l.publish(l.published("robots", "r1", "example.com", "", "User-agent: *\nDisallow: /private/\n"))
	visit := func(v activity.Visit) {
		v.Time, v.Host, v.Crawler, v.Identity = now, "example.com", "GPTBot", activity.Verified
		l.take(item{Visit: v})
	}
	visit(activity.Visit{RobotsTxt: true, Robots: "r1", Path: "/robots.txt"})
	visit(activity.Visit{Path: "/"})                                        // no event
	visit(activity.Visit{Path: "/private/x", Violation: true, Audit: true}) // our own audit
	visit(activity.Visit{Path: "/private/x", Violation: true, Robots: "r1", Rule: "private", Status: 200})
	now = now.Add(24 * time.Hour)
	visit(activity.Visit{Path: "/private/y", Violation: true, Robots: "r1", Status: 403})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open()
	visit(activity.Visit{Path: "/private/z", Violation: true, Robots: "r1"})
	now = now.Add(24 * time.Hour)
	l.tick() // the day ends without an event
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func key() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32)) }

func verify(t *testing.T, dir string) *Check {
	t.Helper()
	c, err := Verify(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWholeLog(t *testing.T) {
	t.Parallel()
	dir := writeLog(t, Options{Key: key(), Program: "test"})
	c := verify(t, dir)
	if len(c.Problems) > 0 || c.Files != 2 || c.Events != 10 || c.Signed != 2 || len(c.Keys) != 1 || !c.FromStart || len(c.Unsigned) > 0 {
		t.Errorf("%+v", c)
	}
	var types []string
	if err := Read(dir, func(_ string, e *Event, _ string) error { types = append(types, e.Type); return nil }); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(types, " "); got != "start published published read violation end violation start violation end" {
		t.Error(got)
	}
}

func TestUnsigned(t *testing.T) {
	t.Parallel()
	if c := verify(t, writeLog(t, Options{})); len(c.Problems) > 0 || c.Signed != 0 || len(c.Unsigned) != 2 {
		t.Errorf("%+v", c)
	}
}

// TestEveryChangeIsFound changes, removes, repeats and swaps each line in turn, and
// changes each byte.
func TestEveryChangeIsFound(t *testing.T) {
	t.Parallel()
	dir := writeLog(t, Options{Key: key()})
	all, err := days(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, day := range all {
		name := filepath.Join(dir, fileName(day))
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, changed []byte) {
			if err := os.WriteFile(name, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			if c, err := Verify(dir); err == nil && len(c.Problems) == 0 {
				t.Errorf("%s, %s: not found", day, what)
			}
		}
		lines := bytes.SplitAfter(whole, []byte("\n"))
		lines = lines[:len(lines)-1]
		for i := range lines {
			without := append(append([][]byte{}, lines[:i]...), lines[i+1:]...)
			check(fmt.Sprint("without line ", i+1), bytes.Join(without, nil))
			twice := append(append(append([][]byte{}, lines[:i+1]...), lines[i]), lines[i+1:]...)
			check(fmt.Sprint("line twice ", i+1), bytes.Join(twice, nil))
			if i > 0 {
				swapped := append([][]byte{}, lines...)
				swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
				check(fmt.Sprint("swapped ", i), bytes.Join(swapped, nil))
			}
		}
		step := 13
		if testkit.Long() {
			step = 1
		}
		for i := 0; i < len(whole); i += step {
			changed := bytes.Clone(whole)
			changed[i] ^= 1
			check(fmt.Sprint("byte ", i), changed)
		}
		if err := os.WriteFile(name, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sig := filepath.Join(dir, fileName(all[0])+SignatureSuffix)
	b, err := os.ReadFile(sig)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(sig, bytes.Replace(b, []byte(`"seq": 6`), []byte(`"seq": 5`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if c := verify(t, dir); len(c.Problems) != 1 {
		t.Errorf("another signature: %+v", c)
	}
}

func TestDroppedFilesAreSaid(t *testing.T) {
	t.Parallel()
	dir := writeLog(t, Options{Key: key()})
	if err := os.Remove(filepath.Join(dir, fileName("2026-11-20"))); err != nil {
		t.Fatal(err)
	}
	if c := verify(t, dir); len(c.Problems) > 0 || c.FromStart {
		t.Errorf("%+v", c)
	}
}

func TestCrashInTheMiddleOfALine(t *testing.T) {
	t.Parallel()
	dir := writeLog(t, Options{})
	name := filepath.Join(dir, fileName("2026-11-22"))
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, append(b, `{"seq":11,"time`...), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Open(dir, Options{Now: func() time.Time { return start.Add(48 * time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if c := verify(t, dir); len(c.Problems) > 0 || c.Events != 11 {
		t.Errorf("%+v", c)
	}
}

func TestOneWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Open(dir, Options{}); err == nil {
		_ = again.Close()
		t.Error("two logs write to one directory")
	} else if !strings.Contains(err.Error(), "another process writes evidence to "+dir) {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDayIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := start
	l, err := Open(dir, Options{eventsPerDay: 10, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		l.take(item{Visit: activity.Visit{Time: now, Violation: true}})
	}
	now = now.Add(24 * time.Hour)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if c := verify(t, dir); c.Omitted != 91 || len(c.Problems) > 0 {
		t.Errorf("%+v", c)
	}
}

// Hosts and paths that clients make up do not fill the disk, and what had no room is
// written on the next day.
func TestBytesOfADayAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := start
	l, err := Open(dir, Options{bytesPerDay: 100_000, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("Disallow: /\n", 100)
	for i := range 1000 {
		l.publish(l.published("robots", "v", fmt.Sprintf("%d.example.com", i), "policy.yaml", text))
		l.take(item{Visit: activity.Visit{Time: now, Violation: true, Path: "/" + strings.Repeat("<", 1<<20)}})
	}
	l.mu.Lock() // for the log's own goroutine
	if l.bytes > 110_000 || l.omitted < 1800 {
		t.Errorf("%d bytes, %d events left out", l.bytes, l.omitted)
	}
	now = now.Add(24 * time.Hour)
	l.mu.Unlock()
	l.publish(l.published("robots", "v", "999.example.com", "policy.yaml", text))
	l.publish(l.published("robots", "v", "0.example.com", "policy.yaml", text)) // is there
	l.mu.Lock()
	if l.events != 1 {
		t.Errorf("%d events on the next day", l.events)
	}
	l.mu.Unlock()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if c := verify(t, dir); len(c.Problems) > 0 {
		t.Errorf("%+v", c)
	}
}

func TestExpire(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := start
	l, err := Open(dir, Options{Days: 3, Key: key(), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		now = now.Add(24 * time.Hour)
		l.tick()
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4+3+1 { // today is not signed; the lock
		t.Errorf("%v, %v", entries, err)
	}
	if c := verify(t, dir); len(c.Problems) > 0 || c.FromStart || c.Signed != 3 {
		t.Errorf("%+v", c)
	}
}

// A file that is moved to another day together with its signature is not what was signed.
func TestRenamedFile(t *testing.T) {
	t.Parallel()
	dir := writeLog(t, Options{Key: key()})
	all, err := days(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", SignatureSuffix} {
		if err := os.Rename(filepath.Join(dir, fileName(all[0])+suffix), filepath.Join(dir, fileName("2020-01-01")+suffix)); err != nil {
			t.Fatal(err)
		}
	}
	if c := verify(t, dir); len(c.Problems) != 1 || !strings.Contains(c.Problems[0], "it was changed after it was signed") {
		t.Errorf("%+v", c)
	}
}

// The chain breaks where a number is missing, even if every hash was made to fit.
func TestMissingNumber(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := `{"seq":1,"time":"2026-11-20T12:00:00Z","type":"start","prev":""}`
	second := `{"seq":3,"time":"2026-11-20T12:00:01Z","type":"start","prev":"` + hashOf([]byte(first)) + `"}`
	if err := os.WriteFile(filepath.Join(dir, fileName("2026-11-20")), []byte(first+"\n"+second+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c := verify(t, dir); len(c.Problems) != 1 {
		t.Errorf("%+v", c)
	}
}

// Impostors and clients of unknown kind read no robots.txt in a crawler's name.
func TestEventOfVisit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		visit activity.Visit
		want  string
	}{
		{activity.Visit{RobotsTxt: true, Identity: activity.Claimed}, TypeRead},
		{activity.Visit{RobotsTxt: true, Identity: activity.Impostor}, ""},
		{activity.Visit{RobotsTxt: true, Kind: activity.KindUnknown}, ""},
		{activity.Visit{Violation: true, Identity: activity.Impostor}, TypeViolation},
		{activity.Visit{}, ""},
	} {
		if e, ok := ofVisit(&c.visit); e.Type != c.want || ok != (c.want != "") {
			t.Errorf("%+v is %q, want %q", c.visit, e.Type, c.want)
		}
	}
}

// A violation whose connection was closed before there was an answer was not served.
func TestAnswersOfViolations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := Open(dir, Options{Now: func() time.Time { return start }})
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range []int{0, 200, 304, 403, 500} {
		decision := activity.Disallowed
		if status == 403 {
			decision = activity.Refused
		}
		l.take(item{Visit: activity.Visit{Time: start, Crawler: "GPTBot", Violation: true, Status: status, Decision: decision}})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := Ask(dir, Question{})
	if err != nil || len(a.Violations) != 1 || a.Violations[0].Count != 5 || a.Violations[0].Served != 2 || a.Violations[0].Refused != 1 {
		t.Errorf("%+v, %v", a, err)
	}
}

// A start of the program is in the log even if the day has no room for other events.
func TestStartOnAFullDay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 5 {
		l, err := Open(dir, Options{eventsPerDay: 2, bytesPerDay: 1, Now: func() time.Time { return start }})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if c := verify(t, dir); len(c.Problems) > 0 || c.Events != 5 {
		t.Errorf("%+v", c)
	}
}

// A clock that goes back neither opens an earlier file again nor ends the day, also not
// when the program begins anew, and empty files between are no end of the chain.
func TestClockGoesBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := start
	open := func() *Log {
		l, err := Open(dir, Options{Now: func() time.Time { return now }, Report: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open()
	now = now.Add(-48 * time.Hour)
	l.publish(l.published("policy", "p1", "", "site-policy.yaml", "version: 1\n"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, fileName(start.Add(24*time.Hour).Format(time.DateOnly)))
	if err := os.WriteFile(empty, []byte(`{"seq":`), 0o600); err != nil { // a crash in the first line of a day
		t.Fatal(err)
	}
	l = open()
	l.publish(l.published("policy", "p2", "", "site-policy.yaml", "version: 1\n"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if c := verify(t, dir); len(c.Problems) > 0 || c.Files != 2 || c.Events != 4 || !c.FromStart {
		t.Errorf("%+v", c)
	}
}

func FuzzVerify(f *testing.F) {
	f.Add([]byte(`{"seq":1,"time":"2026-11-20T12:00:00Z","type":"start","prev":""}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName("2026-11-20")), b, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Verify(dir)
		if err == nil && len(c.Problems) == 0 && c.Events > 1 && bytes.Count(b, []byte(`"prev"`)) < c.Events-1 {
			t.Errorf("%+v: events without a link are a chain", c)
		}
	})
}

// A file whose last line is not an event stops the log until it is put aside; the chain goes
// on with what is left, and checking it says what is missing.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	dir := writeLog(t, Options{})
	all, err := days(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, fileName(all[len(all)-1]))
	if err := os.WriteFile(name, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir, Options{})
	damaged, ok := errors.AsType[*DamagedError](err)
	if !ok || damaged.File != name {
		t.Fatalf("%v, want a DamagedError of %s", err, name)
	}
	if _, err := aside.Put(start, damaged.File); err != nil {
		t.Fatal(err)
	}
	l, err := Open(dir, Options{Now: func() time.Time { return start.Add(72 * time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c := verify(t, dir)
	if len(c.Problems) != 1 || !strings.Contains(c.Problems[0], filepath.Base(name)) || !strings.Contains(c.Problems[0], "put aside") {
		t.Errorf("problems: %q", c.Problems)
	}
}
