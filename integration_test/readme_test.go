// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
)

var update = flag.Bool("update", false, "write what is seen into the files that show it")

func TestMain(m *testing.M) { caddytest.Main(thenTable{m}, func(bool) { useTestResolver() }) }

// TestReadme runs the commands that the README shows, and compares what
// they print with what is shown.
func TestReadme(t *testing.T) {
	addr := startExample(t)
	compareShown(t, addr, "../README.md")
}

// compareShown runs the commands of a page.
func compareShown(t *testing.T, addr, page string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
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
			out.WriteString(runShown(t, addr, strings.TrimSpace(command)))
		}
		out.WriteString("```")
		return out.Bytes()
	})
	if *update {
		if err := os.WriteFile(page, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(got, text) {
		t.Errorf("%s shows something else than what its commands print (-update rewrites it):\n%s", page, firstDifference(string(text), string(got)))
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
		"admin localhost", "persist_config off\n\tadmin localhost", " examples/", " ../examples/", "caddy-data/", t.TempDir()+"/").Replace(string(text))
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

// runShown runs a command as a page shows it: curl with a few of its flags, or our own
// command line, with a filter through grep -i or head -n.
func runShown(t *testing.T, addr, command string) string {
	t.Helper()
	command, count, cut := strings.Cut(command, " | head -n ")
	if cut {
		n, err := strconv.Atoi(count)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(runShown(t, addr, command), "\n")
		return strings.Join(lines[:min(n, len(lines))], "")
	}
	command, filter, piped := strings.Cut(command, " | grep -i ")
	words := shellWords(command)
	var out string
	switch {
	case words[0] == "curl":
		out = strings.ReplaceAll(curl(t, addr, words[1:]), "\r\n", "\n") // as a terminal shows it
	case strings.HasPrefix(command, "go run ./cmd/caddy "):
		cmd := asCaddyCommand(t.TempDir(), words[3:]...)
		cmd.Dir = ".."
		cmd.Env = append(cmd.Env, "NO_COLOR=1")
		both, err := cmd.CombinedOutput()
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		out = string(both)
	default:
		t.Fatalf("the page shows a command that its test does not know: %s", command)
	}
	if !piped {
		return out
	}
	var filtered strings.Builder
	want := strings.ToLower(shellWords(filter)[0])
	for line := range strings.Lines(out) {
		if strings.Contains(strings.ToLower(line), want) {
			filtered.WriteString(line)
		}
	}
	return filtered.String()
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
