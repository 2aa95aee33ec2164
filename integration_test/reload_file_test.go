// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

const quickReload = "robots_policy POLICY {\nreload 50ms\n}\nrespond hello"

// However a file is changed, the change is served without a signal to Caddy.
func TestReloadOfAFile(t *testing.T) {
	s := startReloading(t, "", disallowing("/a0"), nil, quickReload)
	path := filepath.Join(s.dir, "policy.yaml")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, change := range []struct {
		name string
		make func(text string)
	}{
		{"written in place", func(text string) { s.write("policy.yaml", text) }},
		{"renamed over", func(text string) {
			s.write("new.yaml", text)
			must(os.Rename(filepath.Join(s.dir, "new.yaml"), path))
		}},
		{"put away and written anew, as editors do", func(text string) {
			must(os.Rename(path, path+"~"))
			s.write("policy.yaml", text)
		}},
		{"of the same length, with the date of the old one", func(text string) {
			info, err := os.Stat(path)
			must(err)
			s.write("policy.yaml", text)
			must(os.Chtimes(path, info.ModTime(), info.ModTime()))
		}},
		{"deleted, and written later", func(text string) {
			must(os.Remove(path))
			eventually(t, "a log entry that the file is gone", func() bool { return len(s.log("policy not reloaded")) > 0 })
			s.write("policy.yaml", text)
		}},
		{"a symbolic link in its place", func(text string) {
			s.write("target.yaml", text)
			must(os.Remove(path))
			must(os.Symlink(filepath.Join(s.dir, "target.yaml"), path))
		}},
	} {
		want := fmt.Sprintf("/a%d", i+1)
		change.make(disallowing(want))
		eventually(t, change.name, func() bool { return s.disallows(want) })
		r := s.get(want)
		if r.Header.Get("X-Robots-Tag") != "noindex" {
			t.Errorf("%s: %v", change.name, r.Header)
		}
	}
}

// In a volume of Kubernetes, the policy file is a symbolic link to ..data/policy.yaml, and ..data is a symbolic link to
// a directory with the current files. An update changes only the link ..data.
func TestReloadOfAConfigMap(t *testing.T) {
	s := startReloading(t, "", disallowing("/"), nil, "respond hello")
	put := func(version, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(s.dir, "volume", version), 0o700); err != nil {
			t.Fatal(err)
		}
		s.write("volume/"+version+"/policy.yaml", text)
		link := filepath.Join(s.dir, "volume", "..data_tmp")
		if err := os.Symlink(version, link); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link, filepath.Join(s.dir, "volume", "..data")); err != nil {
			t.Fatal(err)
		}
	}
	put("..2026_01", disallowing("/one"))
	if err := os.Symlink("..data/policy.yaml", filepath.Join(s.dir, "volume", "policy.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := s.reconfigure("robots_policy DIR/volume/policy.yaml {\nreload 50ms\n}\nrespond hello"); err != nil {
		t.Fatal(err)
	}
	if !s.disallows("/one") {
		t.Fatal(s.get("/robots.txt").body)
	}
	put("..2026_02", disallowing("/two"))
	eventually(t, "the link was turned", func() bool { return s.disallows("/two") })
	if err := os.RemoveAll(filepath.Join(s.dir, "volume", "..2026_01")); err != nil {
		t.Fatal(err)
	}
	put("..2026_03", disallowing("/three"))
	eventually(t, "the link was turned again", func() bool { return s.disallows("/three") })
}

// While an editor still writes the policy file, the first half of the file can already be a valid policy. The server
// does not load it until the file no longer changes.
func TestReloadOfAHalfWrittenFile(t *testing.T) {
	s := startReloading(t, "", disallowing("/a"), nil, quickReload)
	whole := disallowing("/a") + "  - for: GPTBot\n    disallow:\n      crawl: /\n"
	for i := 1; i < len(whole); i += 12 {
		s.write("policy.yaml", whole[:i])
		time.Sleep(15 * time.Millisecond)
		if !s.disallows("/a") {
			t.Fatalf("the first %d bytes of the file were loaded as a policy", i)
		}
	}
	s.write("policy.yaml", whole)
	eventually(t, "the whole file", func() bool { return s.disallows("/") })
	if lines := s.log("policy not reloaded"); len(lines) > 0 {
		t.Errorf("the first half of the file was reported: %v", lines)
	}
}

