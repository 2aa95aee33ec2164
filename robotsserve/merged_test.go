// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"crypto/sha256"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// manyStatements returns a policy that disallows n paths for everyone.
func manyStatements(n int) *policy.Spec {
	var ours []policy.Statement
	for i := range n {
		ours = append(ours, policy.Statement{Usage: policy.Crawl, Pattern: pathpattern.MustParse(fmt.Sprintf("/ours/%d/", i))})
	}
	return &policy.Spec{
		Crawlers: []policy.Crawler{{Token: "FindBot", Category: "search"}},
		Rules:    []policy.Rule{{For: []policy.Audience{{}}, Statements: ours}},
	}
}

// A site's file with thousands of groups causes only limited work. The groups of everyone and of search engines are
// always complete. A group that does not fit disallows everything.
func TestMergeOfThousandsOfGroupsIsBounded(t *testing.T) {
	var file strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&file, "User-agent: Some%dBot\nDisallow: /a%d\n\n", i, i)
	}
	file.WriteString("User-agent: FindBot\nDisallow: /not-for-findbot/\n\nUser-agent: *\nDisallow: /not-for-all/\n")
	other := robotstxt.Parse([]byte(file.String()))
	for _, n := range []int{0, 100, 1000} {
		_, d, problems, _ := drawMerged(compile(t, manyStatements(n)), "", other)
		t.Logf("%d statements: %d groups, %d crawlers shut, %d bytes, work %d", n, len(d.groups), d.shut, len(d.head), d.work)
		if most := 1 << 25; d.work > most {
			t.Errorf("%d statements: work %d, want at most %d", n, d.work, most)
		}
		if len(d.head) > robotstxt.MaxSize || slices.ContainsFunc(problems, func(p policy.Problem) bool { return p.Severity == policy.Error }) {
			t.Errorf("%d statements: %d bytes, %v", n, len(d.head), problems)
		}
		read := crawlertest.ReadRobotsTxt(string(d.head))
		for _, c := range []struct {
			token, path string
			open        bool
		}{
			{"nobody", "/x", true},
			{"nobody", "/not-for-all/", false},
			{"nobody", "/ours/0/", n == 0},
			{"FindBot", "/x", true},
			{"FindBot", "/not-for-findbot/", false},
			{"FindBot", "/not-for-all/", true},
			{"Some4999Bot", "/a4999", false},
			{"Some4999Bot", "/x", n == 0},
			{"Some0Bot", "/x", true},
		} {
			if read.Allowed(c.token, c.path) != c.open {
				t.Errorf("%d statements: %+v", n, c)
			}
		}
		warned := slices.ContainsFunc(problems, func(p policy.Problem) bool { return p.Code == "merge-too-large" })
		if warned != (d.shut > 0) || warned != (n > 0) {
			t.Errorf("%d statements: %v", n, problems)
		}
	}
}

// Each of many long names contains all shorter ones. Ordering these names does not take minutes.
func TestTokenSetOfLongNames(t *testing.T) {
	of := map[string]*group{}
	const longest = 200
	for n := 1; n <= longest; n++ {
		of[strings.Repeat("a", n)] = &group{}
	}
	s := newTokenSet(of)
	for _, n := range []int{1, 5, longest} {
		if parts := s.within(strings.Repeat("a", n)); len(parts) != n-1 {
			t.Errorf("a name of %d letters contains %d others", n, len(parts))
		}
	}
	if parts := s.within("bbaabaaaaa"); len(parts) != 5 {
		t.Errorf("%q", parts)
	}
}

