// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// recordEverything returns global options that switch on all recorders, and the console at the given address. disk is
// the folder for the evidence log, which is on a separate disk.
func recordEverything(disk, console string) string {
	return `robots_policy {
		crawler_log
		evidence ` + disk + `/evidence
		activity DIR/activity
		metrics hosts 20
		console ` + strings.Replace(console, "127.0.0.1", "localhost", 1) + ` {
			write
		}
	}
	log requests {
		include http.robots_policy.crawler_log
		output file DIR/crawlers.log {
			roll_size 10MiB
			roll_keep 1
		}
	}
	metrics
	`
}

// mountSmallDisk mounts a file system of 64 MiB on a directory. If this process may not mount, the test is skipped. To
// allow it, run the test with: unshare -rm go test …
func mountSmallDisk(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("cannot make a file system of its own: %v; run it under unshare -rm", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// fillDisk fills a disk completely, and returns the file that it wrote for this.
func fillDisk(t *testing.T, disk string) string {
	t.Helper()
	f, err := os.Create(filepath.Join(disk, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zeros := make([]byte, 1<<16)
	for err == nil {
		if _, err = f.Write(zeros); err != nil && len(zeros) > 1 {
			zeros, err = zeros[:len(zeros)/2], nil
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return f.Name()
}

// damageStore overwrites the activity database in use, including the additional files of SQLite.
func (s *reloading) damageStore(t *testing.T) {
	t.Helper()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		f, err := os.OpenFile(filepath.Join(s.dir, "activity", "activity.db"+suffix), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		size, err := f.Seek(0, io.SeekEnd)
		if err == nil {
			_, err = f.WriteAt(bytes.Repeat([]byte{0x55}, int(size)), 0)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// readPages requests pages of the console, as people do, and the metrics, as Prometheus does.
func (s *reloading) readPages(t *testing.T, console string) {
	addr := strings.Replace(console, "127.0.0.1", "localhost", 1)
	for _, page := range []string{addr + "/", addr + "/who-came", addr + "/who-may", addr + "/health", addr + "/published", s.admin + "/metrics", s.admin + "/robots_policy/verification"} {
		resp, err := client.Get("http://" + page)
		if err != nil {
			t.Error(err)
			return
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if damaged := resp.StatusCode == http.StatusInternalServerError && strings.HasPrefix(page, addr); damaged {
			t.Logf("%s: %s while the database is damaged", page, resp.Status)
		} else if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %v\n%.3000s", page, resp.Status, err, body)
		}
	}
}

// wantFailing waits until an error was logged for each of the optional parts.
func (s *reloading) wantFailing(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !s.logged("an optional part of robots_policy does not work", part) {
			t.Errorf("no logged error says that %s does not work", part)
		}
	}
}

// wantWorking waits until each of the optional parts works again after its failure.
func (s *reloading) wantWorking(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !s.logged("an optional part of robots_policy works again", part) {
			t.Errorf("%s does not work again", part)
		}
	}
	if aside, err := filepath.Glob(filepath.Join(s.dir, "activity", "*.damaged-*")); err != nil || len(aside) == 0 {
		t.Error("the damaged database was not put aside")
	}
}

func (s *reloading) logged(message, part string) bool {
	for _, fields := range s.log(message) {
		if fields["part"] == part {
			return true
		}
	}
	return false
}
