// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/certmagic"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// dyingStorage is Caddy's file storage, except that it kills its own process at a selected step, like kill -9.
type dyingStorage struct {
	Root string `json:"root"`
	At   string `json:"at"`

	files *certmagic.FileStorage
	loads int
}

func init() { caddy.RegisterModule(dyingStorage{}) }

func (dyingStorage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.storage.test_dying", New: func() caddy.Module { return new(dyingStorage) }}
}

func (d *dyingStorage) UnmarshalCaddyfile(s *caddyfile.Dispenser) error {
	s.Next()
	if !s.AllArgs(&d.Root, &d.At) {
		return s.ArgErr()
	}
	return nil
}

func (d *dyingStorage) CertMagicStorage() (certmagic.Storage, error) {
	d.files = &certmagic.FileStorage{Path: d.Root}
	return dyingFiles{d.files, d}, nil
}

// die kills the process if the argument is the selected step.
func (d *dyingStorage) die(at string) {
	if at != d.At {
		return
	}
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

type dyingFiles struct {
	*certmagic.FileStorage
	dying *dyingStorage
}

func (f dyingFiles) Load(ctx context.Context, key string) ([]byte, error) {
	f.dying.loads++
	f.dying.die(fmt.Sprint("load ", f.dying.loads))
	return f.FileStorage.Load(ctx, key)
}

func (f dyingFiles) Store(ctx context.Context, key string, value []byte) error {
	if strings.HasSuffix(key, ".history") {
		return f.FileStorage.Store(ctx, key, value)
	}
	switch f.dying.At {
	case "locked": // like in a storage that locks the keys that it writes
		if err := f.Lock(ctx, key); err != nil {
			return err
		}
	case "half": // the file storage writes another file next to the key's file, and then renames it
		half, err := os.CreateTemp(filepath.Dir(f.Filename(key)), "")
		if err != nil {
			return err
		}
		if _, err := half.Write(value[:len(value)/2]); err != nil {
			return err
		}
	}
	f.dying.die("locked")
	f.dying.die("half")
	if err := f.FileStorage.Store(ctx, key, value); err != nil {
		return err
	}
	f.dying.die("stored")
	return nil
}

// longPolicy returns a policy of some hundred kilobytes, with one rule at the beginning and one at the end. If only the
// first half of this text was written, the first half would also be a valid policy. A test can detect this, because the
// rule at the end would be missing.
func longPolicy(version int) string {
	rule := func(where string) string {
		return fmt.Sprintf("  - name: %s\n    for: everyone\n    disallow:\n      crawl: /%s%d/\n", where, where, version)
	}
	return "version: 1\nrules:\n" + rule("begin") + strings.Repeat("# "+strings.Repeat("-", 77)+"\n", 4000) + rule("end")
}

// publishing is a server with a file storage. Its policy is published to this storage.
type publishing struct {
	*caddyProcess
	root, file, key string
	version         int // number of the last good version
}

func startPublishing(t *testing.T) *publishing {
	dir := t.TempDir()
	p := &publishing{root: filepath.Join(dir, "shared"), key: "robots_policy/site.yaml"}
	p.caddyProcess = newProcess(t, dir, "one", "storage file_system "+p.root, "robots_policy storage:"+p.key+" {\nreload 100ms\n}")
	p.file = filepath.Join(p.dir, "new.yaml")
	p.publish()
	p.run()
	p.whole()
	return p
}

// command returns a command that publishes the next version to a storage.
func (p *publishing) command(storage string) *exec.Cmd {
	p.t.Helper()
	p.write("new.yaml", longPolicy(p.version+1))
	p.write("publish.caddyfile", "{\nstorage "+storage+"\n}\n")
	return asCaddyCommand(p.dir, "robots-policy", "publish", p.file, "--to", "storage:"+p.key, "--yes",
		"--config", filepath.Join(p.dir, "publish.caddyfile"), "--adapter", "caddyfile")
}

// publish publishes the next version. The command is not killed.
func (p *publishing) publish() {
	p.t.Helper()
	if out, err := p.command("file_system " + p.root).CombinedOutput(); !written(err) {
		p.t.Fatalf("%v\n%s", err, out)
	}
	p.version++
}

// written reports whether a publishing command has written the version to the storage, even if no server has confirmed
// it.
func written(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return err == nil || ok && exit.ExitCode() == 3
}

// whole checks that the storage contains a complete version, and that the server serves this version. This is either
// the previous version, or the version that the killed command was publishing.
func (p *publishing) whole() {
	p.t.Helper()
	stored, err := os.ReadFile(filepath.Join(p.root, filepath.FromSlash(p.key)))
	if err != nil {
		p.t.Fatal(err)
	}
	switch string(stored) {
	case longPolicy(p.version):
	case longPolicy(p.version + 1):
		p.version++
	default:
		p.t.Fatalf("%d bytes are published, which are neither version %d nor the next", len(stored), p.version)
	}
	served := func(version int) bool {
		begin, end := p.disallows(fmt.Sprintf("/begin%d/", version)), p.disallows(fmt.Sprintf("/end%d/", version))
		if begin && !end && !p.disallows(fmt.Sprintf("/begin%d/", version+1)) {
			p.t.Fatalf("half of version %d is served", version)
		}
		return begin && end
	}
	eventually(p.t, fmt.Sprintf("version %d is served", p.version), func() bool { return served(p.version) })
}

// The command publish is killed at each step of its work. After each kill, the servers still serve the last good
// version, or have loaded the complete new version. The next version can always be published.
func TestKillWhilePublishing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts Caddy many times")
	}
	for i, c := range []struct {
		name   string
		at     string
		stored bool   // the new version has been published at this step
		left   string // pattern of the files that the killed process leaves
	}{
		{"before the lock", "load 1", false, ""},
		{"reading the history", "load 5", false, "locks/*.lock"},
		{"locked", "locked", false, "locks/*.lock"},
		{"half written", "half", false, "robots_policy/*"},
		{"stored", "stored", true, ""},
		{"after that", "load 7", true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if i%2 == 0 && !testkit.Long() {
				t.Skip("only every second step is tested: set ROBOTSPOLICY_LONG for all")
			}
			t.Parallel() // in a long run, each test mostly waits until the lock of the killed process is stale
			p := startPublishing(t)
			before := p.version
			out, err := p.command("test_dying " + p.root + " \"" + c.at + "\"").CombinedOutput()
			if err == nil || !strings.Contains(err.Error(), "killed") {
				t.Fatalf("the process was not killed: %v\n%s", err, out)
			}
			if !testkit.Long() {
				p.expireLocks()
			}
			p.whole()
			if (p.version > before) != c.stored {
				t.Errorf("version %d", p.version)
			}
			if c.left != "" && p.left(c.left) == 0 {
				t.Error("the killed process has left no file, so the test cannot fail")
			}
			p.publish()
			p.whole()
			// The server still serves the published version after it was killed and started again.
			p.kill()
			p.run()
			p.whole()
		})
	}
}

