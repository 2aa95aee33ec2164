// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/otherservers"
)

// longerThanCaddyMayTake is longer than two seconds. The recipes wait at most two seconds for a decision of Caddy, but
// a page of the site may take longer.
const longerThanCaddyMayTake = 2500 * time.Millisecond

// pagesServer is a server of a Linux distribution that runs with a copy of its files in a folder.
type pagesServer struct {
	t                          *testing.T
	kind, style, dir           string
	front, decider, plain, app string
}

// here adapts a text to this test. The text comes from a recipe, or from the configuration of the Linux distribution.
// here replaces paths and addresses with the paths and addresses of the test.
func (s *pagesServer) here(text string) string {
	port := func(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }
	text = strings.NewReplacer("/etc/"+s.kind, s.dir+"/etc/"+s.kind, "/etc/default", s.dir+"/etc/default", "/var/cache/", s.dir+"/",
		"/var/log/", s.dir+"/", "/run/", s.dir+"/", "127.0.0.1:9180", s.decider, "127.0.0.1:8000", s.app,
		"listen 80;", "listen "+s.front+";", "bind :80", "bind "+s.front, "sudo ", "").Replace(text)
	// The default site of the distribution answers requests for other host names, so it must listen on the same port.
	text = regexp.MustCompile(`listen (\[::\]:)?80 default_server`).ReplaceAllString(text, "listen ${1}"+port(s.front)+" default_server")
	// Remove lines such as "user", because only root can start processes as another user, and only root needs to.
	return regexp.MustCompile(`(?m)^\s*(user|group|chroot|daemon|log /dev/log).*$`).ReplaceAllString(text, "")
}

// copyFiles copies the files of a folder, and replaces the paths and addresses in them.
func (s *pagesServer) copyFiles(from, to string) {
	s.t.Helper()
	if out, err := exec.Command("cp", "-rL", from, to).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	err := filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(s.here(string(text))), 0o644)
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// install runs the commands that docs/how-to/other-servers.md shows for a server, and starts the server.
func (s *pagesServer) install(heading string) {
	s.t.Helper()
	page, err := os.ReadFile("../docs/how-to/other-servers.md")
	if err != nil {
		s.t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n### "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n### ")
	var commands strings.Builder
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
		commands.WriteString(block[1])
	}
	if !ok || commands.Len() == 0 {
		s.t.Fatalf("the page has no commands for %s", heading)
	}
	if err := os.MkdirAll(filepath.Join(s.dir, "etc/default"), 0o755); err != nil {
		s.t.Fatal(err)
	}
	for _, name := range []string{"nginx", "haproxy"} { // directories for logs and sockets
		if err := os.MkdirAll(filepath.Join(s.dir, name), 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	s.copyFiles("/etc/"+s.kind, filepath.Join(s.dir, "etc", s.kind))
	if err := os.Mkdir(filepath.Join(s.dir, "examples"), 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.copyFiles("../examples/other-servers", filepath.Join(s.dir, "examples/other-servers"))
	script := "systemctl() { :; }\nnginx() { command nginx -c " + s.dir + "/etc/nginx/nginx.conf \"$@\"; }\n" + s.here(commands.String())
	cmd := exec.Command("bash", "-euc", script)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s\n%s", err, out, script)
	}
	etc := filepath.Join(s.dir, "etc", s.kind)
	if s.kind == "nginx" {
		otherservers.Run(s.t, filepath.Join(s.dir, "nginx/error.log"), []string{s.front}, "nginx", "-c", etc+"/nginx.conf", "-g", "daemon off; master_process off;")
		return
	}
	options, err := os.ReadFile(filepath.Join(s.dir, "etc/default/haproxy"))
	if err != nil || !strings.Contains(string(options), "-f "+etc+"/robots-policy.cfg") {
		s.t.Fatalf("%s: %v", options, err)
	}
	otherservers.Run(s.t, "", []string{s.front}, "haproxy", "-db", "-f", etc+"/haproxy.cfg", "-f", etc+"/robots-policy.cfg")
}

// TestOtherServersAsThePagePrints copies the configuration of nginx or HAProxy that the Linux distribution has
// installed. It then installs the recipes in this copy, with the commands in docs/how-to/other-servers.md. robots.txt
// is still served when Caddy is down, and slow pages are not cut off.
func TestOtherServersAsThePagePrints(t *testing.T) {
	for kind, heading := range map[string]string{"nginx": "nginx", "haproxy": "HAProxy"} {
		t.Run(kind, func(t *testing.T) {
			if _, err := os.Stat("/etc/" + kind); err != nil || !otherservers.Installed(kind) {
				t.Skip(kind + " is not installed")
			}
			app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					time.Sleep(longerThanCaddyMayTake)
				}
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, "<title>page</title> of "+r.Host)
			}))
			t.Cleanup(app.Close)
			s := newServer(t, t.TempDir(), strings.ReplaceAll(decidedPolicy, "STATUS", "block"), nil)
			front, decider, _ := otherservers.Addrs(t)
			p := &pagesServer{t: t, kind: kind, dir: s.dir, front: front, decider: decider, app: app.Listener.Addr().String()}
			style := map[string]string{"nginx": "nginx", "haproxy": "forward"}[kind]
			p.install(heading)
			a := &asker{t, s, front, decider}
			s.run(otherservers.Decider(decider, style, filepath.Join(s.dir, "policy.yaml"), ""))

			slow := make(chan response, 1)
			go func() { slow <- a.get(front, "/slow", someBrowser) }()
			if r := a.get(front, "/", "GPTBot/1.2"); r.StatusCode != 403 {
				t.Errorf("GPTBot gets %s", r.Status)
			}
			if r := a.get(front, "/drafts/x", someBrowser); r.StatusCode != 200 || !strings.Contains(strings.Join(r.Header["X-Robots-Tag"], ","), "noindex") {
				t.Errorf("a browser gets %s %v", r.Status, r.Header)
			}
			documents := map[string]response{}
			for _, path := range []string{"/robots.txt", "/.well-known/tdmrep.json"} {
				r := a.get(front, path, "GPTBot/1.2")
				if r.StatusCode != 200 || r.body == "" || r.Header.Get("Etag") == "" {
					t.Fatalf("%s: %s %v", path, r.Status, r.Header)
				}
				documents[path] = r
				if again := a.get(front, path, "GPTBot/1.2", "If-None-Match", r.Header.Get("Etag")); again.StatusCode != 304 || again.body != "" {
					t.Errorf("%s, if it has changed: %s", path, again.Status)
				}
			}
			if err := caddy.Stop(); err != nil {
				t.Fatal(err)
			}
			if kind == "nginx" {
				time.Sleep(2100 * time.Millisecond) // the server counts whole seconds, so its copy is too old after this time
			}
			for path, want := range documents {
				got := a.get(front, path, "Googlebot/2.1")
				if got.StatusCode != 200 || got.body != want.body || got.Header.Get("Content-Type") != want.Header.Get("Content-Type") {
					t.Errorf("%s while Caddy is down: %s %v\n%s", path, got.Status, got.Header, got.body)
				}
			}
			if r := a.get(front, "/", "GPTBot/1.2"); r.StatusCode != 200 {
				t.Errorf("a page while Caddy is down: %s", r.Status)
			}
			if r := <-slow; r.StatusCode != 200 || !strings.Contains(r.body, "page") {
				t.Errorf("a slow page: %s", r.Status)
			}
		})
	}
}
