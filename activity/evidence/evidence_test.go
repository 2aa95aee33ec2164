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
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/aside"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// writeLog writes a log of three days and two processes.
func writeLog(t *testing.T, o Options) string {
	t.Helper()
	dir := t.TempDir()
	now := start
	o.Now = func() time.Time { return now }
	o.Report = func(_ string, err error) { t.Error(err) }
	open := func() *Log {
		l, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open()
	publish(l, publication("version: 1\n", "r1"))
	visit := func(v activity.Request) {
		v.Time, v.Host, v.Crawler, v.Identity = now, "example.com", "GPTBot", activity.Verified
		record(l, v)
	}
	visit(activity.Request{RobotsTxt: true, Robots: "r1", Path: "/robots.txt"})
	visit(activity.Request{Path: "/"}) // this request is not an event
	visit(activity.Request{Path: "/private/x", Violation: true, Robots: "r1", Rule: "private", Status: 200})
	now = now.Add(24 * time.Hour)
	visit(activity.Request{Path: "/private/y", Violation: true, Robots: "r1", Status: 403})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open()
	visit(activity.Request{Path: "/private/z", Violation: true, Robots: "r1"})
	l.mu.Lock()
	now = now.Add(24 * time.Hour)
	l.mu.Unlock()
	l.tick() // no event happens on this day
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// record passes a request to the log without the queue.
func record(l *Log, v activity.Request) {
	if kind := typeOf(&v); kind != "" {
		l.take(item{Request: v, kind: kind})
	}
}

// publication returns a publication of a policy and of a robots.txt for all hosts.
func publication(text, robots string) *activity.Publication {
	p := &activity.Publication{
		Name: "site.yaml", Time: start, SHA256: hashOf([]byte(text)), Text: text, Program: "test", Catalog: "2026-11-01",
		Documents: []site.Document{{Name: site.RobotsTxt, Version: robots, Text: "User-agent: *\nDisallow: /private/\n"}},
	}
	p.Identify()
	return p
}

// publish passes a publication to the log without the queue.
func publish(l *Log, p *activity.Publication) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.publish(ofPublication(p, p.Time))
}

func key() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32)) }

