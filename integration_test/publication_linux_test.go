// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
)

// TestFirstPublication follows docs/how-to/publish-and-undo.md on a machine whose Caddy runs as another user. The
// command publish does not write anything as root, but prints the command to run instead. The printed command works.
func TestFirstPublication(t *testing.T) {
	nobody, err := user.Lookup("nobody")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("needs root, and a user nobody")
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "publication") // other users can enter this folder, unlike t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	site, admin := freeAddr(t), freeAddr(t)
	here := strings.NewReplacer("/var/lib/caddy", dir+"/lib", "/etc/caddy", dir+"/etc", "sudo -u caddy ", "",
		"{\n\tstorage", "{\n\tadmin "+admin+"\n\tpersist_config off\n\tauto_https off\n\tstorage", "www.example.com {", "http://"+site+" {")
	var config, publish string
	var history shownBlock
	for _, b := range shownBlocks(t) {
		switch {
		case !strings.HasSuffix(b.page, "publish-and-undo.md"):
		case b.language == "caddyfile":
			config = b.text
		case strings.HasPrefix(b.text, "sudo -u caddy ") && publish == "":
			publish = b.text
		case b.language == "console":
			history = b
		}
	}
	program, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "caddy"), program, 0o755)
	}
	for _, name := range []string{".", "lib", "etc", "home"} {
		if err == nil && name != "." {
			err = os.Mkdir(filepath.Join(dir, name), 0o755)
		}
		if err == nil {
			err = os.Chmod(filepath.Join(dir, name), 0o755)
		}
	}
	for _, name := range []string{"lib", "home"} {
		if err == nil {
			err = os.Chown(filepath.Join(dir, name), uid, -1)
		}
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "etc/Caddyfile"), []byte(here.Replace(config)), 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "etc/site-policy.yaml"), []byte(disallowing("/published/")), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	as := func(id int, script string) *exec.Cmd {
		cmd := caddytest.Command(filepath.Join(dir, "home"))
		cmd.Path, cmd.Args, cmd.Dir = "/bin/bash", []string{"bash", "-c", here.Replace(script)}, filepath.Join(dir, "etc")
		cmd.Env = append(cmd.Env, "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+filepath.Join(dir, "home"))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}}
		return cmd
	}
	caddy := as(uid, "exec caddy run --config /etc/caddy/Caddyfile")
	if err := caddy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Process.Kill(); _ = caddy.Wait() })
	robots := func() string {
		for {
			answer, err := client.Get("http://" + site + "/robots.txt")
			if err != nil {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			body, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			return string(body)
		}
	}
	if strings.Contains(robots(), "/published/") {
		t.Fatal("there is a policy already")
	}
	if err := os.MkdirAll(filepath.Join(dir, "lib/storage"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(dir, "lib/storage"), uid, -1); err != nil {
		t.Fatal(err)
	}
	if out, err := as(0, publish).CombinedOutput(); err == nil || !strings.Contains(string(out), "run: sudo -u nobody ") {
		t.Errorf("as root: %v\n%s", err, out)
	}
	if out, err := as(uid, publish).CombinedOutput(); err != nil || !strings.Contains(string(out), "loaded by the server at ") {
		t.Fatalf("as the user of Caddy: %v\n%s", err, out)
	}
	if text := robots(); !strings.Contains(text, "Disallow: /published/") {
		t.Errorf("not served:\n%s", text)
	}
	history.compare(t, func(command string) string {
		out, err := as(uid, command).Output()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return strings.ReplaceAll(string(out), "nobody", "caddy ")
	})
}
