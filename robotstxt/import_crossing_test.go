// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// crossing lists patterns whose length in a policy differs from their length in robots.txt, and patterns that overlap
// with them.
var crossing = []string{
	"*.jpeg", "/*.css$", "/admin/", "/x", "*a", "**a", "/**/b", "*/b/", "/a*", "/a**", "/*a*b", "/a/*b$", "/", "/*", "*",
	"/a/b", "*?q=", "/*?q=*", "/a$", "*a$", "/*/", "*/a*/", "/ab", "/b*a", "/a?", "*b/a", "/b/",
}

// TestImportOpensNothing imports files with overlapping wildcard patterns, and asks about paths that several patterns
// match. If several patterns match, Google's parser obeys the one with the longest text in the file. The policy may
// disallow more than the file, but only with a note. It must never allow more.
func TestImportOpensNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(*importSeed, 52))
	names := newNames(t)
	laxer, stricter := 0, 0
	for range testkit.Rounds(300, 1000) {
		var b strings.Builder
		b.WriteString("User-agent: *\n")
		var used []string
		for range 2 + r.IntN(6) {
			p := crossing[r.IntN(len(crossing))]
			used = append(used, p)
			fmt.Fprintf(&b, "%s: %s\n", []string{"Allow", "Disallow"}[r.IntN(2)], p)
		}
		im, err := robotstxt.Import([]byte(b.String()), names.Crawlers())
		if err != nil {
			t.Fatal(err)
		}
		file, ds := policyfile.Load("imported.yaml", policyfile.Print(im.Spec))
		if ds.HasErrors() {
			t.Fatal(ds)
		}
		google := crawlertest.ReadGoogle(b.String())
		for range 40 {
			path := meeting(r, used)
			want := google.Allowed("zetabot", path)
			got := file.Policy.Decide(policy.Query{Crawler: file.Policy.Crawler("zetabot"), Identity: policy.Verified, Path: path}).Verdict != policy.Disallowed
			switch {
			case got && !want:
				laxer++
				t.Errorf("opens %q:\n%s%s%v", path, b.String(), policyfile.Print(im.Spec), im.Notes)
			case want && !got:
				stricter++
				if len(im.Notes) == 0 {
					t.Errorf("closes %q without a note:\n%s%s", path, b.String(), policyfile.Print(im.Spec))
				}
			}
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("laxer %d, stricter %d", laxer, stricter)
}

// meeting returns a path that several patterns may match.
func meeting(r *rand.Rand, patterns []string) string {
	var b strings.Builder
	for range 1 + r.IntN(3) {
		p := strings.TrimSuffix(patterns[r.IntN(len(patterns))], "$")
		for _, c := range p {
			if c == '*' {
				b.WriteString([]string{"", "x", "/", "a", "/x/", "b/a"}[r.IntN(6)])
			} else {
				b.WriteRune(c)
			}
		}
	}
	path := b.String()
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return path
}

// TestImportDirectives imports App-Directives of "*" and of named groups. A crawler uses only the directives of its own
// group and, among these, only the lines with the longest path.
func TestImportDirectives(t *testing.T) {
	r := rand.New(rand.NewPCG(*importSeed, 53))
	names := newNames(t)
	apps := []string{"play", "news", "cast"}
	paths := []string{"", "/a ", "/a/b ", "/*c ", "/d$ "}
	for range testkit.Rounds(300, 1250) {
		var b strings.Builder
		for _, name := range []string{"*", "GPTBot", "Bingbot"}[:1+r.IntN(3)] {
			fmt.Fprintf(&b, "User-agent: %s\nDisallow: /x\n", name)
			for range r.IntN(4) {
				fmt.Fprintf(&b, "App-Directives: %s%s;%s\n", paths[r.IntN(len(paths))], apps[r.IntN(len(apps))], []string{"y", "z=1"}[r.IntN(2)])
			}
		}
		im, err := robotstxt.Import([]byte(b.String()), names.Crawlers())
		if err != nil {
			t.Fatal(err)
		}
		file, ds := policyfile.Load("imported.yaml", policyfile.Print(im.Spec))
		if ds.HasErrors() {
			t.Fatal(ds)
		}
		original := crawlertest.ReadRobotsTxt(b.String())
		for _, name := range []string{"GPTBot", "Bingbot", "zetabot"} {
			for _, path := range []string{"/", "/a", "/a/b", "/ac", "/a/bc", "/d", "/x"} {
				value, lines := original.Extension("app-directives", name, path)
				if lines > 1 {
					continue // several lines with the same path form one List
				}
				for _, app := range apps {
					want := member(value, app)
					got := ""
					q := policy.Query{Crawler: file.Policy.Crawler(name), Identity: policy.Verified, Path: path}
					if d := file.Policy.AppDirective(q, app); d != nil && d.Text != app {
						got = d.Text
					}
					if got != want && !strings.Contains(fmt.Sprint(im.Notes), "so combine them") {
						t.Fatalf("%s on %s to %s: %q in the file, %q imported\n%s%s%v", name, path, app, want, got, b.String(), policyfile.Print(im.Spec), im.Notes)
					}
				}
			}
		}
	}
}

// member returns an application's member of a List, or "".
func member(list, app string) string {
	for m := range strings.SplitSeq(list, ",") {
		if m = strings.TrimSpace(m); strings.HasPrefix(m, app+";") {
			return m
		}
	}
	return ""
}

// If a path is too long for a policy file, the policy disallows the beginning of the path. It never allows the path.
func TestImportLongPaths(t *testing.T) {
	names := newNames(t)
	long := "/" + strings.Repeat("ab%2F", 600)
	im, err := robotstxt.Import([]byte("User-agent: *\nDisallow: "+long+"\nDisallow: /x\nAllow: /x"+long+"\n"), names.Crawlers())
	if err != nil {
		t.Fatal(err)
	}
	file, ds := policyfile.Load("imported.yaml", policyfile.Print(im.Spec))
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	for path, want := range map[string]policy.Verdict{long: policy.Disallowed, long[:1000]: policy.Unstated, "/x" + long: policy.Disallowed} {
		if got := file.Policy.Decide(policy.Query{Crawler: file.Policy.Crawler("zetabot"), Path: path}).Verdict; got != want {
			t.Errorf("%.20s, %d bytes: %v, want %v", path, len(path), got, want)
		}
	}
	if len(im.Notes) != 2 {
		t.Errorf("notes: %v", im.Notes)
	}
}

// In the file, an Allow line loses to a Disallow line that is too long for a policy. In the policy, the Allow must not
// win over the beginning of this Disallow.
func TestImportLongPathsAgainstAllows(t *testing.T) {
	names := newNames(t)
	long := "/" + strings.Repeat("a", 2990)
	for _, allow := range []string{"/*" + strings.Repeat("a", 2046), long[:2048]} {
		im, err := robotstxt.Import([]byte("User-agent: *\nDisallow: "+long+"\nAllow: "+allow+"\n"), names.Crawlers())
		if err != nil {
			t.Fatal(err)
		}
		file, ds := policyfile.Load("imported.yaml", policyfile.Print(im.Spec))
		if ds.HasErrors() {
			t.Fatal(ds)
		}
		if got := file.Policy.Decide(policy.Query{Crawler: file.Policy.Crawler("zetabot"), Path: long + "a"}).Verdict; got != policy.Disallowed {
			t.Errorf("with an Allow of %d bytes: %v", len(allow), got)
		}
	}
}
