// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"cmp"
	"database/sql"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// startCase describes the start of a server with a fault in one optional part.
type startCase struct {
	part, condition string
	options         string                         // options of the part, instead of the options in partOptions
	site, policy    string                         // additional lines of the directive and of the policy
	setup           func(t *testing.T, dir string) // prepares DIR before the start
	shell           string                         // command that a shell runs in the server's namespace before the start, with DIR
	cause           string                         // part of the only logged error; if empty, the optional part works
	heals           bool                           // the part soon works, and the damaged file is put aside
	foreseen        bool                           // caddy validate reports the problem
}

// partOptions maps the optional parts to their options.
var partOptions = map[string]string{
	"activity": "activity DIR/part", "evidence": "evidence DIR/part {\nkey DIR/key.pem\n}", "console": "console ADDRESS", "catalog": "",
}

// Options and policy lines that several cases of TestOptionalPartsDoNotStopTheSites need.
const (
	socket  = "console unix/DIR/part/socket"
	ownList = "crawlers:\n  OwnBot:\n    operator: Example\n    category: search\n    address-lists: [https://LISTENER/list.json]\n"
)

const edKey = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIC2pHJYjFDhhA8mPHDUgPrUrWHdoUPyYg2zUf8HVLzTE\n-----END PRIVATE KEY-----\n"

// Small file systems that only the server sees.
const (
	fullDisk = `mkdir -p DIR/part && mount -t tmpfs -o size=64k tmpfs DIR/part && (cat /dev/zero > DIR/part/filler 2>/dev/null || true)`
	readOnly = `mkdir -p DIR/part && mount -t tmpfs -o ro tmpfs DIR/part`
)

func startCases() []startCase {
	file := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { t.Helper(); putFile(t, filepath.Join(dir, name), text) }
	}
	hanging := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			name := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(name, 0o600); err != nil { // a program that opens this pipe for reading waits
				t.Fatal(err)
			}
		}
	}
	aDay := "part/evidence-" + time.Now().UTC().Format(time.DateOnly) + ".jsonl"
	const catalog = "data/caddy/robots_policy/crawlers.yaml"
	return []startCase{
		{part: "activity", condition: "missing"},
		{part: "activity", condition: "damaged", setup: file("part/activity.db", strings.Repeat("no database", 1000)), cause: "damaged", heals: true, foreseen: true},
		{part: "activity", condition: "damaged inside", setup: damagedInside, cause: "damaged", heals: true, foreseen: true},
		{part: "activity", condition: "locked", setup: lockedStore, cause: "another process uses the activity database"},
		{part: "activity", condition: "full", shell: fullDisk, cause: "no space left on device"},
		{part: "activity", condition: "read-only", shell: readOnly, cause: "read-only file system"},
		{part: "activity", condition: "another format", setup: otherFormat, cause: "has format 99", foreseen: true},
		{part: "activity", condition: "a pipe in the way", setup: hanging("part/activity.db"), cause: "disk I/O error"},
		{part: "activity", condition: "a file in the way", setup: file("part", ""), cause: "not a directory", foreseen: true},

		{part: "evidence", condition: "missing"},
		{part: "evidence", condition: "damaged", setup: file(aDay, "not an event\n"), cause: "damaged", heals: true},
		{part: "evidence", condition: "another format", setup: file(aDay, `{"v":9}`+"\n"), cause: "damaged", heals: true},
		{part: "evidence", condition: "locked", setup: lockedEvidence, cause: "another process writes evidence"},
		{part: "evidence", condition: "full", shell: fullDisk, cause: "no space left on device"},
		{part: "evidence", condition: "read-only", shell: readOnly, cause: "read-only file system"},
		{part: "evidence", condition: "hanging", setup: hanging(aDay), cause: "does not answer"},
		{part: "evidence", condition: "key missing", setup: func(_ *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "key.pem")) }, cause: "no such file", foreseen: true},
		{part: "evidence", condition: "key damaged", setup: file("key.pem", "x"), cause: "has no PEM block", foreseen: true},
		{part: "evidence", condition: "key hanging", setup: func(t *testing.T, dir string) {
			_ = os.Remove(filepath.Join(dir, "key.pem"))
			hanging("key.pem")(t, dir)
		}, cause: "does not answer"},

		{part: "catalog", condition: "missing"},
		{part: "catalog", condition: "damaged", setup: file(catalog, "\x00\x01"), cause: "crawlers.yaml"},
		{part: "catalog", condition: "another format", setup: file(catalog, "version: 99\n"), cause: "crawlers.yaml"},
		{part: "catalog", condition: "a directory", setup: file(catalog+"/x", ""), cause: "is a directory"},
		{part: "catalog", condition: "hanging", setup: hanging(catalog), cause: "takes too long"},

		{part: "console", condition: "free port"},
		{part: "console", condition: "port in use", cause: "address already in use"},
		{part: "console", condition: "socket", options: socket, setup: func(t *testing.T, dir string) { _ = listenUnix(t, dir).Close() }},
		{part: "console", condition: "socket left behind", options: socket, setup: staleSocket},
		{part: "console", condition: "a file in the socket's place", options: socket, setup: file("part/socket", "x"), cause: "is not a socket"},
		{part: "console", condition: "socket in a missing directory", options: "console unix/DIR/none/socket", cause: "no such file or directory"},
		{part: "console", condition: "socket on a read-only file system", options: socket, shell: readOnly, cause: "read-only file system"},

		// In these cases, no optional part fails at the start, because the server fetches address lists and audited
		// pages only while it runs.
		{condition: "list hanging", site: "verify lists\nverify_from 127.0.0.0/8", policy: ownList},
		{condition: "audit hanging", site: "audit 10m http://LISTENER/"},
	}
}

