// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// policyServer is a web server with a policy, which can be made to misbehave.
type policyServer struct {
	*httptest.Server
	answer atomic.Pointer[http.HandlerFunc]
	asked  atomic.Int32
}

func newPolicyServer(t *testing.T, text string) *policyServer {
	p := new(policyServer)
	p.serve(text)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		(*p.answer.Load())(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// serve makes the server answer each request with the policy text.
func (p *policyServer) serve(text string) {
	p.do(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
}

func (p *policyServer) do(f http.HandlerFunc) { p.answer.Store(&f) }

func TestPolicyFromTheWeb(t *testing.T) {
	p := newPolicyServer(t, disallowing("/a"))
	s := startReloading(t, "", disallowing("/"), nil, "respond hello")
	body := "robots_policy " + p.URL + "/policy.yaml {\nreload 1s\n}\nrespond hello"
	if err := s.reconfigure(body); err != nil {
		t.Fatal(err)
	}
	// Wait, because the server of the previous configuration may still accept a connection.
	eventually(t, "the policy from the web", func() bool { return s.disallows("/a") })
	p.serve(disallowing("/b"))
	eventually(t, "a new policy", func() bool { return s.disallows("/b") })

	big := strings.Repeat("#", 3<<20)
	for _, c := range []struct {
		name, says string
		answer     http.HandlerFunc
	}{
		{"a page", "a web page instead of a policy", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<!DOCTYPE html><title>Log in</title>")
		}},
		{"an error", "500 Internal Server Error", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }},
		{"nothing", "204 No Content", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }},
		{"a redirect elsewhere", "redirects to another server", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/x", http.StatusFound)
		}},
		{"a loop", "redirected", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/policy.yaml", http.StatusFound) }},
		{"a broken policy", "rulez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "version: 1\nrulez: 1\n") }},
		{"half a policy", "unexpected EOF", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "500")
			fmt.Fprint(w, disallowing("/half"))
		}},
		{"a large file", "file-too-large", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, big) }},
		{"a large file, small on the way", "file-too-large", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprint(z, big)
			z.Close()
		}},
	} {
		p.do(c.answer)
		var r struct {
			Results []struct{ Policy, Result, Error string }
		}
		s.ask(http.MethodPost, "/robots_policy/reload", &r)
		if len(r.Results) != 1 || r.Results[0].Result != "rejected" || !strings.Contains(r.Results[0].Error, c.says) {
			t.Errorf("%s: %+v", c.name, r)
		}
		if !s.disallows("/b") {
			t.Fatalf("%s: %s", c.name, s.get("/robots.txt").body)
		}
	}
	p.serve(disallowing("/c"))
	s.ask(http.MethodPost, "/robots_policy/reload", nil)
	if !s.disallows("/c") {
		t.Error("corrected, but not served")
	}
}

// If the web server with the policy hangs, neither requests nor the loading of a configuration are delayed.
func TestPolicyServerThatHangs(t *testing.T) {
	testkit.Nightly(t)
	p := newPolicyServer(t, disallowing("/a"))
	s := startReloading(t, "", disallowing("/"), nil, "respond hello")
	body := "robots_policy " + p.URL + " {\nreload 1s\n}\nrespond hello"
	if err := s.reconfigure(body); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	var once sync.Once
	defer once.Do(func() { close(release) })
	p.do(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	before := p.asked.Load()
	eventually(t, "it is asked", func() bool { return p.asked.Load() > before })
	if !s.disallows("/a") {
		t.Error("the policy is no longer served")
	}
	done := make(chan error)
	go func() { done <- load(s.caddyfile("handle /x {\n" + body + "\n}\n" + body)) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second): // much longer than reading a policy may take
		t.Error("a configuration waits for the policy server")
	}
	client.CloseIdleConnections()
	if !s.disallows("/a") {
		t.Error("the policy is no longer served")
	}
	once.Do(func() { close(release) })
}

