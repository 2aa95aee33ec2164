// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestInitGolden(t *testing.T) {
	for name, args := range map[string][]string{
		"newspaper":     {"--host", "www.example.com", "--search", "yes", "--ai-training", "no", "--ai-answers", "no", "--disallow", "/premium/", "--disallow", "/archive/"},
		"shop":          {"--host", "shop.example.com", "--search", "yes", "--ai-training", "no", "--ai-answers", "yes", "--disallow", "/cart", "--disallow", "/checkout/", "--disallow", "/*?sort="},
		"documentation": {"--host", "docs.example.com", "--search", "yes", "--ai-training", "yes", "--ai-answers", "yes"},
		"staging":       {"--host", "www.example.com", "--staging", "staging.example.com", "--staging", "*.preview.example.com"},
		"private":       {"--host", "intern.example.com", "--search", "no", "--ai-training", "no", "--ai-answers", "no"},
		"commented":     {"--host", "www.example.com", "--from", "testdata/init/commented-robots.txt", "--disallow", "/members/"},
		"imported":      {"--host", "www.example.com", "--from", "testdata/init/robots.txt", "--ai-training", "no"},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "site-policy.yaml")
			stdout, stderr, err := execute(initCommand(), "", append(args, "-o", out)...)
			if err != nil {
				t.Fatal(err, stderr)
			}
			text, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			stdout = strings.ReplaceAll(stdout, out, "site-policy.yaml")
			compareGolden(t, "testdata/init/"+name+".yaml", text)
			compareGolden(t, "testdata/init/"+name+".txt", []byte(stdout))
		})
	}
}

func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s (-update rewrites it):\n%s\nwant:\n%s", name, got, want)
	}
}

func TestInitNeverOverwrites(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, err := execute(initCommand(), "", "--search", "yes", "-o", file)
	if err == nil || !strings.Contains(stderr, "does not overwrite") {
		t.Errorf("%v %s", err, stderr)
	}
	link := filepath.Join(t.TempDir(), "link.yaml")
	if err := os.Symlink(filepath.Join(t.TempDir(), "nowhere"), link); err == nil {
		if _, _, err := execute(initCommand(), "", "--search", "yes", "-o", link); err == nil {
			t.Error("wrote through a symbolic link")
		}
	}
	if data, _ := os.ReadFile(file); string(data) != "mine" {
		t.Errorf("overwritten: %s", data)
	}
}

func TestInitRejects(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no terminal":    {nil, "there is no terminal for questions"},
		"argument":       {[]string{"site.yaml"}, "init takes no arguments"},
		"answer":         {[]string{"--search", "perhaps"}, `invalid --search "perhaps": must be yes or no`},
		"host":           {[]string{"--host", "*.example.com"}, "must be one host"},
		"whole site":     {[]string{"--disallow", "/"}, "is the whole site"},
		"missing robots": {[]string{"--from", "nowhere-robots.txt"}, "does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "p.yaml")
			_, stderr, err := execute(initCommand(), "", append(tt.args, "-o", file)...)
			if err == nil || !strings.Contains(stderr, tt.want) {
				t.Errorf("%v: %s", err, stderr)
			}
			if _, err := os.Stat(file); err == nil {
				t.Error("a file was written")
			}
		})
	}
}

// TestInitFromServer starts from the robots.txt of a server. Lines that contradict the answers remain, and are
// reported.
func TestInitFromServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "User-agent: Bingbot\nDisallow: /\n\nUser-agent: *\nDisallow: /private/\n")
	}))
	defer server.Close()
	stdout, stderr, err := execute(initCommand(), "", "--from", server.URL, "--search", "yes", "-o", "-")
	if err != nil {
		t.Fatal(err, stderr)
	}
	for _, want := range []string{"for: Bingbot", "/private/", "category:search may index"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "category:search may crawl") || !strings.Contains(stderr, "robots.txt contradicts your answers") {
		t.Errorf("the test that fails must be left out and reported:\n%s\n%s", stdout, stderr)
	}
}

// TestInitFromNamesTheDefaultItDrops calls init with a robots.txt, but without the flag --ai-training. AI training then
// remains allowed as in the robots.txt, although the default of init is to disallow it. So init says how to disallow
// it.
func TestInitFromNamesTheDefaultItDrops(t *testing.T) {
	const advice = "run init again with --ai-training no"
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	open := write("open.txt", "User-agent: *\nDisallow: /x/\n")
	closed := write("closed.txt", "User-agent: *\nContent-Usage: train-ai=n\nDisallow: /x/\n")
	for name, tt := range map[string]struct {
		args []string
		want bool
	}{
		"no flag":         {[]string{"--from", open}, true},
		"another flag":    {[]string{"--from", open, "--search", "yes"}, true},
		"prohibited":      {[]string{"--from", open, "--ai-training", "no"}, false},
		"allowed":         {[]string{"--from", open, "--ai-training", "yes"}, false},
		"robots.txt does": {[]string{"--from", closed}, false},
		"no robots.txt":   {[]string{"--search", "yes"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "p.yaml")
			stdout, stderr, err := execute(initCommand(), "", append(tt.args, "-o", out)...)
			if err != nil {
				t.Fatal(err, stderr)
			}
			if strings.Contains(stdout, advice) != tt.want {
				t.Errorf("want %v:\n%s", tt.want, stdout)
			}
			if _, stderr, _ := execute(initCommand(), "", append(tt.args, "-o", "-")...); strings.Contains(stderr, advice) != tt.want {
				t.Errorf("with -o -, want %v:\n%s", tt.want, stderr)
			}
		})
	}
}
