// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/robotspolicy/caddy-robots-policy"
	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/nethttptest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// TestMain makes this process a Caddy with the module if a test has started it for that purpose.
func TestMain(m *testing.M) {
	caddytest.Main(m, func(caddy bool) {
		if !caddy {
			return
		}
		resolve()
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // until the test process ends for any reason
			os.Exit(0)
		}()
	})
}

// running is one of the tested sites: its options, and the policy that it serves at the moment.
type running struct {
	name     string
	options  string      // options of the directive robots_policy
	before   string      // another directive of the site
	maxMode  policy.Mode // the mode in the option "enforce"
	tailored bool        // the site has the option "headers tailored"
	fields   []string    // header fields that the site sends
	meta     string
	names    bool // the site has the option "verify dns"
	merges   bool // the site has the option "robots_txt merge"

	server *server
	door   door
	site   *nethttptest.Site // nil if Caddy serves the site
	addr   string
	file   string

	mu      sync.Mutex // protects the fields below
	conn    net.Conn
	in      *bufio.Reader
	h2      *http.Transport
	taken   string // the upstream's name for the last loaded file
	lastTag string // entity tag of the last robots.txt
}

var allFields = []string{"Robots-Tag", "X-Robots-Tag", "Content-Usage", "Content-Signal"}

// newSites returns the tested sites, most of them with options that are common in practice.
func newSites() []*running {
	return []*running{
		{name: "defaults", maxMode: policy.ModeBlock, fields: allFields, meta: "merge"},
		{name: "verify dns", options: "verify dns", maxMode: policy.ModeBlock, fields: allFields, meta: "merge", names: true},
		{name: "robots_txt merge", options: "robots_txt merge\nverify dns", maxMode: policy.ModeBlock, fields: allFields, meta: "merge", names: true, merges: true},
		{name: "tailored, behind encode", options: "headers tailored\nverify dns", before: "encode", maxMode: policy.ModeBlock, tailored: true, fields: allFields, meta: "merge", names: true},
		{name: "enforce log, meta replace, robots_txt merge", options: "enforce log\nmeta replace\nrobots_txt merge", maxMode: policy.ModeLog, fields: allFields, meta: "replace", merges: true},
		{name: "x-robots-tag alone, meta off", options: "headers x-robots-tag\nmeta off\nverify dns", maxMode: policy.ModeBlock, fields: allFields[1:2], meta: "off", names: true},
		{name: "robots-tag and content-usage, enforce off", options: "headers robots-tag content-usage\nenforce off", maxMode: policy.ModeOff, fields: []string{"Robots-Tag", "Content-Usage"}, meta: "merge"},
	}
}

// server runs the tested sites in two ways: with a Caddy in a separate process, and with HTTP servers of the package
// net/http in this process.
type server struct {
	admin string
	sites map[door][]*running
	up    upstream
}

// emptyPolicy is the policy that a site serves at first.
const emptyPolicy = "version: 1\nrules:\n  - for: everyone\n    allow:\n      crawl: /\n"

// startServer serves the sites through the doors that this run uses. All sites have the same upstream, and each request
// chooses the upstream's answer.
func startServer(t *testing.T) *server {
	t.Helper()
	s := &server{sites: map[door][]*running{}}
	if usesDoor(netHTTPDoor) {
		s.startNetHTTP(t, t.TempDir())
	}
	if usesDoor(caddyDoor) {
		s.startCaddy(t)
	}
	t.Cleanup(func() {
		for _, sites := range s.sites {
			for _, st := range sites {
				st.hangUp()
				if st.h2 != nil {
					st.h2.CloseIdleConnections()
				}
			}
		}
	})
	return s
}

// startCaddy runs a Caddy in a separate process, which serves the sites of the door caddyDoor.
func (s *server) startCaddy(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "agreement")
	if err != nil {
		t.Fatal(err)
	}
	sites := newSites()
	s.sites[caddyDoor] = sites
	addrs := caddytest.FreeAddrs(t, 1+len(sites))
	s.admin = addrs[0]
	up := httptest.NewServer(&s.up)
	var text strings.Builder
	fmt.Fprintf(&text, "{\nservers {\nprotocols h1 h2c\ntrusted_proxies static private_ranges\n}\nadmin %s\npersist_config off\nauto_https off\nstorage file_system %s\nlog {\noutput discard\n}\n}\n", s.admin, filepath.Join(dir, "storage"))
	for i, st := range sites {
		st.server, st.door, st.addr, st.file = s, caddyDoor, addrs[1+i], filepath.Join(dir, fmt.Sprintf("site-%d.yaml", i))
		if err := os.WriteFile(st.file, []byte(emptyPolicy), 0o600); err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(st.addr)
		fmt.Fprintf(&text, "http://:%s {\n%s\nrobots_policy %s {\nreload 1h\n%s\n}\nreverse_proxy %s\n}\n", port, st.before, st.file, st.options, up.Listener.Addr())
	}
	config := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(config, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := caddytest.Command(dir, "run", "--config", config)
	var out bytes.Buffer
	cmd.Stderr = &out
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
			t.Error(err)
		}
		up.Close()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", sites[len(sites)-1].addr); err == nil {
			conn.Close()
			return
		}
		if time.Now().After(end) {
			_ = cmd.Process.Kill()
			t.Fatalf("Caddy does not start:\n%s\n%s", out.String(), text.String())
		}
	}
}

// take makes the running site load a policy, and sets the robots.txt of its upstream.
func (s *running) take(p *loaded) error {
	s.server.up.forget(s.taken)
	s.taken = s.server.up.know(p.theirs)
	if err := os.WriteFile(s.file, p.text, 0o600); err != nil {
		return err
	}
	if s.site != nil {
		return s.site.Reload(context.Background())
	}
	resp, err := http.Post("http://"+s.server.admin+"/robots_policy/reload?policy="+url.QueryEscape(s.file), "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the server rejects the policy: %s", body)
	}
	return err
}
