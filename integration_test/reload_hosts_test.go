// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hostOnly sends a request with the given Host header, unchanged. The listener of the previous configuration may close
// the connection, so hostOnly tries three times. If all attempts fail, the status is 0.
func (s *reloading) hostOnly(host string) (status int, robots string) {
	s.t.Helper()
	justLoaded.Store(false)
	for range 3 {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			continue
		}
		fmt.Fprintf(conn, "GET /robots.txt HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			_ = conn.Close()
			continue
		}
		body, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close(), conn.Close()); err != nil {
			s.t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	return 0, ""
}

func TestAPolicyForEachHost(t *testing.T) {
	s := startReloading(t, "", disallowing("/default"), nil, "respond hello")
	if err := os.Mkdir(filepath.Join(s.dir, "hosts"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.write("hosts/a.example.yaml", disallowing("/a"))
	s.write("hosts/b.example.yaml", strings.Replace(disallowing("/b"), "disallow", "dissallow", 1))
	s.write("secret.yaml", disallowing("/secret"))
	if err := s.reconfigure("robots_policy DIR/hosts/{host}.yaml {\nreload 50ms\ndefault POLICY\n}\nrespond hello"); err != nil {
		t.Fatal(err)
	}
	says := func(host, path string) bool {
		_, robots := s.hostOnly(host)
		return strings.Contains(strings.ReplaceAll(robots, "\r\n", "\n"), "\nDisallow: "+path+"\n")
	}
	for host, path := range map[string]string{
		"a.example": "/a", "A.EXAMPLE:8080": "/a", "a.example.": "/a", "nobody.example": "/default", "b.example": "/",
		"../secret": "/default", "..\\secret": "/default", "hosts/a.example": "/default", "[::1]": "/default", "a.example%00": "/default",
	} {
		if status, robots := s.hostOnly(host); status != 400 && status != 0 && !says(host, path) {
			t.Errorf("%q: %d %s", host, status, robots)
		}
	}
	s.write("hosts/nobody.example.yaml", disallowing("/somebody"))
	s.write("hosts/a.example.yaml", disallowing("/a2"))
	s.write("hosts/b.example.yaml", disallowing("/b"))
	eventually(t, "a new host", func() bool { return says("nobody.example", "/somebody") })
	eventually(t, "an edit", func() bool { return says("a.example", "/a2") })
	eventually(t, "a corrected file", func() bool { return says("b.example", "/b") })

	var all struct {
		Hosts []struct{ Loaded, Broken, Sites int }
	}
	s.ask(http.MethodGet, "/robots_policy/", &all)
	if len(all.Hosts) != 1 || all.Hosts[0].Loaded != 3 || all.Hosts[0].Broken != 0 || all.Hosts[0].Sites != 1 {
		t.Errorf("%+v", all)
	}
	query := "?policy=" + filepath.Join(s.dir, "hosts") + "/%7Bhttp.request.host%7D.yaml&host="
	if r := s.ask(http.MethodGet, "/robots_policy/robots.txt"+query+"a.example", nil); !strings.Contains(r.body, "Disallow: /a2") {
		t.Errorf("%s %s", r.Status, r.body)
	}
	if r := s.ask(http.MethodGet, "/robots_policy/robots.txt"+query+"c.example", nil); r.StatusCode != 404 {
		t.Errorf("%s %s", r.Status, r.body)
	}
	if text := s.ask(http.MethodGet, "/metrics", nil).body; !strings.Contains(text, `hosts/{http.request.host}.yaml",state="served"} 3`) {
		t.Error(text)
	}

	// Without a default policy, a host without a file has no policy.
	if err := s.reconfigure("robots_policy DIR/hosts/{host}.yaml\nrespond hello"); err != nil {
		t.Fatal(err)
	}
	if status, body := s.hostOnly("c.example"); status != 200 || body != "hello" {
		t.Errorf("%d %s", status, body)
	}
	for body, want := range map[string]string{
		"robots_policy DIR/none/{host}.yaml": "the directory of the policy files", "robots_policy DIR/{path}.yaml": "the only placeholders that it can contain",
		"robots_policy POLICY {\ndefault DIR/x\n}": "is only for policies whose name has a placeholder", "robots_policy DIR/{env.NOTHING}.yaml": "no such file",
	} {
		if err := s.reconfigure(body); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
