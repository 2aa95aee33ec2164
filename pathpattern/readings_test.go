// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"math/rand/v2"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
)

func TestRemoveDots(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"/", "/"},
		{"/a/b", "/a/b"},
		{"/x/../admin/", "/admin/"},
		{"//admin/", "//admin/"},
		{"/a//b///c", "/a//b///c"},
		{"/a//../b", "/a/b"},
		{"/./admin", "/admin"},
		{"/../../admin", "/admin"},
		{"/a/.", "/a/"},
		{"/a/..", "/"},
		{"/..", "/"},
		{"/.well-known/x", "/.well-known/x"},
		{"/a/...", "/a/..."},
		{"/a%2Fb", "/a%2Fb"},
	} {
		if got := removeDots(c.in); got != c.want {
			t.Errorf("removeDots(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestReadings(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"/a/b?c=//;/../", []string{"/a/b?c=//;/../"}},
		{"/a/b?c=%2F//;", []string{"/a/b?c=///;"}},
		{"/%61", []string{"/a"}},
		{"/%40a%3a(%28", []string{"/@a:(("}},
		{"/%2a%24*$", []string{"/%2A%24%2A%24"}},
		{"/a%3fb#", []string{"/a%3Fb%23", "/a%3Fb"}},
		{"/x/../a", []string{"/x/../a", "/a"}},
		{"/x/%2e%2E/a", []string{"/x/../a", "/a"}},
		{"/./x/%2e%2E/a", []string{"/./x/../a", "/x/../a", "/a"}},
		{"/y/..//x/%2e/a", []string{"/y/..//x/./a", "/y/../x/./a", "//x/./a", "/x/./a", "//x/a", "/x/a", "/./a", "/a"}},
		{"/a%2fb", []string{"/a%2Fb", "/a/b"}},
		{"/a\\b", []string{"/a%5Cb", "/a/b"}},
		{"/a%5cb%2Fc", []string{"/a%5Cb%2Fc", "/a%5Cb/c", "/a/b%2Fc", "/a/b/c"}},
		{"/x%2Fy/../a%2Fb", []string{"/x%2Fy/../a%2Fb", "/a%2Fb", "/x/y/../a/b", "/a/b", "/x/a/b"}},
		{"/x/..%2Fa", []string{"/x/..%2Fa", "/x/../a", "/a"}},
		{"/x/..;/a", []string{"/x/..;/a", "/x/../a", "/a"}},
		{"/a;jsessionid=1/b", []string{"/a;jsessionid=1/b", "/a/b"}},
		{"/a;v=1%2Fb", []string{"/a;v=1%2Fb", "/a", "/a;v=1/b", "/a/b"}},
		{"/a%3Bx;y/b", []string{"/a;x;y/b", "/a;x/b", "/a/b"}},
		{"/p//../x", []string{"/p//../x", "/p/../x", "/p/x", "/x"}},
		{"/p///../x", []string{"/p///../x", "/p/../x", "/p//x", "/x", "/p/x"}},
		{"/p/a/..", []string{"/p/a/..", "/p/", "/p"}},
		{"/p/.//", []string{"/p/.//", "/p/./", "/p//", "/p", "/p/"}},
		{"//a", []string{"//a", "/a", "/"}},
		{"//x/a?q", []string{"//x/a?q", "/x/a?q", "/a?q"}},
		{"////u@h:1/a", []string{"////u@h:1/a", "/u@h:1/a", "//u@h:1/a", "/a"}},
		{"///x/a", []string{"///x/a", "/x/a", "/a"}},
		{"//u@h%61/b", []string{"//u@ha/b", "/a/b", "/u@ha/b", "/b"}},
		{"//h%61(b)/c", []string{"//ha(b)/c", "/a(b)/c", "/ha(b)/c", "/c", "/(b)/c"}},
		{"/%2Fd$%5C", []string{"/%2Fd%24%5C", "//d%24%5C", "/%2Fd%24/", "/d%24%5C", "//d%24/", "/", "/%5C", "/d%24/", "//"}},
		{"//h{a}/b?q", []string{"//h%7Ba%7D/b?q", "/%7Ba%7D/b?q", "/h%7Ba%7D/b?q", "/b?q"}},
		{"/%2fh%2561", []string{"/%2Fh%2561", "//h%2561", "/%2Fha", "/h%2561", "//ha", "/", "/%2561", "/ha", "/a"}},
		{`/\x/a`, []string{"/%5Cx/a", "//x/a", "/x/a", "/a"}},
		{"/%2fx/a", []string{"/%2Fx/a", "//x/a", "/x/a", "/a"}},
		{"/.//x/a", []string{"/.//x/a", "/./x/a", "//x/a", "/x/a", "/a"}},
		{"/a#/b?c#d", []string{"/a%23/b?c%23d", "/a%23/b?c", "/a"}},
		{"/a?b#c", []string{"/a?b%23c", "/a?b"}},
		{"/%2561?%2561", []string{"/%2561?%2561", "/a?%2561"}},
		{"/%252561", []string{"/%252561", "/%2561", "/a"}},
		{"/a%252fb", []string{"/a%252fb", "/a%2Fb", "/a/b"}},
		{"/x/%252E%2e/a", []string{"/x/%252E./a", "/x/../a", "/a"}},
		{"/x/..%252f../a", []string{"/x/..%252f../a", "/x/..%2F../a", "/x/../../a", "/a"}},
		{"/a%255cb", []string{"/a%255cb", "/a%5Cb", "/a/b"}},
		{"/a%253bx/b", []string{"/a%253bx/b", "/a;x/b", "/a/b"}},
		{"/a%253Fb", []string{"/a%253Fb", "/a%3Fb"}}, // %3F does not begin a query
		{"/100%25/a%25zz%", []string{"/100%25/a%25zz%25"}},
		{"/.well-known/x", []string{"/.well-known/x"}},
		{"", []string{"/"}},
		{"x:a/b", []string{"/x:a/b"}},
	} {
		if got, complete := Readings(nil, c.in); !complete || !slices.Equal(got, c.want) {
			t.Errorf("Readings(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestReadingsOfPlainPathsDoNotAllocate(t *testing.T) {
	for _, target := range []string{
		"/section/article.html?x=y", "/wiki/Special:Search?q=a/b&c=(d)", "/%E3%83%84/%20?%E3%83%84", "/.well-known/x", "/a/@b,c",
	} {
		if n := testing.AllocsPerRun(100, func() {
			var buf [4]string
			if got, _ := Readings(buf[:0], target); len(got) != 1 || got[0] != target {
				t.Errorf("%q has %d readings", target, len(got))
			}
		}); n != 0 {
			t.Errorf("%q: %v allocations", target, n)
		}
	}
}

// The shortcut for plain targets has the same result as the full computation.
func TestReadingsOfPlainPaths(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	short := 0
	for range 200_000 {
		target := randomText(r, "/aab.;?%22F55C\\@", 9)
		if r.IntN(8) > 0 {
			target = "/" + target
		}
		if !isPlain(target) {
			continue
		}
		short++
		if want, _ := oddReadings(target); len(want) != 1 || want[0] != target {
			t.Fatalf("%q is plain and has the readings %q", target, want)
		}
	}
	if short < 1000 {
		t.Errorf("%d targets were plain", short)
	}
}

// The number of readings is limited, whatever a client sends.
func TestReadingsAreBounded(t *testing.T) {
	for _, c := range []struct {
		target   string
		complete bool
	}{
		{"/a/../b;c%2Fd//e%5C..", true},
		{strings.Repeat("/a;%2F..%5C./", 40), true},
		{strings.Repeat("/a;%2F..%5C./", 1500), false},
		{"/%" + strings.Repeat("25", 70) + "61", false},
		{strings.Repeat("/a/..", 4000) + "//", true},
		{"/" + strings.Repeat("a", 1<<20) + "//", false},
		{"/" + strings.Repeat("%c3", 1<<20), true},
	} {
		all, complete := Readings(nil, c.target)
		size := 0
		for _, r := range all {
			size += len(r)
		}
		if complete != c.complete || len(all) > maxReadings || size > max(maxSize, 3*len(c.target)) {
			t.Errorf("%.20q (%d bytes): %d readings of %d bytes, complete: %v", c.target, len(c.target), len(all), size, complete)
		}
	}
}

// The readings of a target include each path that a Go program gets when it parses the target with Go's standard
// packages.
func FuzzReadings(f *testing.F) {
	for _, target := range []string{"/a/../b//c/./d?x", "/a;b%2F..;/%5c", "/%2e%2e;%2f//?%2F", "x:a//b", `/\..//../a/..`, "/a/b%3B%2f;x", "/a%252f..%25252E/b", "/..///", "//x/a", "//u@h:1/../a", "/a#b"} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		readings, complete := Readings(nil, target)
		if len(readings) == 0 || len(readings) > maxReadings {
			t.Fatalf("%q has %d readings", target, len(readings))
		}
		for i, r := range readings {
			if !IsNormal(r) || NormalizePath(r) != r || len(r) > 3*len(target)+1 {
				t.Fatalf("%q is read as %q, in normal form %q", target, r, NormalizePath(r))
			}
			if slices.Contains(readings[:i], r) {
				t.Fatalf("%q is read as %q twice", target, r)
			}
		}
		u, err := url.ParseRequestURI(target)
		if err != nil || !complete || target[0] != '/' || u.Opaque != "" {
			return
		}
		cleaned := path.Clean(u.Path)
		if cleaned != "/" && strings.HasSuffix(u.Path, "/") {
			cleaned += "/"
		}
		rfc := u.Path
		if !strings.HasPrefix(u.Path, "//") { // some servers treat this as a host
			rfc = crawlertest.RemoveDotSegments(u.Path)
		}
		wants := []string{u.Path, cleaned, rfc}
		if ref, err := url.Parse(target); err == nil {
			wants = append(wants, "/"+strings.TrimPrefix(ref.Path, "/"))
		}
		for _, want := range wants {
			want, _ := appendNormal(nil, strings.ReplaceAll(strings.ReplaceAll(want, "%", "%25"), "?", "%3F"), inPath)
			if !slices.ContainsFunc(readings, func(r string) bool {
				name, _, _ := strings.Cut(r, "?")
				return name == string(want)
			}) {
				t.Fatalf("%q may be %q, but not one of %q", target, want, readings)
			}
		}
	})
}
