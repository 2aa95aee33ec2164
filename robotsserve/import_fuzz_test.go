// SPDX-License-Identifier: Apache-2.0

package robotsserve_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

func addFiles(f *testing.F) {
	files, err := filepath.Glob("testdata/import/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("\ufeffuser agent *\rdisalow http://example.com/x y\rContent-Signal: ai-train=no\rApp-Directives: /a x;y"))
	f.Add([]byte("User-Agent: A\nDisAllAw: $"))
	f.Add([]byte("User Agent: *\nDisAllAw: /\nACAP-CrAwler: x\nACAP-Allow-i0000: 0 0"))
	f.Add([]byte("UserAgent 0\nDisAlow l**#0\nAllow l0"))
	f.Add([]byte("User-Agent: A\nDisallow: b\nAllow: b$ # c"))
	f.Add([]byte("ACAP-crawler: *\nACAP-disallow-crawl: $"))
	f.Add([]byte("User-agent: a\nUser-agent: *\nDisallow: /\n\nUser-agent: a\nAllow: /b\nACAP-crawler: *\nACAP-allow-index: / time-limit=3-days\n"))
}

// FuzzImport holds what is imported of any file to loading, to what an independent
// reader has of the file, and to telling of lines that exist.
func FuzzImport(f *testing.F) {
	addFiles(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<12 {
			return
		}
		_, told := robotsserve.Import(data, robotsserve.ImportOptions{})
		lines := len(originalLines(data))
		for _, tl := range told {
			if tl.Line < 0 || tl.Line > lines || !utf8.ValidString(tl.Message) || strings.ContainsAny(tl.Message, "\r\n\x00") {
				t.Fatalf("of %d lines: %+v", lines, tl)
			}
		}
		checkImport(t, data, 5)
	})
}

var toldPath = regexp.MustCompile(` is no path, which starts with /; it is read as ("(?:[^"\\]|\\.)*")$`)

// FuzzMerge holds what is merged with any file to the policy where that says
// something, to the file where it does not, and to lines that are the policy's or the
// file's.
func FuzzMerge(f *testing.F) {
	file, ds := policyfile.Load("policy.yaml", []byte(`version: 1
rules:
  - for: everyone
    disallow:
      crawl: [/admin/, "/*.pdf$"]
    allow:
      crawl: /admin/open
  - for: GPTBot
    disallow:
      crawl: /
  - for: category:search
    allow:
      crawl: /admin/search
`))
	if ds.HasErrors() {
		f.Fatal(ds)
	}
	p := file.Policy
	addFiles(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<12 {
			return
		}
		merged, problems, told := robotsserve.Merge(p, "www.example.com", robotsserve.ParseOther(data), robotsserve.Options{})
		for _, pr := range problems {
			if pr.Severity == policy.Error {
				return
			}
		}
		if !utf8.Valid(merged.Body) || bytes.ContainsAny(merged.Body, "\r\x00\x7f") || bytes.Contains(merged.Body, []byte("\n\n\n")) {
			t.Fatalf("%q", merged.Body)
		}
		nobody, read := map[int]bool{}, readAs(told)
		for _, tl := range told {
			nobody[tl.Line] = nobody[tl.Line] || strings.Contains(tl.Message, " names no crawler")
			if m := toldPath.FindStringSubmatch(tl.Message); m != nil {
				line, ok := read[tl.Line]
				if !ok {
					line = originalLines(data)[tl.Line-1]
				}
				key, _, _ := strings.Cut(line, ":")
				path, _ := strconv.Unquote(m[1])
				read[tl.Line] = key + ":" + path
			}
		}
		theirs, ours := readOriginal(data, read), readOriginal(merged.Body, nil)
		r := rand.New(rand.NewPCG(1, 21))
		names := append([]string{"zetabot", "gptbot", "bingbot"}, theirs.names...)
		for _, name := range names[:min(len(names), 6)] {
			if name == "*" || nobody[theirs.named[name]] {
				continue
			}
			for _, path := range append(importPaths(r, theirs, name)[:5], "/admin/x", "/admin/open/y") {
				norm := originalPath(path)
				d := p.Decide(policy.Query{Crawler: p.Crawler(name), Identity: policy.Verified, Host: "www.example.com", Path: path})
				want, by := d.Verdict == policy.Allowed, 0
				if d.Verdict == policy.Unstated {
					want, by = theirs.may(name, norm)
				}
				got, at := ours.may(name, norm)
				if got != want && norm != "/robots.txt" && !lossy(merged, name, norm) {
					t.Fatalf("%q may fetch %q: %v by line %d, the policy %v, want %v\n%s\ntheirs, line %d\n%s", name, path, got, at, d.Verdict, want, merged.Body, by, data)
				}
			}
		}
	})
}
