// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

var update = flag.Bool("update", false, "write what is seen into the files that show it")

// built is the command of this module, made at most once for all tests.
var built struct {
	once     sync.Once
	dir, bin string
	err      error
}

// build returns the path of the command of this module.
func build(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "robots-policy-test-"); built.err != nil {
			return
		}
		built.bin = filepath.Join(built.dir, "caddy")
		cmd := exec.Command("go", "build", "-o", built.bin, "./cmd/caddy")
		cmd.Dir = ".."
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.bin
}

func TestMain(m *testing.M) {
	useTestResolver()
	code := m.Run()
	if built.dir != "" {
		if err := os.RemoveAll(built.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// TestReadme runs the commands that the README shows, and compares what they
// print with what it shows.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a whole Caddy")
	}
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	bin := build(t)
	addr := startExample(t)
	block := regexp.MustCompile("(?s)```console\n(.*?)```")
	got := block.ReplaceAllFunc(text, func(b []byte) []byte {
		var out bytes.Buffer
		out.WriteString("```console\n")
		for line := range strings.Lines(string(block.FindSubmatch(b)[1])) {
			command, ok := strings.CutPrefix(line, "$ ")
			if !ok {
				continue
			}
			out.WriteString(line)
			out.WriteString(runShown(t, bin, addr, strings.TrimSpace(command)))
		}
		out.WriteString("```")
		return out.Bytes()
	})
	if *update {
		if err := os.WriteFile("../README.md", got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(got, text) {
		t.Errorf("the README shows something else than what its commands print (-update writes it anew):\n%s", firstDifference(string(text), string(got)))
	}
}

// startExample runs Caddyfile.example on free ports and returns its address.
func startExample(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	site, paper, admin := freeAddr(t), freeAddr(t), freeAddr(t)
	port := func(addr string) string { return addr[strings.LastIndexByte(addr, ':'):] }
	caddyfile := strings.NewReplacer(":8080", port(site), ":8081", port(paper), ":2019", port(admin),
		"admin localhost", "persist_config off\n\tadmin localhost", " examples/", " ../examples/").Replace(string(text))
	if err := load(caddyfile); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return site
}

// runShown runs a command as the README shows it: curl with a few of its flags,
// a filter through grep -i, or our own command line.
func runShown(t *testing.T, bin, addr, command string) string {
	t.Helper()
	command, filter, piped := strings.Cut(command, " | grep -i ")
	words := shellWords(command)
	var out string
	switch {
	case words[0] == "curl":
		out = strings.ReplaceAll(curl(t, addr, words[1:]), "\r\n", "\n") // as a terminal shows it
	case strings.HasPrefix(command, "go run ./cmd/caddy "):
		cmd := exec.CommandContext(context.Background(), bin, words[3:]...)
		cmd.Dir = ".."
		cmd.Env = append(os.Environ(), "NO_COLOR=1")
		both, err := cmd.CombinedOutput()
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		out = string(both)
	default:
		t.Fatalf("the README shows a command that its test does not know: %s", command)
	}
	if !piped {
		return out
	}
	var kept strings.Builder
	want := strings.ToLower(shellWords(filter)[0])
	for line := range strings.Lines(out) {
		if strings.Contains(strings.ToLower(line), want) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func shellWords(s string) (words []string) {
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(s, -1) {
		words = append(words, m[1]+m[2])
	}
	return words
}

func curl(t *testing.T, addr string, words []string) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("User-Agent", "curl/8.0")
	format, body, head := "", true, false
	for i := 0; i < len(words); i++ {
		switch w := words[i]; w {
		case "-s":
		case "-sI":
			r.Method, head = http.MethodHead, true
		case "-o":
			i++
			body = false
		case "-w":
			i++
			format = words[i]
		case "-A":
			i++
			r.Header.Set("User-Agent", words[i])
		default:
			if r.URL, err = r.URL.Parse("http://" + w); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.Host = r.URL.Host
	r.URL.Host = addr
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out strings.Builder
	if head {
		fmt.Fprintf(&out, "%s %s\n", resp.Proto, resp.Status)
		for _, name := range []string{"Content-Type", "Content-Usage", "Robots-Tag", "X-Robots-Tag"} {
			for _, v := range resp.Header.Values(name) {
				fmt.Fprintf(&out, "%s: %s\n", name, v)
			}
		}
		out.WriteString("...\n")
	} else if body {
		if _, err := io.Copy(&out, resp.Body); err != nil {
			t.Fatal(err)
		}
	}
	out.WriteString(strings.NewReplacer("%{http_code}", fmt.Sprint(resp.StatusCode), `\n`, "\n").Replace(format))
	return out.String()
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range w {
		if i >= len(g) || w[i] != g[i] {
			return fmt.Sprintf("line %d:\n- %s\n+ %s", i+1, w[i], strings.Join(g[min(i, len(g)):min(i+1, len(g))], ""))
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}
