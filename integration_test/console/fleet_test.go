// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
)

// engines are the servers of PromQL that the console is tried with, each with how it is
// started: with a file of what to scrape, a folder and an address.
var engines = []struct {
	name, program string
	args          func(config, dir, addr string) []string
}{
	{"Prometheus", "prometheus", func(config, dir, addr string) []string {
		return []string{"--config.file=" + config, "--storage.tsdb.path=" + dir, "--web.listen-address=" + addr}
	}},
	{"VictoriaMetrics", "victoria-metrics", func(config, dir, addr string) []string {
		return []string{"-promscrape.config=" + config, "-storageDataPath=" + dir, "-httpListenAddr=" + addr, "-search.latencyOffset=0s"}
	}},
}

// start runs a program until the test ends.
func start(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %.3000s", cmd.Path, out.String())
		}
	})
	return cmd
}

// page is the text of a page of the console, without markup and with spaces in place of
// line ends; empty while nobody answers.
func page(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return fmt.Sprintf("status %d: %s", response.StatusCode, body)
	}
	return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(string(body), " ")), " ")
}

// TestFleet runs three Caddys and a real server of PromQL, and reads the console of one.
func TestFleet(t *testing.T) {
	if !caddytest.Long() {
		t.Skip("three servers and two metrics engines take half a minute: set ROBOTSPOLICY_LONG")
	}
	if testing.Short() {
		t.Skip("starts four programs")
	}
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			program, err := exec.LookPath(engine.program)
			if err != nil {
				t.Skipf("no %s: apt-get install %[1]s", engine.program)
			}
			dir := t.TempDir()
			addrs := caddytest.FreeAddrs(t, 8) // three sites, three admin APIs, the console, the engine
			config := filepath.Join(dir, "scrape.yml")
			text := "scrape_configs:\n  - job_name: caddy\n    scrape_interval: 1s\n    static_configs:\n      - targets: [" + strings.Join(addrs[3:6], ", ") + "]\n"
			if err := os.WriteFile(config, []byte("global: {scrape_interval: 1s}\n"+text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "site.yaml"), []byte(policyText), 0o600); err != nil {
				t.Fatal(err)
			}
			_, port, _ := strings.Cut(addrs[6], ":")
			nodes := make([]*exec.Cmd, 3)
			for i := range nodes {
				console := ""
				if i == 0 {
					console = "console localhost:" + port + " {\nprometheus http://" + addrs[7] + "\n}"
				}
				caddyfile := filepath.Join(dir, fmt.Sprintf("Caddyfile%d", i))
				err := os.WriteFile(caddyfile, []byte(fmt.Sprintf("{\nadmin %s\nauto_https off\nrobots_policy {\nmetrics hosts\n%s\n}\n}\nhttp://:%s {\nrobots_policy %s\nrespond ok\n}\n",
					addrs[3+i], console, addrs[i][strings.LastIndexByte(addrs[i], ':')+1:], filepath.Join(dir, "site.yaml"))), 0o600)
				if err != nil {
					t.Fatal(err)
				}
				nodes[i] = start(t, caddytest.Command(filepath.Join(dir, strconv.Itoa(i)), "run", "--config", caddyfile, "--adapter", "caddyfile"))
			}
			start(t, exec.Command(program, engine.args(config, filepath.Join(dir, "data"), addrs[7])...))
			at := "http://localhost:" + port + "/"
			wait(t, func() (string, bool) {
				text := page(t, at+"health")
				return text, strings.Contains(text, "3 nodes in the fleet") && !strings.Contains(text, "Not heard")
			})
			// Every series exists before it grows, as it does in a fleet that runs.
			visits := func(times int) {
				for range times {
					for i := range nodes {
						n := &newsroom{t: t, site: "http://" + addrs[i]}
						n.visit("Mozilla/5.0 (compatible; Bingbot/2.0)", "www.example.com", "/news/")
						n.visit("Mozilla/5.0 (compatible; GPTBot/1.1)", "www.example.com", "/news/")
					}
				}
			}
			visits(1)
			time.Sleep(4 * time.Second)
			const times = 40
			visits(times)
			wait(t, func() (string, bool) {
				text := page(t, at+"who-came")
				return text, requests(text, "Bingbot") >= 3*times && requests(text, "GPTBot") >= 3*times
			})
			if n := requests(page(t, at+"who-came"), "Bingbot"); n > 3*times*2 {
				t.Errorf("%d requests of Bingbot, %d were sent", n, 3*times+3)
			}
			wait(t, func() (string, bool) {
				text := page(t, at)
				return text, strings.Contains(text, "Numbers of the whole fleet") && requests(text, "GPTBot") > 0 && !strings.Contains(text, "do not serve the same policy")
			})
			if text := page(t, at+"crawler?name=GPTBot"); !strings.Contains(text, "are on each node") {
				t.Errorf("the page of a crawler does not say where paths are: %.600s", text)
			}
			// A node that is gone is named.
			_ = nodes[2].Process.Kill()
			wait(t, func() (string, bool) {
				text := page(t, at+"health")
				return text, strings.Contains(text, "1 node has not been heard of") && strings.Contains(text, addrs[5])
			})
		})
	}
}

// requests is the number in the row of a crawler in a table.
func requests(text, crawler string) int {
	m := regexp.MustCompile(regexp.QuoteMeta(crawler) + ` [^0-9]*?([0-9][0-9,]*) `).FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
	return n
}

// wait tries until something holds, for at most two minutes: the machine may be busy.
func wait(t *testing.T, holds func() (string, bool)) {
	t.Helper()
	last := ""
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		text, ok := holds()
		if ok {
			return
		}
		last = text
	}
	t.Fatalf("still not: %.3000s", last)
}