func verify(t *testing.T, dir string) *Check {
	t.Helper()
	c, err := Verify(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWholeLog(t *testing.T) {
	t.Parallel()
	dir := writeLog(t, Options{Key: key(), Program: "test"})
	c := verify(t, dir)
	if c.Whole().Outcome() != claim.Holds || c.Files != 2 || c.Events != 9 || c.Signed != 2 || len(c.Keys) != 1 || !c.FromStart {
		t.Errorf("%+v", c)
	}
	var types []string
	if err := Read(dir, func(_ string, e *Event, _ string) error { types = append(types, e.Type); return nil }); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(types, " "); got != "start published read violation violation stop start violation stop" {
		t.Error(got)
	}
}

func TestUnsigned(t *testing.T) {
	t.Parallel()
	if c := verify(t, writeLog(t, Options{})); c.Whole().Outcome() != claim.CannotBeJudged || c.Signed != 0 {
		t.Errorf("%+v", c)
	}
}

// TestEveryChangeIsFound makes many changed copies of a log. In each copy, one line is removed or repeated, two
// neighboring lines are swapped, or one byte is changed. There is a copy for every 13th byte or, if ROBOTSPOLICY_LONG
// is set, for every byte. Verify must report each change.
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
			if c, err := Verify(dir, nil, nil); err == nil && len(c.Problems) == 0 {
				t.Errorf("%s, %s: the change was not detected", day, what)
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
}

func TestDroppedFilesAreSaid(t *testing.T) {
	t.Parallel()
	dir := writeLog(t, Options{Key: key()})
	if err := os.Remove(filepath.Join(dir, fileName("2026-11-20"))); err != nil {
		t.Fatal(err)
	}
	if c := verify(t, dir); len(c.Problems) != 1 || !strings.Contains(c.Problems[0], "files were removed") || c.FromStart {
		t.Errorf("%+v", c)
	}
}

func TestCrashInTheMiddleOfALine(t *testing.T) {
	t.Parallel()
	dir := writeLog(t, Options{})
	name := filepath.Join(dir, fileName("2026-11-21"))
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

// A client floods the log with requests in the name of a crawler. The log still has room for the events of verified
// crawlers, for fetches of robots.txt and for publications. It also records how many events it left out.
func TestFlood(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	q := quotas{violations: room{1000, 1 << 20}, unverified: room{500, 1 << 19}, claimed: room{100, 1 << 16}, verified: room{400, 1 << 19}, reads: room{50, 1 << 16}}
	var reports []string
	report := func(reason string, err error) { reports = append(reports, fmt.Sprint(reason, ": ", err)) }
	l, err := Open(dir, Options{Key: key(), quotas: &q, Now: func() time.Time { return start }, Report: report})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		record(l, activity.Request{Time: start, Crawler: "Bytespider", Identity: activity.Unverified, Violation: true, Path: "/" + strings.Repeat("<", i%2000)})
		record(l, activity.Request{Time: start, Crawler: "Bytespider", Identity: activity.Unverified, RobotsTxt: true})
		if i%50 == 0 {
			record(l, activity.Request{Time: start, Crawler: "GPTBot", Identity: activity.Verified, Violation: true, Path: "/x"})
			record(l, activity.Request{Time: start, Crawler: fmt.Sprint("Other", i), Identity: activity.Unverified, RobotsTxt: true})
			publish(l, publication(fmt.Sprint(i), "r1"))
		}
	}
	l.mu.Lock()
	if size := l.good + int64(len(l.pending)); size > 500_000 {
		t.Errorf("the day has %d bytes", size)
	}
	l.mu.Unlock()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if len(reports) != 1 || !strings.Contains(reports[0], "omitted: events of Bytespider (unverified) are left out of the evidence log: this crawler had used its daily share of the log") {
		t.Errorf("%q", reports)
	}
	n := map[string]int64{}
	if err := Read(dir, func(_ string, e *Event, _ string) error {
		n[e.Type+" "+e.Crawler+e.What] += max(1, e.Count)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if n["violation GPTBot"] != 100 || n["published "] != 100 || n["read Other50"] != 1 || n["violation Bytespider"] > 100 || n["violation Bytespider"] < 20 || n["read Bytespider"] != 50 {
		t.Errorf("%v", n)
	}
	if n["violation Bytespider"]+n["omitted Bytespiderviolation"] != 5000 || n["omitted Bytespiderread"] != 4950 {
		t.Errorf("%v", n)
	}
	c := verify(t, dir)
	if c.Whole().Outcome() != claim.CannotBeJudged || c.Omitted != n["omitted Bytespiderviolation"]+n["omitted Bytespiderread"] || l.Dropped() != uint64(c.Omitted) {
		t.Errorf("%+v; %d dropped", c, l.Dropped())
	}
}

// If events are left out because of the quotas, the log records their number within a minute. A restart does not reset
// the quotas, because they apply to the whole day.
func TestOmissionsAreWrittenWithinAMinute(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := start
	q := quotas{violations: room{100, 1 << 20}, unverified: room{50, 1 << 20}, claimed: room{10, 1 << 20}, verified: room{50, 1 << 20}}
	open := func() *Log {
		l, err := Open(dir, Options{quotas: &q, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	visits := func(l *Log) {
		for range 20 {
			record(l, activity.Request{Time: now, Crawler: "CCBot", Identity: activity.Unverified, Violation: true})
		}
	}
	l := open()
	visits(l)
	l.mu.Lock()
	l.omissionsAt = now
	now = now.Add(time.Minute)
	l.mu.Unlock()
	l.tick()
	if c := verify(t, dir); c.Omitted != 10 {
		t.Errorf("after a minute: %+v", c)
	}
	visits(l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open()
	visits(l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if c := verify(t, dir); c.Omitted != 50 {
		t.Errorf("after a restart: %+v", c)
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
		l.mu.Lock()
		now = now.Add(24 * time.Hour)
		l.mu.Unlock()
		record(l, activity.Request{Time: now, Crawler: "CCBot", RobotsTxt: true})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4+4+1 { // two files with their signatures, and the lock
		t.Errorf("%v, %v", entries, err)
	}
	if c := verify(t, dir); c.Whole().Outcome() != claim.Holds || c.FromStart || c.Signed != 4 {
		t.Errorf("%+v", c)
	}
}

// If a file and its signature are moved to another day, the signature does not match.
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
	if c := verify(t, dir); c.Whole().Outcome() != claim.Fails || !strings.Contains(c.Problems[0], "it has the signature of evidence-2026-11-20.jsonl") {
		t.Errorf("%+v", c)
	}
}

// Verify detects a missing event number, even if all hashes were computed again so that they match.
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

// A client names a crawler in its User-Agent and fetches robots.txt. If the client is an impostor or unlisted, the log
// does not say that this crawler read the robots.txt.
func TestEventOfVisit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		visit activity.Request
		want  string
	}{
		{activity.Request{RobotsTxt: true, Identity: activity.Unverified}, TypeRead},
		{activity.Request{RobotsTxt: true, Identity: activity.Impostor}, ""},
		{activity.Request{RobotsTxt: true, Identity: activity.Audit}, ""},
		{activity.Request{Violation: true, Identity: activity.Audit}, TypeViolation}, // naming the audit in the User-Agent does not hide a violation
		{activity.Request{RobotsTxt: true, Category: activity.CategoryUnlisted}, ""},
		{activity.Request{Violation: true, Identity: activity.Impostor}, TypeViolation},
		{activity.Request{}, ""},
	} {
		if kind := typeOf(&c.visit); kind != c.want {
			t.Errorf("%+v is %q, want %q", c.visit, kind, c.want)
		}
	}
}

// A violation is not counted as served if the connection was closed before the response.
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
			decision = activity.Blocked
		}
		record(l, activity.Request{Time: start, Crawler: "GPTBot", Violation: true, Status: status, Decision: decision})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := Ask(dir, Question{})
	if err != nil || len(a.Violations) != 1 || a.Violations[0].Count != 5 || a.Violations[0].Served != 2 || a.Violations[0].Blocked != 1 {
		t.Errorf("%+v, %v", a, err)
	}
}

// If the clock is set back, the log does not return to an earlier day's file and does not start a new one, even after a
// restart. Empty files do not interrupt the chain.
func TestClockGoesBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := start
	open := func() *Log {
		l, err := Open(dir, Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open()
	now = now.Add(-48 * time.Hour)
	publish(l, publication("1", "r1"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, fileName(start.Add(24*time.Hour).Format(time.DateOnly)))
	if err := os.WriteFile(empty, []byte(`{"seq":`), 0o600); err != nil { // the first line of a day is incomplete because of a crash
		t.Fatal(err)
	}
	l = open()
	publish(l, publication("2", "r1"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if c := verify(t, dir); c.Whole().Outcome() != claim.CannotBeJudged || c.Files != 2 || len(c.Gaps) != 1 || !strings.Contains(c.Gaps[0], "the clock went back by 48h0m0s") || !c.FromStart {
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
		c, err := Verify(dir, nil, nil)
		if err == nil && len(c.Problems) == 0 && c.Events > 1 && bytes.Count(b, []byte(`"prev"`)) < c.Events-1 {
			t.Errorf("%+v: events without a previous hash were accepted as a chain", c)
		}
	})
}

// If the last line of a file is not an event, the log cannot be opened until the file is renamed (see the package
// aside). Then the chain continues from the other files, and Verify reports the renamed file.
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
	if len(c.Problems) != 1 || !strings.Contains(c.Problems[0], filepath.Base(name)) || !strings.Contains(c.Problems[0], "Caddy renamed it") {
		t.Errorf("problems: %q", c.Problems)
	}
}

// After a restart, published texts that are already in the day's file are not written again, and the function Ask still
// finds them. A text in force is written again before the file that contains it is deleted.
func TestTextsAreNotRepeated(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), start
	run := func(days int) {
		l, err := Open(dir, Options{Days: 3, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		p := publication("version: 1\n", "r1")
		p.By, p.Note = "alice", "no \xff more"
		publish(l, p)
		for range days {
			l.mu.Lock()
			now = now.Add(24 * time.Hour)
			l.mu.Unlock()
			record(l, activity.Request{Time: now, Crawler: "GPTBot", Violation: true, Robots: "r1", Path: "/private/x"})
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	texts := func() (whole, all int) {
		if err := Read(dir, func(_ string, e *Event, _ string) error {
			if e.Type == TypePublished {
				all++
			}
			if e.Published != nil {
				whole++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return whole, all
	}
	for range 5 {
		run(0)
	}
	if whole, all := texts(); whole != 1 || all != 5 {
		t.Errorf("%d of %d publications have texts", whole, all)
	}
	for _, days := range []int{0, 10} { // in the second run, the first files are deleted
		run(days)
		a, err := Ask(dir, Question{})
		if err != nil || len(a.Published) != 1 || a.Published[0].Text == "" || a.Published[0].By != "alice" || a.Published[0].Note != "no \uFFFD more" || !a.Published[0].Until.IsZero() || days > 0 && (len(a.Violations) != 1 || len(a.Violations[0].Lines) != 1) {
			t.Errorf("%v %+v", err, a)
		}
	}
	if c := verify(t, dir); c.FromStart || len(c.Problems) > 0 {
		t.Errorf("%+v", c)
	}
}
