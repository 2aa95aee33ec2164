// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
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

// FuzzImport imports arbitrary files. The policy must load, and its decisions must agree with the answers of an
// independent parser of the file. The line number of each note must exist.
func FuzzImport(f *testing.F) {
	addFiles(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<12 {
			return
		}
		got, err := robotstxt.Import(data, nil)
		if err != nil {
			return
		}
		notes := got.Notes
		lines := len(originalLines(data))
		for _, tl := range notes {
			if tl.Line < 0 || tl.Line > lines || !utf8.ValidString(tl.Message) || strings.ContainsAny(tl.Message, "\r\n\x00") {
				t.Fatalf("of %d lines: %+v", lines, tl)
			}
		}
		checkImport(t, newNames(t), data, 5)
	})
}

// FuzzMerge merges arbitrary files with a policy. If the policy states whether a crawler may fetch a path, the merged
// file must agree with the policy. For all other paths, it must agree with the original file.
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
		merged, problems, notes := robotsserve.Merge(p, "www.example.com", robotstxt.Parse(data), robotsserve.Options{})
		for _, pr := range problems {
			if pr.Severity == policy.Error {
				return
			}
		}
		if !utf8.Valid(merged.Body) || bytes.ContainsAny(merged.Body, "\r\x00\x7f") || bytes.Contains(merged.Body, []byte("\n\n\n")) {
			t.Fatalf("%q", merged.Body)
		}
		x := imported{google: crawlertest.ReadGoogle(string(acap.Decode(data))), of: map[string]policy.Crawler{}, named: map[string]bool{}, notes: map[int]string{}}
		agents := x.read(string(acap.Decode(data)))
		if x.strange {
			return // the policy and the file spell a path differently
		}
		for _, tl := range notes {
			x.notes[tl.Line] += tl.Message
		}
		ours := readOriginal(merged.Body, nil)
		r := rand.New(rand.NewPCG(1, 21))
		for _, name := range agents[:min(len(agents), 8)] {
			for _, path := range []string{x.path(r), x.path(r), x.path(r), "/admin/x", "/admin/open/y"} {
				norm := originalPath(path)
				d := p.Decide(policy.Query{Crawler: p.Crawler(name), Identity: policy.Verified, Host: "www.example.com", Path: path})
				token := "zetabot"
				for _, t := range append([]string{name}, p.CrawlerInfo(p.Crawler(name)).Follows...) {
					if x.named[strings.ToLower(t)] {
						token = t
						break
					}
				}
				want := d.Verdict == policy.Allowed
				if d.Verdict == policy.Unstated {
					want = p.CrawlerInfo(p.Crawler(name)).IgnoresStar && token == "zetabot" || x.google.Allowed(token, path)
				}
				obeys := name
				for _, t := range append([]string{name}, p.CrawlerInfo(p.Crawler(name)).Follows...) {
					if _, ok := ours.named[strings.ToLower(t)]; ok {
						obeys = t
						break
					}
				}
				got, at := ours.may(obeys, norm)
				if _, ok := ours.named[strings.ToLower(obeys)]; !ok && p.CrawlerInfo(p.Crawler(name)).IgnoresStar {
					continue // robots.txt does not address this crawler
				}
				if got != want && path == norm && norm != "/robots.txt" && !lossy(merged, name, norm) {
					t.Fatalf("%q may fetch %q: %v by line %d, the policy %v, want %v\n%s\ntheirs\n%s", name, path, got, at, d.Verdict, want, merged.Body, data)
				}
			}
		}
	})
}

// lossy reports whether a rendered file states that it differs from the policy for a crawler and a path.
func lossy(f *robotsserve.File, name, path string) bool {
	for _, l := range f.Losses {
		if l.Paths.Match(path) && (slices.Contains(l.Crawlers, "*") || slices.ContainsFunc(l.Crawlers, func(c string) bool { return strings.EqualFold(c, name) })) {
			return true
		}
	}
	return false
}