func TestReloadOfABrokenFile(t *testing.T) {
	s := startReloading(t, "", disallowing("/a"), nil, quickReload)
	for name, broken := range map[string]string{
		"a typo": strings.Replace(disallowing("/b"), "disallow", "dissallow", 1), "nothing": "", "HTML": "<!DOCTYPE html>\n<p>404",
		"too large": "version: 1\n#" + strings.Repeat("x", 3<<20), "binary": "\x00\xff\xfe\x00", "a bomb": bomb(),
	} {
		before := len(s.log("policy not reloaded"))
		s.write("policy.yaml", broken)
		eventually(t, name+" is logged", func() bool { return len(s.log("policy not reloaded")) > before })
		if !s.disallows("/a") || s.disallows("/b") {
			t.Fatalf("%s: %s", name, s.get("/robots.txt").body)
		}
		lines := s.log("policy not reloaded")
		if text := fmt.Sprint(lines[before]["error"]); !strings.Contains(text, "policy.yaml:") || lines[before]["level"] != "error" {
			t.Errorf("%s: %v", name, lines[before])
		}
	}
	time.Sleep(300 * time.Millisecond)
	logged := len(s.log("policy not reloaded"))
	s.write("policy.yaml", disallowing("/a"))
	eventually(t, "a log line about the recovery", func() bool { return len(s.log("policy recovered")) == 1 })
	if again := len(s.log("policy not reloaded")); again != logged || logged != 6 {
		t.Errorf("6 broken files were logged %d times", again)
	}
	s.write("policy.yaml", disallowing("/b"))
	eventually(t, "the next edit", func() bool { return s.disallows("/b") })
	eventually(t, "a log entry about the edit", func() bool { return len(s.log("policy reloaded")) > 0 })
	lines := s.log("policy reloaded")
	if len(lines) != 1 || !strings.Contains(fmt.Sprint(lines[0]["changes"]), "everyone may no longer crawl /b") || lines[0]["robots_txt_changed"] != true {
		t.Errorf("%v", lines)
	}
}

// bomb is YAML that expands to a very large document.
func bomb() string {
	var b strings.Builder
	b.WriteString("version: 1\na0: &a0 [x, x, x, x, x, x, x, x]\n")
	for i := range 20 {
		fmt.Fprintf(&b, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i, i, i, i)
	}
	return b.String()
}

// With "reload off", the policy file is read only when a configuration is loaded. Caddy does not load a configuration
// that has not changed, unless --force is used.
func TestReloadOff(t *testing.T) {
	s := startReloading(t, "", disallowing("/a"), nil, "robots_policy POLICY {\nreload off\n}\nrespond hello")
	s.write("policy.yaml", disallowing("/b"))
	time.Sleep(600 * time.Millisecond)
	if !s.disallows("/a") {
		t.Error("a change was loaded")
	}
	if err := s.reconfigure(s.body); err != nil {
		t.Fatal(err)
	}
	if !s.disallows("/b") {
		t.Error("caddy reload --force did not load the change")
	}
	s.write("policy.yaml", "version: 1\nrulez: 1\n")
	if err := s.reconfigure(s.body); err == nil || !strings.Contains(err.Error(), "policy.yaml:2:1: error:") {
		t.Errorf("a broken policy was loaded: %v", err)
	}
	if !s.disallows("/b") {
		t.Error("the previous policy is no longer served")
	}
}

// A rejected configuration does not affect the policy of the running one.
func TestRefusedConfigurations(t *testing.T) {
	s := startReloading(t, "", disallowing("/a"), nil, quickReload)
	for range testkit.Rounds(5, 20) {
		s.write("policy.yaml", "version: 1\nrulez: 1\n")
		if err := s.reconfigure(s.body); err == nil {
			t.Fatal("a broken policy was loaded")
		}
		s.write("policy.yaml", disallowing("/a"))
		if err := s.reconfigure("robots_policy POLICY\nfile_server {\nfs nowhere\n}\ntls nothing"); err == nil {
			t.Fatal("an invalid configuration was loaded")
		}
	}
	s.write("policy.yaml", disallowing("/b"))
	eventually(t, "the running configuration still follows", func() bool { return s.disallows("/b") })
}

// If the policy file is edited while a new configuration replaces the old one, the edit is not lost.
func TestReloadAcrossConfigurations(t *testing.T) {
	s := startReloading(t, "", disallowing("/a0"), nil, quickReload)
	for i := range testkit.Rounds(6, 20) {
		want := fmt.Sprintf("/a%d", i+1)
		if i%2 == 0 {
			s.write("policy.yaml", disallowing(want))
			if err := s.reconfigure(s.body); err != nil {
				t.Fatal(err)
			}
			if !s.disallows(want) {
				t.Fatalf("%d: %s", i, s.get("/robots.txt").body)
			}
			continue
		}
		if err := s.reconfigure(s.body); err != nil {
			t.Fatal(err)
		}
		s.write("policy.yaml", disallowing(want))
		eventually(t, want, func() bool { return s.disallows(want) })
	}
}

func TestReloadWords(t *testing.T) {
	s := startReloading(t, "", disallowing("/a"), nil, "respond hello")
	for word, want := range map[string]string{
		"off": "", "50ms": "", "1d": "", "1ms": "is checked at most every 50ms",
		"0": "invalid reload", "soon": "invalid reload", "-1s": "invalid reload", "": "Wrong argument count or unexpected line ending",
	} {
		err := s.reconfigure("robots_policy POLICY {\nreload " + word + "\n}")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "reload takes \"off\"")) {
			t.Errorf("reload %s: %v", word, err)
		}
	}
}
