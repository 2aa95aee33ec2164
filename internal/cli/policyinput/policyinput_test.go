// SPDX-License-Identifier: Apache-2.0

package policyinput

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

const robots = "User-agent: *\nDisallow: /admin/\n"

func utf16le(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

// When a robots.txt is fetched, the result depends on the status and the content of the response, as described in RFC
// 9309 section 2.3.1.
func TestReadFromServer(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	serve := func(path string, status int, body string, header ...string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
	}
	serve("/robots.txt", 200, robots)
	serve("/moved", 301, "", "Location", "/moved2")
	serve("/moved2", 302, "", "Location", "/moved3")
	serve("/moved3", 307, "", "Location", "/moved4")
	serve("/moved4", 308, "", "Location", "/moved5")
	serve("/moved5", 303, "", "Location", "/robots.txt")
	serve("/loop", 302, "", "Location", "/loop")
	serve("/bom", 200, "\ufeff"+robots)
	serve("/utf16", 200, utf16le(robots))
	serve("/gzip", 200, gzipped(robots), "Content-Encoding", "gzip")
	serve("/cut", 200, gzipped(strings.Repeat(robots, 100))[:40], "Content-Encoding", "gzip")
	serve("/brotli", 200, "x", "Content-Encoding", "br")
	serve("/page", 200, "<!doctype html><title>Not found</title>", "Content-Type", "text/html")
	serve("/none", 404, "<html>")
	serve("/denied", 403, "")
	serve("/busy", 429, "")
	serve("/broken", 503, "")
	serve("/empty", 200, "")
	serve("/policy", 200, "version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: /admin/}\n")
	serve("/bad.yaml", 200, "version: 1\nrulez: []\n")
	// Crawlers read only 500 KiB, so they do not see the last line.
	serve("/long", 200, robots+strings.Repeat("# filler\n", 60_000)+"Disallow: /late/\n")
	s := httptest.NewServer(mux)
	defer s.Close()
	for _, c := range []struct {
		path, fails string
		invalid     bool
		policy      bool
		open        bool // true if /admin/ may be crawled
	}{
		{path: ""},
		{path: "/"},
		{path: "/robots.txt"},
		{path: "/robots.txt#part"},
		{path: "/moved"},
		{path: "/loop", fails: "more than 5 redirects"},
		{path: "/bom"},
		{path: "/utf16"},
		{path: "/gzip"},
		{path: "/cut", fails: "cut off"},
		{path: "/brotli", fails: "unsupported Content-Encoding"},
		{path: "/page", fails: "web page", invalid: true},
		{path: "/none", open: true},
		{path: "/denied", open: true},
		{path: "/busy", fails: "429"},
		{path: "/broken", fails: "503"},
		{path: "/empty", open: true},
		{path: "/policy", policy: true},
		{path: "/bad.yaml", fails: "rulez", invalid: true},
		{path: "/long"},
	} {
		t.Run(c.path, func(t *testing.T) {
			in, err := Read(context.Background(), s.URL+c.path, nil)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) || errors.Is(err, ErrInvalid) != c.invalid {
					t.Fatalf("%v, want an error about %q", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			d := in.Policy.Decide(policy.Query{Path: "/admin/x"})
			if (in.Robots == nil) != c.policy || d.Verdict == policy.Disallowed == c.open {
				t.Errorf("policy file %v, /admin/x %s; notes %v", in.Robots == nil, d.Verdict, in.Notes)
			}
			if d := in.Policy.Decide(policy.Query{Path: "/late/"}); d.Verdict == policy.Disallowed {
				t.Error("what follows 500 KiB was read")
			}
		})
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, c := range []struct {
		name, fails string
		policy      bool
	}{
		{name: write("robots.txt", robots)},
		{name: write("saved", robots)},
		{name: write("policy", "# mine\nversion: 1\n"), policy: true},
		{name: write("p.yml", "version: 1\n"), policy: true},
		{name: "-"},
		{name: dir, fails: "is a directory"},
		{name: filepath.Join(dir, "none"), fails: "does not exist"},
		{name: "https://", fails: "invalid URL"},
	} {
		t.Run(filepath.Base(c.name), func(t *testing.T) {
			in, err := Read(context.Background(), c.name, strings.NewReader(robots))
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("%v, want an error about %q", err, c.fails)
				}
				return
			}
			if err != nil || (in.Robots == nil) != c.policy {
				t.Errorf("%+v, %v", in, err)
			}
		})
	}
}
