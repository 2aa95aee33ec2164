// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"bufio"
	"bytes"
	"compress/gzip"
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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/robotspolicy/caddy-robots-policy"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

const asCaddy = "ROBOTS_POLICY_AGREEMENT_AS_CADDY"

// TestMain makes the process a Caddy with the module where a test asks for one.
func TestMain(m *testing.M) {
	if args := os.Getenv(asCaddy); args != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends, however it does
			os.Exit(0)
		}()
		os.Args = append([]string{"caddy"}, strings.Split(args, "\n")...)
		caddycmd.Main()
		return
	}
	os.Exit(m.Run())
}

// running is one of the sites of the Caddy that is asked: its options, and the
// policy that it serves at the moment.
type running struct {
	name     string
	options  string      // of the directive robots_policy
	before   string      // another directive of the site
	most     policy.Mode // enforce
	tailored bool        // headers tailored
	fields   []string    // that it sends
	meta     string

	server *server
	addr   string
	file   string

	mu   sync.Mutex // of all that follows
	conn net.Conn
	in   *bufio.Reader
}

var allFields = []string{"Robots-Tag", "X-Robots-Tag", "Content-Usage"}

// newSites are the sites, of which most have the options that most people have.
func newSites() []*running {
	return []*running{
		{name: "defaults", most: policy.ModeBlock, fields: allFields, meta: "merge"},
		{name: "defaults", most: policy.ModeBlock, fields: allFields, meta: "merge"},
		{name: "tailored, behind encode", options: "headers tailored", before: "encode", most: policy.ModeBlock, tailored: true, fields: allFields, meta: "merge"},
		{name: "enforce log, meta replace", options: "enforce log\nmeta replace", most: policy.ModeLog, fields: allFields, meta: "replace"},
		{name: "x-robots-tag alone, meta off", options: "headers x-robots-tag\nmeta off", most: policy.ModeBlock, fields: allFields[1:2], meta: "off"},
		{name: "robots-tag and content-usage, enforce off", options: "headers robots-tag content-usage\nenforce off", most: policy.ModeOff, fields: []string{"Robots-Tag", "Content-Usage"}, meta: "merge"},
	}
}

// server is a Caddy in a process of its own.
type server struct {
	admin string
	sites []*running
}

// startServer runs Caddy before an upstream that answers as each request asks.
func startServer(t *testing.T) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "agreement")
	if err != nil {
		t.Fatal(err)
	}
	up := httptest.NewServer(http.HandlerFunc(upstream))
	s := &server{admin: freeAddr(t), sites: newSites()}
	var text strings.Builder
	fmt.Fprintf(&text, "{\nservers {\ntrusted_proxies static private_ranges\n}\nadmin %s\npersist_config off\nauto_https off\nstorage file_system %s\nlog {\noutput discard\n}\n}\n", s.admin, filepath.Join(dir, "storage"))
	for i, st := range s.sites {
		st.server, st.addr, st.file = s, freeAddr(t), filepath.Join(dir, fmt.Sprintf("site-%d.yaml", i))
		if err := os.WriteFile(st.file, []byte("version: 1\nrules:\n  - for: everyone\n    allow:\n      crawl: /\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(st.addr)
		fmt.Fprintf(&text, "http://:%s {\n%s\nrobots_policy %s {\nreload 1h\n%s\n}\nreverse_proxy %s\n}\n", port, st.before, st.file, st.options, up.Listener.Addr())
	}
	config := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(config, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asCaddy+"=run\n--config\n"+config, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
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
		for _, st := range s.sites {
			st.hangUp()
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", s.sites[len(s.sites)-1].addr); err == nil {
			conn.Close()
			return s
		}
		if time.Now().After(end) {
			_ = cmd.Process.Kill()
			t.Fatalf("Caddy does not start:\n%s\n%s", out.String(), text.String())
		}
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// take has the running site take up a policy.
func (s *running) take(text []byte) error {
	if err := os.WriteFile(s.file, text, 0o600); err != nil {
		return err
	}
	resp, err := http.Post("http://"+s.server.admin+"/robots_policy/reload?policy="+url.QueryEscape(s.file), "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the server refuses the policy: %s", body)
	}
	return err
}

// answer is a response as it was got, and its body as it is meant.
type answer struct {
	*http.Response
	body    string
	dropped bool // the connection was closed without an answer
}

// get asks for the path as it stands, over a connection that is kept.
func (s *running) get(q question) (answer, error) {
	var forwarded string
	if q.address != "" {
		forwarded = "X-Forwarded-For: " + q.address + "\r\n"
	}
	request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nAccept-Encoding: %s\r\nX-Variant: %d\r\n%s\r\n",
		q.path, q.host, q.agent, []string{"identity", "gzip"}[q.variant/len(pages)%2], q.variant, forwarded)
	for {
		kept := s.conn != nil
		a, err := s.send(request)
		if err == nil {
			return a, nil
		}
		s.hangUp()
		hungUp := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
		switch {
		case !hungUp:
			return answer{}, err
		case !kept:
			return answer{dropped: true}, nil
		}
		// A connection that was kept may have been closed before: once more.
	}
}

func (s *running) send(request string) (answer, error) {
	if s.conn == nil {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			return answer{}, err
		}
		s.conn, s.in = conn, bufio.NewReader(conn)
	}
	_ = s.conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(s.conn, request); err != nil {
		return answer{}, err
	}
	return s.read()
}

