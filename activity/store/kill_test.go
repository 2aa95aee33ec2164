// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

const killDir = "ROBOTSPOLICY_TEST_KILLED_STORE"

// TestMain first checks whether a test started this process as a writer. If so, it writes to a database until the
// process is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(killDir); dir != "" {
		writeUntilKilled(dir)
	}
	os.Exit(m.Run())
}

// writeUntilKilled records requests until the process is killed. After each write, it prints the number of requests
// that it has written.
func writeUntilKilled(dir string) {
	s, err := Open(context.Background(), dir, Options{writeInterval: time.Hour, RowsPerHour: 1000})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	rnd := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	written := 0
	for {
		n := rnd.IntN(50)
		for range n {
			s.waiting.addVisit(&activity.Request{Time: start, Host: "h", Crawler: "c", Path: "/" + strconv.Itoa(rnd.IntN(300)), Bytes: 1})
		}
		s.startWrite(rnd.IntN(4) == 0)
		if err := s.finish(<-s.writing); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		written += n
		fmt.Println(written)
	}
}

// The process can be killed at any time. All written rows remain, and no request is counted twice. With
// ROBOTSPOLICY_LONG, the test kills more processes.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	dir, rounds := t.TempDir(), testkit.Rounds(4, 10)
	if testing.Short() {
		rounds = 3
	}
	if testkit.Long() {
		rounds = 200
	}
	rnd := rand.New(rand.NewPCG(9, 9))
	var total int64
	for round := range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		last := int64(0)
		read := func() bool {
			if !lines.Scan() {
				return false
			}
			if strings.HasPrefix(lines.Text(), "error") {
				_ = cmd.Process.Kill()
				t.Fatalf("round %d: %s", round, lines.Text())
			}
			if n, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
				last = n
			}
			return true
		}
		for range 1 + rnd.IntN(40) { // number of writes
			if !read() {
				t.Fatalf("round %d: the writer ended before it was killed", round)
			}
		}
		time.Sleep(time.Duration(rnd.IntN(5_000_000))) // so the process is killed at a random point of its work
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for read() { // the numbers printed before the kill
		}
		_ = cmd.Wait()
		got := sum(totals(t, dir, Query{}))
		// The process may have written up to 49 requests whose number it has not printed yet.
		if low := total + last; got < low || got > low+49 {
			t.Fatalf("round %d: %d requests are stored, want %d or up to 49 more", round, got, low)
		}
		total = got
	}
	closeStore(t, open(t, dir, Options{}))
	if got := sum(totals(t, dir, Query{})); got != total {
		t.Errorf("%d requests are stored after the last start, want %d", got, total)
	}
	t.Logf("%d kills, %d requests", rounds, total)
}

func sum(rows []Row) (n int64) {
	for _, r := range rows {
		n += r.Requests
	}
	return n
}

// A killed process may not have written all requests, and an older copy of a database lacks requests. In both cases,
// the coverage of the affected time has a gap. A process that stopped normally leaves no gap, even if it recorded
// nothing.
func TestKilledIsAGap(t *testing.T) {
	t.Parallel()
	dir, copied, older := t.TempDir(), t.TempDir(), t.TempDir()
	now := start
	clock := Options{writeInterval: time.Hour, Now: func() time.Time { return now }}
	gapsOf := func(dir string, from, to time.Time) (names []string) {
		r, err := OpenReader(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		c, err := r.Coverage(t.Context(), from, to)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range c.Gaps {
			names = append(names, g.Name+": "+g.What)
		}
		return names
	}
	for range 2 { // the process stops normally, and starts again
		closeStore(t, open(t, dir, clock))
	}
	if err := os.CopyFS(older, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, clock)
	s.waiting.addVisit(&activity.Request{Time: start, Host: "h", Crawler: "GPTBot", Path: "/"})
	write(t, s)
	closeStore(t, s)
	s = open(t, dir, clock)
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil { // a copy of the database in the state after a kill
		t.Fatal(err)
	}
	closeStore(t, s)
	soon := t.TempDir()
	if err := os.CopyFS(soon, os.DirFS(copied)); err != nil {
		t.Fatal(err)
	}
	now = start.Add(time.Minute)
	closeStore(t, open(t, soon, clock))
	if got := gapsOf(soon, start.Add(-time.Hour), start.Add(9*time.Hour)); len(got) != 1 {
		t.Errorf("gaps after a kill and a start a minute later: %q", got)
	}
	now = start.Add(maxClosed)
	closeStore(t, open(t, dir, clock))
	if got := gapsOf(dir, start.Add(-time.Hour), start.Add(9*time.Hour)); len(got) > 0 {
		t.Errorf("gaps without a kill: %q", got)
	}
	now = start.Add(3 * time.Hour)
	for what, dir := range map[string]string{"a kill": copied, "an older copy is put back": older} {
		for range 2 { // the gap remains after another restart
			closeStore(t, open(t, dir, clock))
			got := gapsOf(dir, start.Add(-time.Hour), start.Add(9*time.Hour))
			want := GapNotRecorded + ": requests may be missing in 4 hours between 20 November 2026, 22:00 and 21 November 2026, 02:00 UTC: the server was killed, its database was not open, or an older database was restored"
			if len(got) != 1 || got[0] != want {
				t.Errorf("gaps after %s: %q, want %q", what, got, want)
			}
		}
	}
	if got := gapsOf(copied, start.Add(4*time.Hour), start.Add(9*time.Hour)); len(got) > 0 {
		t.Errorf("gaps of a later period: %q", got)
	}
}