// While a file is being merged, the server sends the merged result of the previous file, or the policy alone. Such an
// answer never disallows less than the policy, and clients may cache it only for a short time.
func TestMergeInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(compile(t, manyStatements(1)), ServeOptions{})
		file := func(path string) *robotstxt.File {
			return robotstxt.Parse([]byte("User-agent: *\nDisallow: " + path + "\n"))
		}
		one, two := file("/one/"), file("/two/")
		var reported []string
		get := func(a Answer) string {
			a.CacheControl, a.Meanwhile = "max-age=3600", "max-age=60"
			a.Report = func(ps []policy.Problem, _ []robotstxt.Note) { reported = append(reported, fmt.Sprint(len(ps))) }
			r := httptest.NewRequest("GET", "http://www.example.com/robots.txt", nil)
			w := httptest.NewRecorder()
			s.Serve(w, r, a)
			read := crawlertest.ReadRobotsTxt(w.Body.String())
			answer := w.Header().Get("Cache-Control")
			for _, path := range []string{"/ours/0/", "/one/", "/two/"} {
				if !read.Allowed("nobody", path) {
					answer += " " + path
				}
			}
			return answer
		}
		step := func(name string, a Answer, want string) {
			t.Helper()
			began := time.Now()
			if got := get(a); got != want || time.Since(began) > mergeWait {
				t.Errorf("%s: got %q after %v, want %q", name, got, time.Since(began), want)
			}
		}
		running := func(n int) {
			synctest.Wait()
			s.merged.mu.Lock()
			defer s.merged.mu.Unlock()
			s.merged.running = n
		}
		step("the first file", Answer{Other: one}, "max-age=3600 /ours/0/ /one/")
		running(maxMerging) // the merges of other files
		step("another file", Answer{Other: two, Before: one}, "max-age=60 /ours/0/ /one/")
		step("another file and none before", Answer{Other: two}, "max-age=60 /ours/0/")
		step("the file before was never merged", Answer{Other: two, Before: file("/three/")}, "max-age=60 /ours/0/")
		step("a file that was merged", Answer{Other: one}, "max-age=3600 /ours/0/ /one/")
		running(0)
		slow := make(chan struct{})
		s.merged.of(mergedKey{s.hosts[0], two.Sum}, func() *served { <-slow; return s.merge(s.hosts[0], "", Answer{Other: two}) })
		step("it takes long", Answer{Other: two, Before: one}, "max-age=60 /ours/0/ /one/")
		close(slow)
		step("it is merged", Answer{Other: two, Before: one}, "max-age=3600 /ours/0/ /two/")
		synctest.Wait()
		s.merged.mu.Lock()
		defer s.merged.mu.Unlock()
		if s.merged.running != 0 || len(reported) != 1 {
			t.Errorf("%d are being merged; reported %q", s.merged.running, reported)
		}
	})
}

// A panic while merging affects only the file being merged. Many small merged files are cached, and large ones up to a
// limit in bytes.
func TestMergedFilesAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ size, files, merges, most int }{
		{1 << 10, 1000, 1000, 1000},
		{500 << 10, 200, 400, maxMergedBytes/(500<<10) + 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			var ms mergedSites
			merges := 0
			for i := range 2 * c.files {
				n := i % c.files
				ms.of(mergedKey{other: [sha256.Size]byte{byte(n), byte(n >> 8)}}, func() *served {
					merges++
					return &served{drawing: &drawing{head: make([]byte, c.size)}}
				})
				synctest.Wait()
				if n := len(ms.recent) + len(ms.earlier); n > c.most {
					t.Fatalf("the cache has %d files of %d bytes", n, c.size)
				}
			}
			if merges != c.merges {
				t.Errorf("%d merges of %d files of %d bytes, want %d", merges, c.files, c.size, c.merges)
			}
		})
	}
}

func TestMergePanics(t *testing.T) {
	s := NewServer(compile(t, manyStatements(1)), ServeOptions{})
	var reported []policy.Problem
	a := Answer{Other: &robotstxt.File{Groups: []*robotstxt.Group{nil}}, Report: func(ps []policy.Problem, _ []robotstxt.Note) { reported = ps }}
	if c, settled := s.mergedContent(t.Context(), s.hosts[0], "www.example.com", a); c != nil || !settled {
		t.Errorf("%v %v", c, settled)
	}
	if len(reported) != 1 || reported[0].Code != "not-merged" || !strings.Contains(reported[0].Message, "panic") {
		t.Errorf("%+v", reported)
	}
}
