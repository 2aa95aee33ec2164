// SPDX-License-Identifier: Apache-2.0

// Command replay compares `caddy robots-policy replay` with GoAccess and DuckDB on the same generated logs. It also
// checks every number of the report against the requests that the logs were made from. Run it with:
//
//	go -C bench run ./replay -mb 1000 -node-modules DIR
//
// DIR has the npm package @duckdb/node-api. Tools that are not installed are left out of the table. If nginx is
// installed, the command also starts nginx, sends requests to it, and replays the log that nginx writes.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
)

func main() {
	mb := flag.Int("mb", 1000, "the size of Caddy's log in megabytes")
	seed := flag.Uint64("seed", 1, "of the traffic")
	modules := flag.String("node-modules", "", "the folder node_modules that has @duckdb/node-api")
	visits := flag.Int("nginx", 20_000, "how many requests to send to nginx")
	flag.Parse()
	if err := run(*mb, *seed, *modules, *visits); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// bench holds the folder with the logs and policies, and the results.
type bench struct {
	dir, caddy, modules string
	rows                []row
}

// row is a line of the printed table of results.
type row struct {
	tool, log string
	bytes     int64
	usage
	note string
}

func run(mb int, seed uint64, modules string, visits int) error {
	dir, err := os.MkdirTemp("", "replay-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir, caddy: filepath.Join(dir, "caddy"), modules: modules}
	build := exec.Command("go", "build", "-o", b.caddy, "./cmd/caddy")
	build.Dir = ".." // the folder of the module bench
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building Caddy (run this in the folder bench): %w\n%s", err, out)
	}
	for name, text := range map[string]string{"new.yaml": newPolicy, "old.yaml": oldPolicy} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	const caddyLine, combinedLine = 1010, 205 // approximate lengths of a log line, in bytes
	lines := mb * 1_000_000 / caddyLine
	for _, l := range []struct {
		name, goaccess string
		lines          int
		combined       bool
	}{{"access.log", "CADDY", lines, false}, {"combined.log", "COMBINED", lines, true}} {
		if err := b.log(l.name, l.goaccess, seed, l.lines, l.combined); err != nil {
			return err
		}
	}
	if visits > 0 {
		if err := b.nginx(seed, visits); err != nil {
			return err
		}
	}
	b.print(lines)
	return nil
}

// log writes a log with the given number of generated lines, and measures every tool on it. format is GoAccess's name
// for the log's format. If combined is true, the log has the Combined format, and otherwise the format of Caddy.
func (b *bench) log(name, format string, seed uint64, lines int, combined bool) error {
	path := filepath.Join(b.dir, name)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	t, err := write(f, seed, lines, combined)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := b.replay(name, t); err != nil {
		return err
	}
	if _, err := exec.LookPath("goaccess"); err == nil {
		args := []string{path, "--log-format=" + format, "-o", filepath.Join(b.dir, "goaccess.json"), "--no-progress"}
		if err := b.measure("GoAccess", name, exec.Command("goaccess", args...), "its panels, claimed User-Agents only"); err != nil {
			return err
		}
	}
	if b.modules != "" && !combined {
		cmd := exec.Command("node", "-e", duckQuery, path)
		cmd.Env = append(os.Environ(), "NODE_PATH="+b.modules)
		if err := b.measure("DuckDB", name, cmd, "one query that counts by User-Agent"); err != nil {
			return err
		}
	}
	return os.Remove(path)
}

const duckQuery = `const {DuckDBInstance} = require('@duckdb/node-api');
(async () => {
  const c = await (await DuckDBInstance.create(':memory:')).connect();
  const r = await c.runAndReadAll("SELECT request.headers.\"User-Agent\"[1] AS ua, count(*) AS n, sum(size) FROM read_ndjson('" + process.argv[1] + "', columns={ts: 'DOUBLE', size: 'BIGINT', request: 'STRUCT(uri VARCHAR, headers STRUCT(\"User-Agent\" VARCHAR[]))'}) GROUP BY ua ORDER BY n DESC");
  if (r.getRows().length === 0) process.exit(1);
})().catch(e => { console.error(e); process.exit(1) })`

// replay measures `caddy robots-policy replay` on a log, and checks the report.
func (b *bench) replay(name string, t *truth, flags ...string) error {
	cmd := exec.Command(b.caddy, append([]string{"robots-policy", "replay", "new.yaml", "--against", "old.yaml", "--json", name}, flags...)...)
	cmd.Dir = b.dir
	var out strings.Builder
	cmd.Stdout = &out
	if err := b.measure("replay", name, cmd, "every number checked"); err != nil {
		return err
	}
	var r replay.Report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		return err
	}
	if err := t.check(&r); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if most := int64(300 << 20); b.rows[len(b.rows)-1].memory > most {
		return fmt.Errorf("%s: replay took %d MB of memory, more than 300", name, b.rows[len(b.rows)-1].memory>>20)
	}
	return nil
}

// usage holds the time and memory of a command.
type usage struct {
	wall, cpu time.Duration
	memory    int64 // peak memory in bytes; 0 if the system does not report it
}

func (b *bench) measure(tool, log string, cmd *exec.Cmd, note string) error {
	var stderr strings.Builder
	cmd.Stderr = &stderr
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s on %s: %w\n%s", tool, log, err, stderr.String())
	}
	u := usage{wall: time.Since(began), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	u.memory = peakMemory(cmd.ProcessState)
	size := int64(0)
	if info, err := os.Stat(filepath.Join(b.dir, log)); err == nil {
		size = info.Size()
	}
	b.rows = append(b.rows, row{tool, log, size, u, note})
	return nil
}

func (b *bench) print(lines int) {
	fmt.Printf("%d requests in each generated log; %d CPUs\n\n", lines, runtime.NumCPU())
	fmt.Println("| tool | log | MB | seconds | CPU seconds | MB/s | memory, MB | |")
	fmt.Println("|---|---|---:|---:|---:|---:|---:|---|")
	for _, r := range b.rows {
		fmt.Printf("| %s | %s | %d | %.2f | %.2f | %.0f | %d | %s |\n", r.tool, r.log, r.bytes/1_000_000, r.wall.Seconds(), r.cpu.Seconds(),
			float64(r.bytes)/1e6/r.wall.Seconds(), r.memory>>20, r.note)
	}
}

// difference returns the place where two texts first differ, with some lines around it.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			from := max(0, i-8)
			return fmt.Sprintf("line %d\nthe truth:\n%s\nthe report:\n%s", i+1, strings.Join(w[from:min(len(w), i+4)], "\n"), strings.Join(g[from:min(len(g), i+4)], "\n"))
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}
