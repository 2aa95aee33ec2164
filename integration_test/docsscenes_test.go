// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

const quickStart = "../docs/get-started/quick-start.md"

// scenes returns the blocks of each page that has a policy and commands that show the effect of this policy.
func scenes(t *testing.T) map[string][]shownBlock {
	t.Helper()
	pages := map[string][]shownBlock{}
	for _, b := range shownBlocks(t) {
		if ofScenario(b) {
			pages[b.page] = append(pages[b.page], b)
		}
	}
	return pages
}

// withoutPolicy lists the how-to pages without a policy. TestCommandBlocks runs their commands on the documented site.
var withoutPolicy = regexp.MustCompile(`/(behind-a-cdn|containers|embed-in-go|import|other-servers|prove-violations|publish-and-undo|test-on-real-traffic)\.md$`)

// ofScenario reports whether the commands of a block are about the policy of their page.
func ofScenario(b shownBlock) bool {
	return b.page == quickStart || strings.Contains(b.page, "/how-to/") && !withoutPolicy.MatchString(b.page)
}

// writePolicy writes the first policy that a page shows.
func writePolicy(t *testing.T, dir string, blocks []shownBlock) {
	t.Helper()
	for _, b := range blocks {
		if b.language != "yaml" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "site-policy.yaml"), []byte(b.text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("%s shows no policy", blocks[0].page)
}

// TestHowTos serves the policy that each how-to page shows, and runs the commands of this page. It compares their
// output with the output that the page shows.
func TestHowTos(t *testing.T) {
	testkit.Slow(t)
	if n := len(scenes(t)); n < 12 {
		t.Errorf("only %d pages", n)
	}
	for page, blocks := range scenes(t) {
		if page == quickStart {
			continue
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			dir, site := t.TempDir(), freeAddr(t)
			writePolicy(t, dir, blocks)
			err := load("{\nadmin off\npersist_config off\nauto_https off\nstorage file_system " + dir + "/storage\n}\n" +
				"http://:" + site[strings.LastIndexByte(site, ':')+1:] + " {\nbind 127.0.0.1\nrobots_policy " + dir + "/site-policy.yaml\nroot ../examples/site\ntry_files {path} {path}.html\nfile_server\n}\n")
			if err != nil {
				t.Fatal(err)
			}
			ran := 0
			for _, b := range blocks {
				if b.language == "console" || b.language == "sh" && strings.Contains(b.text, "robots-policy audit ") {
					ran++
					at := t.TempDir()
					writePolicy(t, at, blocks)
					runBlock(t, at, b, "https://www.example.com", "http://"+site)
				}
			}
			if ran == 0 {
				t.Error("the page has no commands")
			}
			if err := caddy.Stop(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestQuickStart follows docs/get-started/quick-start.md: it runs all commands in one folder, in the order of the page.
func TestQuickStart(t *testing.T) {
	testkit.Slow(t)
	dir, site := t.TempDir(), freeAddr(t)
	blocks := scenes(t)[quickStart]
	writePolicy(t, dir, blocks)
	ran := 0
	for _, b := range blocks {
		switch {
		case b.language == "caddyfile":
			config := "{\nadmin off\n}\n" + strings.ReplaceAll(b.text, "localhost:8080", site)
			if err := os.WriteFile(filepath.Join(dir, "Caddyfile"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
		case b.text == "caddy run\n":
			cmd := caddytest.Command(filepath.Join(dir, "home"), "run")
			cmd.Dir = dir
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			for answer, err := client.Get("http://" + site); ; answer, err = client.Get("http://" + site) {
				if err == nil {
					_ = answer.Body.Close()
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
		case b.language == "sh" || b.language == "console":
			ran++
			runBlock(t, dir, b, "localhost:8080", site)
		}
	}
	if ran < 8 {
		t.Errorf("only %d blocks", ran)
	}
}