func TestWebPoliciesThatAreRefused(t *testing.T) {
	s := startReloading(t, "", disallowing("/a"), nil, "respond hello")
	for name, want := range map[string]string{
		"http://policies.example.com/x":     "is not https",
		"https://user:secret@example.com/x": "contains a user name or a password",
		"https://":                          "does not name a server",
		"http://" + freeAddr(t):             "connection refused",
		"storage:../../etc/passwd":          "must be a path such as robots_policy/site.yaml",
		"storage:/etc/passwd":               "must be a path such as robots_policy/site.yaml",
		"storage:":                          "must be a path such as robots_policy/site.yaml",
		"storage:certificates/x":            "Caddy stores other data there",
		"storage:robots_policy/last_good/x": "Caddy stores other data there",
	} {
		err := s.reconfigure("robots_policy " + name)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPolicyFromTheStorage(t *testing.T) {
	s := startReloading(t, "", disallowing("/"), nil, "respond hello")
	const body = "robots_policy storage:site/policy.yaml {\nreload 100ms\n}\nrespond hello"
	// Until the first version of the policy exists, robots_policy does nothing.
	if err := s.reconfigure(body); err != nil {
		t.Fatal(err)
	}
	if got := s.get("/robots.txt"); got.body != "hello" || got.Header.Get("Content-Usage") != "" {
		t.Fatalf("without a policy: %+v", got)
	}
	publish := func(text string) {
		t.Helper()
		s.write("new.yaml", text)
		s.publish("new.yaml", "site/policy.yaml", 0, "--yes", "--address", s.admin)
	}
	publish(disallowing("/a"))
	if err := s.reconfigure(body); err != nil {
		t.Fatal(err)
	}
	if !s.disallows("/a") {
		t.Fatal(s.get("/robots.txt").body)
	}
	publish(disallowing("/b"))
	eventually(t, "what was published", func() bool { return s.disallows("/b") })
	// A text that the command publish would reject can still be written to the storage by hand.
	s.write("storage/site/policy.yaml", "version: 1\nrulez: 1\n")
	eventually(t, "the error is logged", func() bool { return len(s.log("policy not reloaded")) == 1 })
	if !s.disallows("/b") || s.policies().Policies[0].Policy != "storage:site/policy.yaml" {
		t.Errorf("%+v", s.policies())
	}
	publish(disallowing("/c"))
	eventually(t, "what was published next", func() bool { return s.disallows("/c") })
}

// publish runs the command publish for a file in the test's folder. code is the expected exit code.
func (s *reloading) publish(file, key string, code int, more ...string) string {
	s.t.Helper()
	s.write("publish.caddyfile", "{\nstorage file_system "+filepath.Join(s.dir, "storage")+"\n}\n")
	args := append([]string{
		"robots-policy", "publish", filepath.Join(s.dir, file), "--to", "storage:" + key,
		"--config", filepath.Join(s.dir, "publish.caddyfile"), "--adapter", "caddyfile",
	}, more...)
	out, got := caddyExits(s.t, args...)
	if got != code {
		s.t.Fatalf("%q exits with %d:\n%s", args, got, out)
	}
	return out
}

// notRunning returns a server that does not run, for commands that only need its storage.
func notRunning(t *testing.T) *reloading { return &reloading{server: &server{t: t, dir: t.TempDir()}} }

func TestPublish(t *testing.T) {
	t.Parallel()
	s := notRunning(t)
	s.write("good.yaml", disallowing("/a"))
	s.write("bad.yaml", "version: 1\nrulez: 1\n")
	s.write("next.yaml", disallowing("/b"))
	if out := s.publish("good.yaml", "k/p.yaml", 3); !strings.Contains(out, "written to "+filepath.Join(s.dir, "storage", "k", "p.yaml")+" (sha256 ") || !strings.Contains(out, "warning: ") {
		t.Error(out)
	}
	if out := s.publish("good.yaml", "k/p.yaml", 3); !strings.Contains(out, "already contains this policy") {
		t.Error(out)
	}
	if out := s.publish("bad.yaml", "k/p.yaml", 1); !strings.Contains(out, "bad.yaml:2:1: error:") {
		t.Error(out)
	}
	if out := s.publish("next.yaml", "k/p.yaml", 1); !strings.Contains(out, "Search engines lose something:\n  /b ") {
		t.Error(out)
	}
	if out := s.publish("next.yaml", "k/p.yaml", 0, "--dry-run", "--yes"); !strings.Contains(out, "everyone may no longer crawl /b") || !strings.Contains(out, "dry run") {
		t.Error(out)
	}
	if out := s.publish("next.yaml", "k/p.yaml", 3, "--yes"); !strings.Contains(out, "everyone may now crawl /a") {
		t.Error(out)
	}
	s.publish("nothing.yaml", "k/p.yaml", 1)
	s.publish("good.yaml", "certificates/p.yaml", 2)
	if out, code := caddyExits(t, "robots-policy", "publish", filepath.Join(s.dir, "good.yaml")); code != 2 || !strings.Contains(out, "--to is missing") {
		t.Error(code, out)
	}
}

// The command history lists the published versions. An undo returns to a version that a server has served. As long as
// no server has served any version, an undo is impossible.
func TestHistoryCommand(t *testing.T) {
	t.Parallel()
	s := notRunning(t)
	const key = "storage:k/p.yaml"
	command := func(code int, args ...string) string {
		t.Helper()
		s.write("publish.caddyfile", "{\nadmin off\nstorage file_system "+filepath.Join(s.dir, "storage")+"\n}\n")
		out, got := caddyExits(t, append(append([]string{"robots-policy"}, args...), "--config", filepath.Join(s.dir, "publish.caddyfile"), "--adapter", "caddyfile")...)
		if got != code {
			t.Fatalf("%q exits with %d:\n%s", args, got, out)
		}
		return out
	}
	if out := command(1, "history", key); !strings.Contains(out, "has no history, because no version was published at "+filepath.Join(s.dir, "storage", "k", "p.yaml")) {
		t.Error(out)
	}
	for _, path := range []string{"/a", "/b", "/c"} {
		s.write("p.yaml", disallowing(path))
		s.publish("p.yaml", "k/p.yaml", 3, "--yes", "--author", "ann", "--note", "closes "+path)
	}
	if out := command(0, "history", key); !strings.Contains(out, "v3 *") || !strings.Contains(out, "closes /b") || strings.Count(out, "  ann  ") != 3 {
		t.Error(out)
	}
	if out := command(0, "history", key, "--text", "v2"); !strings.HasSuffix(out, disallowing("/b")) {
		t.Error(out)
	}
	if !testkit.Thorough() { // slow, because each command starts a program
		return
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--undo"}, 1, "there is nothing to undo: no server is known to have served another version earlier"},
		{[]string{"--version", "v1"}, 1, "v1 cannot be restored, because no server is known to have served it; save its text in a file, and publish that file"},
		{[]string{"--version", "3"}, 1, "v3 is already the version in the storage"},
		{[]string{"--version", "v99"}, 1, "there is no version v99: the history has v3, v2 and v1"},
		{[]string{"--version", "x"}, 2, "invalid version"},
		{[]string{"--undo", "p.yaml"}, 2, "one of FILE, --undo and --version N"},
		{[]string{"--undo", "--version", "v1"}, 2, "one of FILE, --undo and --version N"},
		{nil, 2, "one of FILE, --undo and --version N"},
	} {
		if out := command(c.code, append([]string{"publish", "--to", key}, c.args...)...); !strings.Contains(out, c.want) {
			t.Errorf("%q: no %q in %s", c.args, c.want, out)
		}
	}
	if text, err := os.ReadFile(filepath.Join(s.dir, "storage", "k", "p.yaml")); err != nil || string(text) != disallowing("/c") {
		t.Errorf("the storage holds %q, %v", text, err)
	}
}
