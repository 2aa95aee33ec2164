// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// reloading is a running Caddy with its admin API, its log in a file and its
// storage in a directory of the test.
type reloading struct {
	*server
	admin  string
	global string // global options
	body   string // body of the site
}

// startReloading starts a server like the function start. Tests use it if they do more than send requests, for example
// if they change the policy file. global contains global options for every configuration that the test loads.
func startReloading(t *testing.T, global, policy string, upstream http.Handler, body string) *reloading {
	t.Helper()
	dir := busyDir(t)
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	s := &reloading{server: newServer(t, dir, policy, upstream), admin: freeAddr(t), body: body}
	s.global = "admin " + s.admin + "\nstorage file_system DIR/storage\n" +
		"log {\noutput file DIR/log {\nroll_disabled\n}\nformat json\nlevel INFO\nexclude http.robots_policy.crawler_log\n}\n" + global
	s.run(s.caddyfile(body))
	return s
}

// busyDir returns a temporary directory in which files may still be written when the test ends. For example, the server
// may still save the last good policy.
func busyDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "robots-policy")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		eventually(t, "its directory is gone", func() bool { return os.RemoveAll(dir) == nil })
	})
	return dir
}

// reconfigure loads a configuration with the body of a site.
func (s *reloading) reconfigure(body string) error {
	err := load(s.caddyfile(body))
	client.CloseIdleConnections() // close the connections to the previous configuration
	return err
}

// caddyfile returns a configuration with the body of a site.
func (s *reloading) caddyfile(body string) string {
	return s.server.caddyfile(s.global, map[string]string{"": body})
}

// log returns the lines of the log whose message begins with a text.
func (s *reloading) log(message string) (lines []map[string]any) {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			continue // this line is still being written
		}
		if msg, _ := fields["msg"].(string); strings.HasPrefix(msg, message) {
			lines = append(lines, fields)
		}
	}
	return lines
}

// ask sends a request to the admin API. If v is not nil, it decodes the answer into v.
func (s *reloading) ask(method, path string, v any) response {
	s.t.Helper()
	r, err := http.NewRequest(method, "http://"+s.admin+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, body := s.once(r)
	if v != nil {
		if err := json.Unmarshal(body, v); err != nil {
			s.t.Fatalf("%s %s: %s %v\n%s", method, path, resp.Status, err, body)
		}
	}
	return response{resp, string(body)}
}

// once sends a request. When a new configuration is loaded, the server of the previous configuration can close a
// connection without an answer. In this case, once sends a GET request again.
func (s *reloading) once(r *http.Request) (*http.Response, []byte) {
	s.t.Helper()
	r.Close = true
	resp, err := client.Do(r)
	for range 5 {
		if err == nil || r.Method != http.MethodGet {
			break
		}
		time.Sleep(20 * time.Millisecond)
		resp, err = client.Do(r)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp, body
}

// eventually waits until ok returns true. The time limit is long, because it is only meant for a server that hangs.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not true within the time limit: %s", what)
		}
	}
}

// disallowing returns a policy that disallows a path for everyone.
func disallowing(path string) string {
	return fmt.Sprintf("version: 1\nrules:\n  - for: everyone\n    disallow:\n      crawl: %s\n      index: %s\n", path, path)
}

// disallows reports whether the served robots.txt disallows a path.
func (s *reloading) disallows(path string) bool {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://"+s.addr+"/robots.txt", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, body := s.once(r)
	if resp.StatusCode != 200 {
		s.t.Fatalf("robots.txt: %s", resp.Status)
	}
	return strings.Contains(strings.ReplaceAll(string(body), "\r\n", "\n"), "\nDisallow: "+path+"\n")
}

// reloadWith writes another policy, reloads it, and returns the result.
func (s *reloading) reloadWith(policy string) (result, message string) {
	s.t.Helper()
	s.write("policy.yaml", policy)
	var answer struct {
		Results []struct{ Result, Error string }
	}
	s.ask("POST", "/robots_policy/reload", &answer)
	if len(answer.Results) != 1 {
		s.t.Fatalf("%+v", answer)
	}
	return answer.Results[0].Result, answer.Results[0].Error
}