// Recorders, the console and other parts are optional. However such a part fails, the sites are served as quickly as
// without it. One logged error gives the reason, and a metric shows the failure. `caddy validate` reports the problems
// that can be known before the start.
func TestOptionalPartsDoNotStopTheSites(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs named pipes and mounts of Linux")
	}
	usual := startOne(t, startCase{}, 0)
	for _, c := range startCases() {
		t.Run(c.part+"/"+c.condition, func(t *testing.T) {
			if testing.Short() && !c.heals && !strings.Contains(c.condition, "hanging") {
				t.Skip("only some of the many starts run: set ROBOTSPOLICY_LONG")
			}
			startOne(t, c, usual)
		})
	}
}

// startOne starts a server, and returns how long it took until the site answered.
func startOne(t *testing.T, c startCase, usual time.Duration) time.Duration {
	t.Helper()
	dir := busyDir(t)
	address := freeAddr(t)
	fill := strings.NewReplacer("DIR", dir, "ADDRESS", address, "LISTENER", address)
	policy := filepath.Join(dir, "policy.yaml")
	putFile(t, policy, "version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n    enforce: block\n"+fill.Replace(c.policy))
	putFile(t, filepath.Join(dir, "key.pem"), edKey)
	if c.condition == "port in use" || strings.Contains(c.site+c.policy, "LISTENER") { // this server accepts connections, but never answers
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	if c.setup != nil {
		c.setup(t, dir)
	}
	options := fill.Replace(cmp.Or(c.options, partOptions[c.part]))
	p := newProcess(t, dir, "server", "robots_policy {\n"+options+"\n}\nmetrics", "robots_policy "+policy+" {\n"+fill.Replace(c.site)+"\n}\nhandle /metrics {\nmetrics\n}")
	var out syncedBuffer
	args := []string{"run", "--config", filepath.Join(p.dir, "Caddyfile")}
	p.cmd = asCaddyCommand(dir, args...)
	if c.shell != "" {
		if err := exec.Command("unshare", "-rm", "true").Run(); err != nil {
			t.Skipf("cannot make a file system of its own: %v", err)
		}
		p.cmd.Args = append([]string{"unshare", "-rm", "sh", "-c", fill.Replace(c.shell) + ` && exec "$0" "$@"`, p.cmd.Path}, args...)
		p.cmd.Path, _ = exec.LookPath("unshare")
	}
	p.cmd.Stderr = &out
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(out.String())
		}
	})
	eventually(t, "the site answers; "+c.part+" "+c.condition, func() bool {
		resp, err := client.Get("http://" + p.addr + "/")
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil
	})
	took := time.Since(began)
	// A site that waits for a hanging part needs at least ten seconds more. The limit is just below this time, because
	// a busy machine needs a few seconds more, too.
	if usual > 0 && took > usual+8*time.Second {
		t.Errorf("the site answered after %s; usually after %s", took, usual)
	}
	if r := p.get("/", "User-Agent", "GPTBot"); r.StatusCode != 403 {
		t.Errorf("GPTBot gets %s", r.Status)
	}
	failing := `caddy_robots_policy_part_failing{part="` + c.part + `"} `
	state := func(n string) func() bool {
		return func() bool { return strings.Contains(p.get("/metrics").body, failing+n+"\n") }
	}
	if c.cause != "" {
		eventually(t, "the error is logged", func() bool { return strings.Contains(out.String(), "an optional part of robots_policy does not work") })
	}
	if c.cause != "" && !c.heals {
		eventually(t, failing+"1", state("1"))
	} else if c.part != "" {
		eventually(t, failing+"0", state("0"))
	}
	c.checkLog(t, out.String())
	if aside, _ := filepath.Glob(filepath.Join(dir, "part", "*.damaged-*")); c.heals != (len(aside) > 0) {
		t.Errorf("put aside: %q", aside)
	}
	p.kill()
	if c.heals && os.RemoveAll(filepath.Join(dir, "part")) == nil {
		c.setup(t, dir)
	}
	if c.foreseen {
		if report, err := asCaddyCommand(dir, "validate", "--config", filepath.Join(p.dir, "Caddyfile")).CombinedOutput(); err == nil || !strings.Contains(string(report), c.cause) {
			t.Errorf("validate: %v\n%s", err, report)
		}
	}
	return took
}

