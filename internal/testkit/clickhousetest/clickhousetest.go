// SPDX-License-Identifier: Apache-2.0

// Package clickhousetest runs a ClickHouse server on this machine for a test.
package clickhousetest

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Server is a ClickHouse server with its own directory. The user "reader", with the password "secret", may only read.
type Server struct {
	t    testing.TB
	dir  string
	port int
	cmd  *exec.Cmd
}

const config = `<?xml version="1.0"?>
<yandex>
	<logger><level>warning</level><console>1</console></logger>
	<listen_host>127.0.0.1</listen_host><http_port>%d</http_port><tcp_port>%d</tcp_port>
	<path>%s/data/</path><tmp_path>%[3]s/tmp/</tmp_path><user_files_path>%[3]s/files/</user_files_path><format_schema_path>%[3]s/formats/</format_schema_path>
	<mark_cache_size>67108864</mark_cache_size>
	<users_config>users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>
</yandex>`

const users = `<?xml version="1.0"?>
<yandex>
	<profiles><default/><readonly><readonly>1</readonly></readonly></profiles>
	<quotas><default/></quotas>
	<users>
		<default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>
		<reader><password>secret</password><networks><ip>127.0.0.1</ip></networks><profile>readonly</profile><quota>default</quota></reader>
	</users>
</yandex>`

// Start starts a server, which is stopped when the test ends. If the program clickhouse-server is not installed, Start
// skips the test.
func Start(t testing.TB) *Server {
	t.Helper()
	if _, err := exec.LookPath("clickhouse-server"); err != nil {
		t.Skip("clickhouse-server is not installed")
	}
	dir, err := os.MkdirTemp("", "clickhouse")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &Server{t: t, dir: dir, port: freePort(t)}
	for name, text := range map[string]string{"config.xml": fmt.Sprintf(config, s.port, freePort(t), dir), "users.xml": users} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.Kill)
	s.Run()
	return s
}

// Run starts the server again after Kill, and waits until it answers.
func (s *Server) Run() {
	s.t.Helper()
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.cmd = exec.Command("clickhouse-server", "--config-file="+filepath.Join(s.dir, "config.xml"))
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = s.dir, log, log
	s.cmd.Env = append(os.Environ(), "TZ=UTC")
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for range 600 {
		if resp, err := http.Get(s.address() + "/"); err == nil {
			_ = resp.Body.Close()
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	text, err := os.ReadFile(log.Name())
	s.t.Fatalf("clickhouse-server does not start: %s", errors.Join(err, errors.New(string(text))))
}

// Kill ends the server at once, like kill -9.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // the error says that it was killed
	s.cmd = nil
}

// Hang pauses the server until Resume is called. Its connections stay open.
func (s *Server) Hang() { s.signal("STOP") }

// Resume continues a server that Hang has paused.
func (s *Server) Resume() { s.signal("CONT") }

func (s *Server) signal(name string) {
	s.t.Helper()
	if out, err := exec.Command("kill", "-"+name, strconv.Itoa(s.cmd.Process.Pid)).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
}

func (s *Server) address() string { return fmt.Sprintf("http://127.0.0.1:%d", s.port) }

// URL returns the address of a database.
func (s *Server) URL(database string) string { return s.address() + "/" + database }

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// CPU returns the processor time of the server, or 0 if the system does not report it.
func (s *Server) CPU() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var ticks int
	for _, i := range []int{11, 12} { // in user mode, and in the kernel
		n, _ := strconv.Atoi(fields[i])
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
