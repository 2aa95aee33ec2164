// SPDX-License-Identifier: Apache-2.0

package storecmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/activity/store/clickhouse"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/clickhousetest"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

func execute(cmd *cobra.Command, args ...string) string {
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil && !strings.Contains(out.String(), err.Error()) {
		fmt.Fprintln(&out, err)
	}
	return out.String()
}

// The commands print the same results for the fleet database in ClickHouse and for the activity database of a single
// server. The test creates the tables, replays the same requests, and deletes rows in both databases.
func TestCommandsOnBothEngines(t *testing.T) {
	t.Parallel()
	server := clickhousetest.Start(t)
	ctx := t.Context()
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := server.URL("robots") + "?user=reader&password_file=" + password
	if out := execute(schemaCommand()); !strings.Contains(out, "CREATE TABLE IF NOT EXISTS path_hours (") {
		t.Error(out)
	}
	if out := execute(schemaCommand(), server.URL("robots"), "--apply"); !strings.Contains(out, "robots") || strings.Contains(out, "done") {
		t.Errorf("without a database: %s", out)
	}
	admin := clickhouse.Client{URL: server.URL("default")}
	if err := admin.Exec(ctx, "CREATE DATABASE robots"); err != nil {
		t.Fatal(err)
	}
	if out := execute(schemaCommand(), address, "--apply"); !strings.Contains(out, "readonly") {
		t.Errorf("a user who may only read: %s", out)
	}
	for range 2 {
		if out := execute(schemaCommand(), server.URL("robots"), "--apply"); strings.Count(out, "started: CREATE TABLE") != 11 {
			t.Error(out)
		}
	}
	dir := t.TempDir()
	s, err := store.Open(ctx, dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		s.Record(activity.Request{
			Time: time.Now().Add(-time.Duration(rnd.IntN(4*24)) * time.Hour), Host: "www.example.com", Path: fmt.Sprint("/p/", rnd.IntN(20)), Bytes: 10,
			Crawler: []string{"GPTBot", "Googlebot"}[rnd.IntN(2)], Category: "search", Identity: activity.Verified, Decision: activity.Allowed, Policy: "p",
		})
	}
	closed := func(s *store.Store) {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	closed(s) // closing merges the totals
	s, err = store.Open(ctx, dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	s.SendTo(store.Fleet{Client: clickhouse.Client{URL: server.URL("robots")}, Node: "a", Every: time.Hour, Report: func(err error) { sent <- err }})
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	closed(s)
	policies := make([]*site.Site, 2)
	for i, rules := range []string{"[{for: Googlebot, disallow: {crawl: /none/}}]", "[{for: Googlebot, disallow: {crawl: /p/1}, enforce: block, intended: true}]"} {
		var ds any
		if policies[i], ds = site.Load("site.yaml", []byte("version: 1\nrules: "+rules+"\n")); policies[i] == nil {
			t.Fatal(ds)
		}
	}
	report := func(name string) string {
		t.Helper()
		r, err := openStore(context.WithoutCancel(ctx), name)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		found, err := replay.Run(ctx, replay.Options{Old: policies[0], New: policies[1], Stored: r.EachRow, StoreName: "the activity database"})
		if err != nil {
			t.Fatal(err)
		}
		found.Coverage.Servers = nil // only the coverage of a fleet has servers
		text, err := json.Marshal(found)
		if err != nil || found.Requests == 0 || len(found.NewlyRefused) == 0 {
			t.Fatalf("%s, %v: nothing to compare", text, err)
		}
		return string(text)
	}
	if one, all := report(dir), report(address); one != all {
		t.Errorf("of the activity database:\n%s\nof the fleet:\n%s", one, all)
	}
	if _, err := openStore(ctx, "http://h"); err == nil {
		t.Error("an address without a database is opened")
	}

	if out := execute(forgetCommand(), dir, "--crawler", "Googlebot"); !strings.Contains(out, "ALTER TABLE hours DELETE WHERE crawler = 'Googlebot';") {
		t.Error(out)
	}
	if out := execute(forgetCommand(), dir, "--crawler", "GPTBot", "--clickhouse", server.URL("robots")); !strings.Contains(out, "started: ALTER TABLE path_days DELETE") {
		t.Error(out)
	}
	if out := execute(schemaCommand(), server.URL("robots"), "--prune", "--months", "0"); !strings.Contains(out, "must be 1 or more") {
		t.Error(out)
	}
}
