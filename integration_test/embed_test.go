// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

const embedPage = "../docs/how-to/embed-in-go.md"

// TestEmbedInGo builds and runs the program in docs/how-to/embed-in-go.md with the commands on that page.
func TestEmbedInGo(t *testing.T) {
	testkit.Slow(t)
	dir, site := t.TempDir(), freeAddr(t)
	repository, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var parts []string // blocks of other programs
	for _, b := range shownBlocks(t) {
		switch {
		case b.page != embedPage:
		case b.language == "go" && strings.HasPrefix(b.text, "package main"):
			write("main.go", strings.ReplaceAll(b.text, "localhost:8080", site))
		case b.language == "go":
			parts = append(parts, b.text)
		case b.language == "yaml":
			write("site-policy.yaml", b.text)
		case b.language == "sh":
			cmd := exec.Command("bash", "-euc", strings.ReplaceAll(b.text, "../caddy-robots-policy", repository))
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			program := exec.Command(filepath.Join(dir, "program"))
			program.Dir = dir
			if err := program.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = program.Process.Kill(); _ = program.Wait() })
			for answer, err := client.Get("http://" + site); ; answer, err = client.Get("http://" + site) {
				if err == nil {
					_ = answer.Body.Close()
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
		case b.language == "console":
			runBlock(t, dir, b, "localhost:8080", site)
		}
	}
	if len(parts) != 3 {
		t.Fatalf("%d other blocks of Go", len(parts))
	}
	declaration, options, _ := strings.Cut(parts[1], "\nrobots := ")
	write("parts.go", strings.NewReplacer("VERIFYING", parts[0], "DECLARATION", declaration, "OPTIONS", options, "READING", parts[2]).Replace(`package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/handler"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

DECLARATION

func verifying(policies *source.Store, logger *zap.Logger, metrics prometheus.Registerer) error {
	VERIFYING
	robots := OPTIONS
	_ = robots
	return nil
}

func reading(data []byte) {
	READING
	_, _, _ = answer, delay, preferences
}
`))
	// Some blocks of the page are only parts of a program. They need more modules than the example program, so they are
	// checked in this module.
	cmd := exec.Command("go", "vet", filepath.Join(dir, "main.go"), filepath.Join(dir, "parts.go"))
	cmd.Dir = repository
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
