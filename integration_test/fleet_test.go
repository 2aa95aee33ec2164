// SPDX-License-Identifier: Apache-2.0

//go:build unix

package integration_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/activity/store/clickhouse"
	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/clickhousetest"
)

// fleetCounts counts the requests of a crawler.
type fleetCounts struct{ requests, violations int64 }

// fleetTest has three servers behind a load balancer, with one storage and one ClickHouse.
type fleetTest struct {
	t            *testing.T
	dir          string
	sites, admin []string
	nodes        []*exec.Cmd
	truth        map[string]fleetCounts
	slowest      time.Duration
	turn         int
}

func (f *fleetTest) run(i int) {
	f.t.Helper()
	log, err := os.OpenFile(filepath.Join(f.dir, fmt.Sprintf("log-%d", i)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	defer log.Close()
	cmd := asCaddyCommand(filepath.Join(f.dir, fmt.Sprint("home-", i)), "run", "--adapter", "caddyfile", "--config", filepath.Join(f.dir, fmt.Sprintf("server-%d.caddyfile", i)))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.nodes[i] = cmd
	eventually(f.t, "a server answers", func() bool {
		resp, err := http.Get("http://" + f.admin[i] + "/config/")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil
	})
}

// visit sends a request of a crawler to the server with the index node. If node is negative, it uses the next running
// server in turn. It also counts the request and, if violation is true, the violation in f.truth.
func (f *fleetTest) visit(node int, crawler, path string, violation bool) {
	f.t.Helper()
	for node < 0 || f.nodes[node] == nil {
		f.turn++
		node = f.turn % len(f.nodes)
	}
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, "http://"+f.sites[node]+path, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	r.Host = "www.example.com"
	r.Header.Set("User-Agent", crawler+"/1.0")
	began := time.Now()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	f.slowest = max(f.slowest, time.Since(began))
	c := f.truth[crawler]
	c.requests++
	if violation {
		c.violations++
	}
	f.truth[crawler] = c
}

// traffic sends requests of crawlers for some time.
func (f *fleetTest) traffic(d time.Duration) {
	f.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		f.visit(-1, "GPTBot", fmt.Sprint("/members/", f.turn%50), true)
		f.visit(-1, "Googlebot", fmt.Sprint("/news/", f.turn%50), false)
	}
}

// ClickHouse, a server and the storage fail in turn. Nevertheless, the totals in the fleet database equal the numbers
// of requests that the test has sent. If a crawler reads robots.txt from one server and violates it on a second server,
// the violation is counted, even after a restart. The first request of each crawler is counted, too.
func TestFleetCountsTheTruth(t *testing.T) {
	testkit.Nightly(t)
	t.Parallel()
	away, stalled := 40*time.Second, 20*time.Second
	server := clickhousetest.Start(t)
	dir := t.TempDir()
	addrs := caddytest.FreeAddrs(t, 7)
	_, redis := runRedis(t, dir, addrs[6])
	admin := clickhouse.Client{URL: server.URL("default")}
	if err := admin.Exec(t.Context(), "CREATE DATABASE robots"); err != nil {
		t.Fatal(err)
	}
	if out, err := asCaddyCommand(dir, "robots-policy", "activity-schema", server.URL("robots"), "--apply").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	storage := &redisStorage{Address: addrs[6]}
	if err := storage.Store(t.Context(), "site.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: /members/}\n    enforce: log\n")); err != nil {
		t.Fatal(err)
	}
	f := &fleetTest{t: t, dir: dir, sites: addrs[:3], admin: addrs[3:6], nodes: make([]*exec.Cmd, 3), truth: map[string]fleetCounts{}}
	t.Cleanup(func() {
		for _, n := range f.nodes {
			if n != nil {
				_ = n.Process.Kill()
				_ = n.Wait() // it was killed
			}
		}
	})
	for i := range f.nodes {
		text := fmt.Sprintf(`{
	admin %s
	persist_config off
	auto_https off
	storage test_redis %s
	robots_policy {
		fleet server-%[3]d {
			interval 1s
		}
		activity %[4]s {
			fleet_database %[5]s {
				every 1s
			}
			name server-%[3]d
		}
	}
}
http://%[6]s, http://www.example.com:%[7]s {
	robots_policy storage:site.yaml
	respond "hello"
}
`, f.admin[i], addrs[6], i, filepath.Join(dir, fmt.Sprint("activity-", i)), server.URL("robots"), f.sites[i], f.sites[i][strings.LastIndexByte(f.sites[i], ':')+1:])
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("server-%d.caddyfile", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f.run(i)
	}
	told := func() { time.Sleep(6 * time.Second) } // until all servers have received the data of each server

	f.visit(1, "CCBot", "/", false) // the first and only request of this crawler
	f.visit(0, "GPTBot", "/robots.txt", false)
	told()
	for range 30 {
		f.visit(-1, "GPTBot", "/members/", true)
	}
	f.traffic(2 * time.Second)

	server.Kill()
	f.traffic(away)
	time.Sleep(3 * time.Second) // a killed server loses the data of its last second
	_ = f.nodes[1].Process.Kill()
	_ = f.nodes[1].Wait() // it was killed
	f.nodes[1] = nil
	f.traffic(5 * time.Second)
	eventually(t, "a server is missing", func() bool { return f.metric(0, `caddy_robots_policy_fleet_servers{state="missing"}`) == "1" })
	if m := f.metric(0, "caddy_robots_policy_fleet_database_behind_seconds"); m == "0" || m == "" {
		t.Errorf("%q seconds behind while ClickHouse is not running", m)
	}
	f.run(1)
	told()
	f.traffic(2 * time.Second)
	for range 10 {
		f.visit(1, "GPTBot", "/members/after-a-restart", true)
	}
	server.Run()
	f.traffic(2 * time.Second)

	f.slowest = 0
	server.Hang()
	f.traffic(away)
	server.Resume()
	if f.slowest > away*3/4 {
		t.Errorf("a request took %s while ClickHouse hung", f.slowest)
	}

	f.slowest = 0
	if err := redis.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	f.traffic(stalled)
	if f.slowest > stalled*3/4 {
		t.Errorf("a request took %s while the storage hung", f.slowest)
	}
	if err := redis.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	f.visit(2, "Bingbot", "/robots.txt", false)
	told()
	told()
	for range 5 {
		f.visit(1, "Bingbot", "/members/after-the-storage-hung", true)
	}

	fleet := store.FleetReader{Client: clickhouse.Client{URL: server.URL("robots")}}
	var got map[string]fleetCounts
	for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); time.Sleep(time.Second) {
		got = map[string]fleetCounts{}
		rows, err := fleet.Totals(context.WithoutCancel(t.Context()), store.Query{
			From: time.Now().Add(-48 * time.Hour), To: time.Now().Add(time.Hour), By: []store.Dimension{store.ByCrawler}, Only: map[store.Dimension][]string{store.ByHost: {"www.example.com"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			got[r.Values[store.ByCrawler]] = fleetCounts{r.Requests, r.Violations}
		}
		if maps.Equal(got, f.truth) {
			break
		}
	}
	t.Logf("the truth and the totals of three servers:\n%v\n%v", f.truth, got)
	if !maps.Equal(got, f.truth) {
		t.Errorf("the totals of the fleet are %v, the truth is %v", got, f.truth)
	}
	if nodes, err := fleet.Nodes(t.Context()); err != nil || len(nodes) != 3 {
		t.Errorf("%+v, %v", nodes, err)
	}
	if m := f.metric(0, `caddy_robots_policy_fleet_servers{state="alive"}`); m != "3" {
		t.Errorf("%q servers are alive, want 3", m)
	}
}

// metric reads a metric of a server.
func (f *fleetTest) metric(node int, name string) string {
	f.t.Helper()
	resp, err := http.Get("http://" + f.admin[node] + "/metrics")
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// The script in examples/fleet finds that the totals equal the requests that it has sent.
func TestExampleFleet(t *testing.T) {
	testkit.Nightly(t)
	t.Parallel()
	for _, p := range []string{"clickhouse-server", "curl", "bash"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed", p)
		}
	}
	dir := t.TempDir()
	like := asCaddyCommand(dir)
	program := filepath.Join(dir, "caddy")
	text := "#!/bin/sh\nexec env"
	for _, v := range like.Env[len(os.Environ()):] {
		text += " '" + v + "'"
	}
	if err := os.WriteFile(program, []byte(text+" '"+like.Path+"' \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "../examples/fleet/run", "3")
	cmd.Env = append(os.Environ(), "CADDY="+program, fmt.Sprint("PORTS=", freePorts(t, 13)))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "the totals are right\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The compose file sets all variables of the Caddyfile for each server, and mounts only files that exist.
func TestComposeOfTheFleet(t *testing.T) {
	const dir = "../examples/fleet/"
	var file struct {
		Services map[string]struct {
			Environment map[string]string
			Volumes     []string
			Build       struct{ Context, Dockerfile string }
		}
	}
	text, err := os.ReadFile(dir + "compose.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err = os.ReadFile(dir + "Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"server-1", "server-2", "server-3", "policy"} {
		s := file.Services[name]
		if s.Environment["SERVER"] != name || s.Build.Context != "../.." {
			t.Errorf("%s: %+v", name, s)
		}
		for k, v := range s.Environment {
			// This program does not contain the storage module for Redis. The test module that replaces it has a
			// different syntax.
			t.Setenv(k, strings.ReplaceAll(v, "redis {\n  address redis:6379\n}", "test_redis redis:6379"))
		}
		if _, warnings, err := adapt(string(text)); err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v %v", name, err, warnings)
		}
		if _, err := os.Stat(dir + s.Build.Context + "/" + s.Build.Dockerfile); err != nil {
			t.Error(err)
		}
	}
	for name, s := range file.Services {
		for _, v := range s.Volumes {
			if from, _, _ := strings.Cut(v, ":"); strings.HasPrefix(from, ".") {
				if _, err := os.Stat(dir + from); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

// freePorts returns the first port of n consecutive free ports.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	for range 100 {
		_, port, _ := net.SplitHostPort(freeAddr(t))
		first, err := strconv.Atoi(port)
		free := err == nil && first+n < 1<<16
		for i := range n {
			if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", first+i)); err != nil {
				free = false
			} else {
				_ = l.Close()
			}
		}
		if free {
			return first
		}
	}
	t.Fatal("no ports are free")
	return 0
}
