// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asProgram names the environment variable that makes the test program work as the example, so that no test has to
// build the example.
const asProgram = "ROBOTSPOLICY_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	m.Run()
}

// TestRun runs the program, and sends requests of crawlers and people.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	policy := filepath.Join(dir, "site-policy.yaml")
	write := func(path string) {
		t.Helper()
		text := "version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: " + path + "}\n    enforce: block\n"
		if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("/")
	cmd := exec.Command(os.Args[0], "-listen", "127.0.0.1:0", "-policy", policy, "-folder", "../site")
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	get := func(path, agent string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User-Agent", agent)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if status, body := get("/robots.txt", "GPTBot/1.2"); status != 200 || !strings.Contains(body, "User-agent: GPTBot\nDisallow: /\n") {
		t.Errorf("robots.txt: %d\n%s", status, body)
	}
	if status, body := get("/", "GPTBot/1.2"); status != 403 {
		t.Errorf("GPTBot: %d\n%s", status, body)
	}
	if status, body := get("/", "Mozilla/5.0 Firefox/150.0"); status != 200 {
		t.Errorf("a browser: %d\n%s", status, body)
	}
	if _, body := get("/metrics", "Prometheus"); !strings.Contains(body, `caddy_robots_policy_decisions_total{channel="blocking",crawler="GPTBot",decision="blocked"`) {
		t.Errorf("metrics:\n%s", body)
	}
	write("/private/")
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		status, _ := get("/", "GPTBot/1.2")
		if status == 200 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after the policy has changed: %d", status)
		}
	}
}

// TestLinks checks that a program that imports only package handler contains neither Caddy nor a database.
func TestLinks(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	for _, p := range packages {
		for _, unwanted := range []string{"github.com/caddyserver/", "sqlite", "modernc.org/", "database/sql"} {
			if strings.Contains(p, unwanted) {
				t.Errorf("the program links %s", p)
			}
		}
	}
	if len(packages) < 100 {
		t.Errorf("only %d packages", len(packages))
	}
}
