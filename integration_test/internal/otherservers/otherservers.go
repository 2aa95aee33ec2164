// SPDX-License-Identifier: Apache-2.0

// Package otherservers runs the recipes for nginx and HAProxy of examples/other-servers
// on loopback ports.
package otherservers

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
)

// Recipe returns the text of a file of examples/other-servers. root is the path to the root of
// the repository.
func Recipe(t testing.TB, root, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "examples", "other-servers", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Nginx starts nginx. text is the content of its http block, which can include the snippets from
// examples/other-servers. Nginx waits until the server answers at addrs, and returns its process. If nginx is not
// installed, the test is skipped.
func Nginx(t testing.TB, root, text string, addrs ...string) *os.Process {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"robots-policy-proxy.conf", "robots-policy-document.conf"} {
		write(t, dir, filepath.Join("snippets", name), Recipe(t, root, name))
	}
	text = strings.ReplaceAll(text, "/var/cache/", dir+"/")
	write(t, dir, "site.conf", text)
	write(t, dir, "nginx.conf", "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log nginx.log crit;\nevents { worker_connections 1024; }\n"+
		"http {\naccess_log off;\nclient_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;\n"+
		"types { text/html html; }\ninclude site.conf;\n}\n")
	return Run(t, filepath.Join(dir, "nginx.log"), addrs, "nginx", "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
}

// HAProxy starts an HAProxy with a configuration. lua is the text of robots-policy.lua. If HAProxy is not installed,
// the test is skipped.
func HAProxy(t testing.TB, text, lua string, addrs ...string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "robots-policy.lua", lua)
	write(t, dir, "haproxy.cfg", strings.ReplaceAll(text, "/etc/haproxy", dir))
	Run(t, "", addrs, "haproxy", "-db", "-f", filepath.Join(dir, "haproxy.cfg"))
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Run starts a program and waits until it answers at all addresses. It skips the test if
// the program is not installed. log is the name of a file to show if the test fails, or "".
func Run(t testing.TB, log string, addrs []string, name string, args ...string) *os.Process {
	t.Helper()
	path := find(name)
	if path == "" {
		t.Skip(name + " is not installed")
	}
	var out strings.Builder
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	// A worker process of a killed program can keep the output open until its connections end, and Caddy closes idle
	// connections only after two minutes. So do not wait for the end of the output.
	cmd.WaitDelay = 100 * time.Millisecond
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if text, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("%s logged %s", name, text)
		}
	})
	for _, addr := range addrs {
		for !answers(addr) {
			select {
			case <-ended:
				t.Fatalf("%s: %s", name, out.String())
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return cmd.Process
}

// Installed reports whether Run can find a program.
func Installed(name string) bool { return find(name) != "" }

// find returns the path of a program, or "" if it is not installed. On Debian, servers are in directories that only
// root has in PATH.
func find(name string) string {
	for _, name := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func answers(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	return c.Close() == nil
}

// Decider returns the Caddyfile of a Caddy that only decides about requests, because a different server, such as nginx,
// asks it. Caddy listens at addr. style is the protocol in which the other server asks. activity contains global
// options, such as the activity database, or is "".
func Decider(addr, style, policy, activity string) string {
	return "{\nadmin off\npersist_config off\nauto_https off\nlog {\noutput discard\n}\n" + activity +
		"servers {\ntrusted_proxies static 127.0.0.1/32\ntrusted_proxies_strict\n}\n}\n" +
		"http://:" + port(addr) + " {\nbind 127.0.0.1\nrobots_policy_decide " + policy + " {\nstyle " + style + "\n}\n}\n"
}

func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}

// Addrs returns free addresses for a server, for the Caddy that it asks, and for the application behind it.
func Addrs(t testing.TB) (server, decider, app string) {
	t.Helper()
	a := caddytest.FreeAddrs(t, 3)
	return a[0], a[1], a[2]
}