// expireLocks changes the times in the lock files, so that the storage treats these locks as abandoned at once. Without
// this change, the storage would treat them as abandoned only after ten seconds.
func (p *publishing) expireLocks() {
	p.t.Helper()
	locks, err := filepath.Glob(filepath.Join(p.root, "locks", "*.lock"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, lock := range locks {
		if err := os.WriteFile(lock, []byte(`{"created":"2026-11-01T00:00:00Z","updated":"2026-11-01T00:00:00Z"}`), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
}

// left returns the number of incomplete files that the killed process has left behind, among the files that match a
// pattern.
func (p *publishing) left(pattern string) (found int) {
	p.t.Helper()
	names, err := filepath.Glob(filepath.Join(p.root, pattern))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.Size() > 0 && info.Size() < int64(len(longPolicy(1))) {
			found++
		}
	}
	return found
}

// If a version does not fit on the disk, it is not published. The next version that fits can be published. The test
// limits the size of files to simulate a full disk.
func TestPublishingToAFullDisk(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell that can set limits")
	}
	p := startPublishing(t)
	cmd := p.command("file_system " + p.root)
	cmd.Path, cmd.Args = sh, append([]string{"sh", "-c", `ulimit -f 64 && exec "$0" "$@"`}, cmd.Args...)
	before := p.version
	if out, err := cmd.CombinedOutput(); written(err) {
		t.Fatalf("the version was published, or the error is missing:\n%s", out)
	}
	p.whole()
	if p.version != before {
		t.Errorf("version %d", p.version)
	}
	p.publish()
	p.whole()
}

// Like TestKillWhilePublishing, but the process is killed at random moments.
func TestKillWhilePublishingAtRandom(t *testing.T) {
	testkit.Nightly(t)
	t.Parallel()
	if testing.Short() {
		t.Skip("starts Caddy many times")
	}
	p := startPublishing(t)
	began := time.Now()
	p.publish()
	takes := time.Since(began) // only used to choose the moments
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	tries := 4
	if testkit.Long() {
		tries = 20
	}
	for range tries {
		cmd := p.command("file_system " + p.root)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.Int64N(int64(takes) * 5 / 4)))
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the process was killed, or has ended before
		// Delete the lock of the killed process. Otherwise, the next process would wait until the lock is too old.
		_ = os.RemoveAll(filepath.Join(p.root, "locks"))
		p.whole()
	}
	p.publish()
	p.whole()
}

// While a command is publishing, a different version is published. The command fails, and the different version
// remains.
func TestPublishCommandIsOvertaken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	storage := &certmagic.FileStorage{Path: filepath.Join(dir, "shared")}
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	config := write("publish.caddyfile", "{\nstorage file_system "+storage.Path+"\n}\n")
	publish := func(text string) *exec.Cmd {
		return asCaddyCommand(dir, "robots-policy", "publish", write("new.yaml", text), "--to", "storage:site.yaml", "--yes", "--config", config, "--adapter", "caddyfile")
	}
	const policy = "version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: /a/}\n"
	if out, err := publish(policy).CombinedOutput(); !written(err) {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := storage.Lock(t.Context(), "site.yaml.publish"); err != nil {
		t.Fatal(err)
	}
	cmd := publish(policy + "  - for: everyone\n    disallow: {crawl: /mine/}\n")
	var out strings.Builder
	cmd.Stderr = &out
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// When the process prints the first line, it has read the published version, and will then wait for the lock that
	// the test holds.
	printed := bufio.NewReader(stdout)
	if _, err := printed.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := storage.Store(t.Context(), "site.yaml", []byte(policy+"# theirs\n")); err != nil {
		t.Fatal(err)
	}
	if err := storage.Unlock(t.Context(), "site.yaml.publish"); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, printed)
	if err := cmd.Wait(); written(err) || !strings.Contains(out.String(), "another version was published in the meantime at storage:site.yaml") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if got, err := storage.Load(t.Context(), "site.yaml"); err != nil || string(got) != policy+"# theirs\n" {
		t.Errorf("the storage holds %q, %v", got, err)
	}
}
