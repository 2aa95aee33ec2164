// SPDX-License-Identifier: Apache-2.0

package storecmd

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// A year of generated requests has requests on each day.
func TestDemoHasAllDays(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const days = 365
	dir, now := filepath.Join(t.TempDir(), "activity"), time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	n, err := Demo{Name: "site.yaml", Text: "version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n", Hosts: []string{"www.example.com"}, Days: days, Seed: 1, Share: 0.02, Now: now}.Fill(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := store.OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows, err := r.Totals(t.Context(), store.Query{From: now.AddDate(-2, 0, 0), To: now.AddDate(0, 0, 1), By: []store.Dimension{store.ByDay}})
	var sum int64
	for _, row := range rows {
		sum += row.Requests
	}
	if err != nil || len(rows) != days || sum != n {
		t.Errorf("%d days with %d visits, want %d with %d; %v", len(rows), sum, days, n, err)
	}
}

// The size of the queue is not negative, even if the options --days or --share are negative.
func TestDemoQueue(t *testing.T) {
	for _, o := range []Demo{{Days: 30, Share: -1}, {Days: -1}} {
		if n := (&demo{Demo: o, clients: demoClients}).most(); n < 0 {
			t.Errorf("%v days with a share of %v: %d", o.Days, o.Share, n)
		}
	}
}

// The command demo needs only a folder. It writes a policy into the folder, and chooses ports that other programs do
// not use.
func TestDemoFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	var taken []string
	for _, port := range []string{"2020", "2021", "8080"} {
		if l, err := net.Listen("tcp", ":"+port); err == nil { // if listening fails, another program uses the port
			defer l.Close()
		}
		taken = append(taken, ":"+port)
	}
	run := func(args ...string) (string, error) {
		cmd := demoCommand()
		var out, errs strings.Builder
		cmd.SetOut(&out)
		cmd.SetErr(&errs)
		cmd.SetArgs(append(args, "--days", "2", "--share", "0.02"))
		err := cmd.Execute()
		return out.String() + errs.String(), err
	}
	if out, err := run("--policy", "none.yaml"); err == nil {
		t.Errorf("a policy that is not there is no error: %s", out)
	}
	if made, _ := os.ReadDir("."); len(made) > 0 {
		t.Errorf("the command failed, and has made %v", made)
	}
	out, err := run()
	if err != nil || !strings.Contains(out, "caddy run --config caddy-demo/Caddyfile") {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile("caddy-demo/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range taken {
		if strings.Contains(string(text), port+"\n") || strings.Contains(string(text), port+" ") {
			t.Errorf("it uses the port %s, which is taken:\n%s", port, text)
		}
	}
	if out, err = run(); err == nil || !strings.Contains(out, "already has an activity database") {
		t.Errorf("a second time: %v\n%s", err, out)
	}
	if out, err = run("activity"); err == nil || !strings.Contains(out, "add --policy with the policy file of the server that uses the directory activity") {
		t.Errorf("a directory without a policy: %v\n%s", err, out)
	}
	if out, err = run("activity", "--policy", "caddy-demo/site-policy.yaml"); err != nil || !strings.Contains(out, "activity activity") {
		t.Errorf("a directory: %v\n%s", err, out)
	}
}