// checkLog checks that exactly one error with the cause was logged.
func (c *startCase) checkLog(t *testing.T, log string) {
	t.Helper()
	var found []string
	for line := range strings.Lines(log) {
		var fields struct{ Level, Msg, Error string }
		if json.Unmarshal([]byte(line), &fields) == nil && fields.Level == "error" && strings.HasPrefix(fields.Msg, "an optional part of robots_policy does not work") {
			found = append(found, fields.Error)
		}
	}
	want := 0
	if c.cause != "" {
		want = 1
	}
	if len(found) != want || want == 1 && !strings.Contains(found[0], c.cause) {
		t.Errorf("errors %q, want %d with %q\n%s", found, want, c.cause, log)
	}
}

// syncedBuffer is a buffer that can be read while a process writes to it.
type syncedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func putFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newStore creates an activity database and returns its file name.
func newStore(t *testing.T, dir string) string {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(dir, "part"), store.Options{})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "part", "activity.db")
}

// damagedInside overwrites all pages of an activity database except the first.
func damagedInside(t *testing.T, dir string) {
	t.Helper()
	name := newStore(t, dir)
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte{0x55}, int(size)-4096), 4096); err != nil {
		t.Fatal(err)
	}
}

func otherFormat(t *testing.T, dir string) {
	t.Helper()
	db, err := sql.Open("sqlite", newStore(t, dir))
	if err == nil {
		_, err = db.Exec("PRAGMA user_version = 99")
	}
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func lockedStore(t *testing.T, dir string) {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(dir, "part"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
}

func lockedEvidence(t *testing.T, dir string) {
	t.Helper()
	l, err := evidence.Open(filepath.Join(dir, "part"), evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
}

// staleSocket makes a socket file that no server listens on, like the file of a killed server.
func staleSocket(t *testing.T, dir string) {
	t.Helper()
	l := listenUnix(t, dir)
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func listenUnix(t *testing.T, dir string) *net.UnixListener {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "part"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "part", "socket"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
