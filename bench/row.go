// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/bench/internal/workload"
)

// row is a proxy with one configuration. It is a row of the tables in the report.
type row struct {
	Name string `json:"name"`
	What string `json:"what"`
	Base string `json:"base,omitempty"` // name of the row that this row is compared with, at the same time on the same CPU

	server   string // the program: "caddy" (Caddy with this module), "barecaddy" or "nginx"
	template string
	policy   *workload.PolicySize
	coarse   bool   // the ratios of this row are so large that a third of the rounds is enough
	only     string // name of the only scenario that the row is measured in; "" means all
	refusing string // name of the base in the scenario "blocked", if it differs from Base

	port  int
	cmd   *exec.Cmd
	ended chan struct{}
	etag  string            // entity tag of the row's robots.txt
	wants map[string]answer // expected answers, by the names of scenarios; check sets them
	Start time.Duration     `json:"start"` // time from the start until the row accepts connections
}

const (
	refused  = "blocked" // name of a scenario
	bareRow  = "caddy"
	againRow = "caddy-again"
	leastRow = "least"
	// unusedRow is the base of ourRow: the same program, but with a configuration that does not use the handler.
	unusedRow = "unused"
	refuseRow = "caddy-403"
	ourRow    = "robots_policy"
)

func allRows() []*row {
	return []*row{
		{Name: bareRow, What: "Caddy with `reverse_proxy` alone", server: "barecaddy", template: "bare.Caddyfile"},
		{Name: againRow, What: "the same again: shows the noise", Base: bareRow, server: "barecaddy", template: "bare.Caddyfile"},
		{Name: unusedRow, What: "Caddy with module and console linked, and no `robots_policy`", Base: bareRow, server: "caddy", template: "bare.Caddyfile"},
		{
			Name: ourRow, What: fmt.Sprintf("this module, a policy of %d crawlers and %d rules", workload.Small.Crawlers, workload.Small.Rules),
			Base: unusedRow, refusing: refuseRow, server: "caddy", template: "policy.Caddyfile", policy: &workload.Small,
		},
		{
			Name: "robots_policy-10000", What: fmt.Sprintf("the same with %d crawlers and %d rules", workload.Large.Crawlers, workload.Large.Rules),
			Base: ourRow, server: "caddy", template: "policy.Caddyfile", policy: &workload.Large,
		},
		{
			Name: "caddy-recipe", What: "`header_regexp`, `header` and `respond` for the same crawlers; no meta tag", Base: bareRow,
			server: "barecaddy", template: "recipe.Caddyfile", coarse: true,
		},
		{
			Name: leastRow, What: "Caddy with a handler that does the least for these requests and pages alone: what any handler costs", Base: bareRow,
			server: "barecaddy", template: "least.Caddyfile",
		},
		{
			Name: refuseRow, What: "Caddy with `respond 403` for everything: the least that a block can cost", Base: bareRow,
			server: "barecaddy", template: "blocking.Caddyfile", coarse: true, only: refused,
		},
		{Name: "nginx", What: "nginx with `proxy_pass` alone, one worker", server: "nginx", template: "bare.nginx"},
		{Name: "nginx-recipe", What: "nginx with `map`, `add_header` and `sub_filter`", Base: "nginx", server: "nginx", template: "recipe.nginx", coarse: true},
	}
}

// base returns the name of the row that r is compared with in a scenario.
func (r *row) base(scenario string) string {
	if r.refusing != "" && scenario == refused {
		return r.refusing
	}
	return r.Base
}

// start starts the program of a row, and waits until the program accepts connections. binaries has the paths of the
// programs, keyed by name. origin is the address of the upstream. The row's files are in a folder in dir.
func (r *row) start(ctx context.Context, c cores, binaries map[string]string, origin, dir string) error {
	dir = filepath.Join(dir, r.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	r.port = port
	config := workload.Config{
		Template: r.template, Port: port, Answer: "reverse_proxy " + origin, Origin: origin,
		Policy: filepath.Join(dir, "policy.yaml"), Dir: dir,
	}
	text, err := config.Text()
	if err != nil {
		return err
	}
	files := map[string]string{"config": text, "robots.txt": config.Robots()}
	if r.policy != nil {
		files["policy.yaml"] = workload.Policy(*r.policy)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	args := []string{"run", "--adapter", "caddyfile", "--config", filepath.Join(dir, "config")}
	if r.server == "nginx" {
		args = []string{"-p", dir, "-c", filepath.Join(dir, "config"), "-e", "stderr"}
	}
	r.cmd = exec.Command(binaries[r.server], args...)
	return r.run(ctx, c, dir)
}

func (r *row) run(ctx context.Context, c cores, dir string) error {
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = dir, log, log
	r.cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "HOME="+dir)
	began := time.Now()
	if err := c.startPinned(r.cmd); err != nil {
		return fmt.Errorf("%s: %w", r.Name, err)
	}
	cmd, ended := r.cmd, make(chan struct{})
	r.ended = ended
	go func() {
		cmd.Wait() // the log of the program says how it ended
		close(ended)
	}()
	for {
		conn, err := net.Dial("tcp", r.addr())
		if err == nil {
			r.Start = time.Since(began)
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
			said, _ := os.ReadFile(log.Name())
			return fmt.Errorf("%s ended: %s", r.Name, said[max(0, len(said)-2000):])
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop ends the program of a row. If the program does not end within three seconds, stop kills it.
func (r *row) stop() {
	if r.cmd == nil || r.cmd.Process == nil {
		return
	}
	r.cmd.Process.Signal(syscall.SIGTERM) // an error means that the program has already ended
	select {
	case <-r.ended:
	case <-time.After(3 * time.Second):
		r.cmd.Process.Kill()
		<-r.ended
	}
	r.cmd = nil
}

func (r *row) addr() string { return "127.0.0.1:" + strconv.Itoa(r.port) }
func (r *row) pid() int     { return r.cmd.Process.Pid }

// freePort finds an unused port outside the range that systems use for outgoing connections.
func freePort() (port int, err error) {
	for range 100 {
		port = 10_000 + rand.IntN(20_000)
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}

// findNginx returns the path of the installed nginx, if this nginx can replace text in pages.
func findNginx() (string, error) {
	path, err := exec.LookPath("nginx")
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/nginx")
	}
	if err != nil {
		return "", errors.New("nginx is not installed")
	}
	out, err := exec.Command(path, "-V").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("nginx -V: %w", err)
	}
	if !strings.Contains(string(out), "http_sub_module") {
		return "", errors.New("nginx has no sub_filter here")
	}
	return path, nil
}