func (s *running) read() (answer, error) {
	resp, err := http.ReadResponse(s.in, nil)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	if resp.Close {
		s.hangUp()
	}
	if resp.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return answer{}, fmt.Errorf("no gzip: %w", err)
		}
		if body, err = io.ReadAll(z); err != nil {
			return answer{}, fmt.Errorf("no gzip: %w", err)
		}
	}
	return answer{Response: resp, body: string(body)}, nil
}

func (s *running) hangUp() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// page is what the upstream has.
type page struct {
	name   string
	status int
	kind   string // its Content-Type
	header http.Header
	body   string
	gzip   bool
}

func (p *page) html() bool {
	return strings.HasPrefix(p.kind, "text/html") && p.status == http.StatusOK
}

func htmlPage(head string) string {
	return "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><title>A page</title>" + head +
		"</head><body><p>Some words. <!-- <meta name=robots content=none> --></p></body></html>\n"
}

// pages are those of the upstream, by the number that a request gives.
var pages = []page{
	{name: "a page", kind: "text/html; charset=utf-8", body: htmlPage("")},
	{name: "a page in gzip", kind: "text/html; charset=utf-8", body: htmlPage(strings.Repeat("<link rel=preload href=/x>", 40)), gzip: true},
	{name: "its own elements", kind: "text/html", body: htmlPage(`<meta name="robots" content="noarchive, max-snippet:30"><META NAME=AlphaBot CONTENT="NoSnippet"><meta name="googlebot" content="nofollow">`)},
	{name: "its own elements in gzip", kind: "text/html", gzip: true, body: htmlPage(`<script>"<meta name=robots content=none>"</script><meta content='max-image-preview:standard, unavailable_after: 2998-01-02T03:04:05Z' name='ROBOTS'>`)},
	{name: "no head", kind: "text/html", body: "<!DOCTYPE html>\n<p>Words without a head.\n"},
	{name: "data with headers of its own", kind: "application/json", body: `{"a":"<head></head>"}`, header: http.Header{"X-Robots-Tag": {"noindex"}, "Content-Usage": {"train-ai=n"}}},
	{name: "headers for some crawlers", kind: "text/html", body: htmlPage(""), header: http.Header{
		"Robots-Tag":    {"*;max-snippet=40, alphabot;noarchive, gptbot;noindex"},
		"X-Robots-Tag":  {"max-snippet:40", "alphabot: noarchive", "GPTBot: noindex, nofollow"},
		"Content-Usage": {"ai-use=y, search=n"},
	}},
	{name: "not found", status: http.StatusNotFound, kind: "text/html", body: htmlPage(`<meta name="robots" content="noindex">`), gzip: true},
}

func upstream(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.Header.Get("X-Variant"))
	p := &pages[n%len(pages)]
	h := w.Header()
	for name, lines := range p.header {
		h[name] = lines
	}
	h.Set("Content-Type", p.kind)
	body := []byte(p.body)
	if p.gzip && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(body)
		_ = z.Close()
		body = b.Bytes()
		h.Set("Content-Encoding", "gzip")
	}
	w.WriteHeader(p.status)
	_, _ = w.Write(body)
}

func init() {
	for i := range pages {
		if pages[i].status == 0 {
			pages[i].status = http.StatusOK
		}
	}
}
