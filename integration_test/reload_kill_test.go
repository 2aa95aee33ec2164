// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// caddyProcess runs Caddy in a process that the test can kill.
type caddyProcess struct {
	*server
	cmd  *exec.Cmd
	name string
	out  bytes.Buffer
}

// newProcess prepares a Caddy with its files in the folder dir/name.
func newProcess(t *testing.T, dir, name, global, body string) *caddyProcess {
	t.Helper()
	p := &caddyProcess{server: &server{t: t, addr: freeAddr(t), dir: filepath.Join(dir, name)}, name: name}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(p.addr)
	p.write("Caddyfile", "{\nadmin off\npersist_config off\nauto_https off\n"+global+"\n}\nhttp://:"+port+" {\n"+body+"\nrespond hello\n}\n")
	t.Cleanup(p.kill)
	return p
}

// run starts the process, and waits until it answers requests.
func (p *caddyProcess) run() {
	p.t.Helper()
	p.out.Reset()
	p.cmd = asCaddyCommand(p.dir, "run", "--config", filepath.Join(p.dir, "Caddyfile"))
	p.cmd.Stderr = &p.out
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	client.CloseIdleConnections()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if resp, err := client.Get("http://" + p.addr + "/"); err == nil {
			resp.Body.Close()
			return
		}
		if time.Now().After(end) {
			p.kill()
			p.t.Fatalf("%s does not start:\n%s", p.name, p.out.String())
		}
	}
}

// kill ends the process immediately, like kill -9.
func (p *caddyProcess) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		p.t.Error(err)
	}
	p.cmd = nil
}

func (p *caddyProcess) disallows(path string) bool {
	p.t.Helper()
	return (&reloading{server: p.server}).disallows(path)
}

// Caddy is killed while its policy file is invalid or missing. When it starts again, it serves the last good policy,
// and logs this.
func TestKillWithABrokenFile(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(disallowing("/a"))
	p := newProcess(t, dir, "one", "", "robots_policy "+policy+" {\nreload 50ms\n}")
	p.run()
	write(disallowing("/b"))
	eventually(t, "an edit", func() bool { return p.disallows("/b") })
	for name, breaking := range map[string]func(){
		"broken": func() { write("version: 1\nrulez: 1\n") }, "gone": func() { _ = os.Remove(policy) },
	} {
		breaking()
		p.kill()
		p.run()
		if !p.disallows("/b") {
			t.Errorf("%s: %s", name, p.get("/robots.txt").body)
		}
		p.kill()
		if out := p.out.String(); !strings.Contains(out, "starting with the last good policy") || !strings.Contains(out, "policy not reloaded") {
			t.Errorf("%s:\n%s", name, out)
		}
		stored, err := filepath.Glob(filepath.Join(p.dir, "data", "caddy", "robots_policy", "last_good", "*"))
		if err != nil || len(stored) != 1 {
			t.Errorf("%s: the saved files are %q; %v", name, stored, err)
		}
		// Although Caddy starts with the invalid policy file, caddy validate rejects the configuration, and a running
		// Caddy does not load it.
		if out, err := asCaddyCommand(p.dir, "validate", "--config", filepath.Join(p.dir, "Caddyfile")).CombinedOutput(); err == nil {
			t.Errorf("%s is valid:\n%s", name, out)
		}
		p.run()
	}
	write(disallowing("/c"))
	eventually(t, "the corrected policy", func() bool { return p.disallows("/c") })
}

// Caddy is killed at a random moment while it loads a change. When it starts again, it serves either the old or the new
// policy completely.
func TestKillWhileReloading(t *testing.T) {
	testkit.Nightly(t)
	t.Parallel()
	if testing.Short() {
		t.Skip("starts Caddy many times")
	}
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	put := func(i int) {
		t.Helper()
		text := disallowing(fmt.Sprintf("/v%d", i))
		if i%3 == 2 {
			text = "version: 1\nrulez: 1\n"
		}
		if err := os.WriteFile(policy+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(policy+".new", policy); err != nil {
			t.Fatal(err)
		}
	}
	put(0)
	p := newProcess(t, dir, "one", "", "robots_policy "+policy+" {\nreload 50ms\n}")
	for i := 1; i <= 6; i++ {
		p.run()
		put(i)
		time.Sleep(time.Duration(i) * 100 * time.Millisecond)
		p.kill()
	}
	p.run()
	if !p.disallows("/v6") {
		t.Error(p.get("/robots.txt").body)
	}
}

// First the web server with the policy is killed, and then Caddy. When Caddy starts again, it still serves the policy.
func TestKillOfThePolicyServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := newPolicyServer(t, disallowing("/a"))
	p := newProcess(t, dir, "one", "", "robots_policy "+server.URL+" {\nreload 1s\n}")
	p.run()
	server.serve(disallowing("/b"))
	eventually(t, "a new policy", func() bool { return p.disallows("/b") })
	server.CloseClientConnections()
	server.Close()
	if !p.disallows("/b") {
		t.Error("without the web server, the policy is not served")
	}
	p.kill()
	p.run()
	if !p.disallows("/b") {
		t.Error("after a start without the web server, the policy is not served")
	}
	l, err := net.Listen("tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	server.serve(disallowing("/c"))
	back := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*server.answer.Load())(w, r) })}
	go func() { _ = back.Serve(l) }()
	defer back.Close()
	eventually(t, "the server is back", func() bool { return p.disallows("/c") })
}

// Two Caddys share a storage. A published policy reaches both of them. If the storage is then killed, they still serve
// this policy, even if they are restarted before the storage works again.
func TestFleet(t *testing.T) {
	t.Parallel()
	for name, storage := range map[string]func(t *testing.T, dir string) (global string, kill func(), restart func()){
		"files": func(_ *testing.T, dir string) (string, func(), func()) {
			root := filepath.Join(dir, "shared")
			return "storage file_system " + root,
				func() { _ = os.Rename(root, root+".away") },
				func() { _ = os.RemoveAll(root); _ = os.Rename(root+".away", root) }
		},
		"redis": func(t *testing.T, dir string) (string, func(), func()) {
			addr := freeAddr(t)
			kill := startRedis(t, dir, addr)
			return "storage test_redis " + addr, kill, func() { startRedis(t, dir, addr) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "redis" {
				testkit.Slow(t)
			}
			t.Parallel()
			dir := t.TempDir()
			global, kill, restart := storage(t, dir)
			const body = "robots_policy storage:robots_policy/site.yaml {\nreload 200ms\n}"
			one, two := newProcess(t, dir, "one", global, body), newProcess(t, dir, "two", global, body)
			publish := func(path string) {
				t.Helper()
				one.write("new.yaml", disallowing(path))
				out, err := asCaddyCommand(one.dir, "robots-policy", "publish", filepath.Join(one.dir, "new.yaml"), "--to", "storage:robots_policy/site.yaml", "--yes",
					"--config", filepath.Join(one.dir, "Caddyfile")).CombinedOutput()
				if !written(err) {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			both := func(path string) func() bool {
				return func() bool { return one.disallows(path) && two.disallows(path) }
			}
			publish("/a")
			one.run()
			two.run()
			if !both("/a")() {
				t.Fatal(one.get("/robots.txt").body)
			}
			publish("/b")
			eventually(t, "both have what was published", both("/b"))
			kill()
			if !both("/b")() {
				t.Error("without the storage, the policy is not served")
			}
			one.kill()
			one.run()
			if !both("/b")() {
				t.Error("after a start without the storage, the policy is not served")
			}
			restart()
			publish("/c")
			eventually(t, "the storage is back", both("/c"))
		})
	}
}
