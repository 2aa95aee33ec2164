// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bufio"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// startSites is start for several sites by host, with the same words standing
// for files and addresses. What stands for the host "" are global options; the
// log goes to DIR/log.
func startSites(t *testing.T, policy string, upstream http.Handler, sites map[string]string) *server {
	t.Helper()
	s := &server{t: t, addr: freeAddr(t), dir: t.TempDir()}
	s.write("policy.yaml", policy)
	s.load(sitesCaddyfile(s.addr, s.words(upstream), sites))
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// words are what stands for files and addresses in a site, and for what.
func (s *server) words(upstream http.Handler) []string {
	words := []string{"POLICY", filepath.Join(s.dir, "policy.yaml"), "DIR", s.dir}
	if upstream != nil {
		up := httptest.NewServer(upstream)
		s.t.Cleanup(up.Close)
		words = append(words, "UPSTREAM", up.Listener.Addr().String())
	}
	return words
}

func sitesCaddyfile(addr string, words []string, sites map[string]string) string {
	_, port, _ := net.SplitHostPort(addr)
	var b strings.Builder
	replace := strings.NewReplacer(words...)
	b.WriteString(replace.Replace("{\n\tadmin off\n\tpersist_config off\n\tauto_https off\n\tlog {\n\t\toutput file DIR/log\n\t}\n" + sites[""] + "\n}\n"))
	for _, host := range slices.Sorted(maps.Keys(sites)) {
		if host == "" {
			continue
		}
		b.WriteString("http://" + host + ":" + port + " {\n" + replace.Replace(sites[host]) + "\n}\n")
	}
	return b.String()
}

// log gives what was logged so far.
func (s *server) log() string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// dial opens a connection and writes to it.
func (s *server) dial(text string) (net.Conn, *bufio.Reader) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		s.t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// file writes a file in DIR, with the directories above it.
func (s *server) file(name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(s.dir, name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.write(name, text)
}
