// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"/", "/"},
		{"/a/b", "/a/b"},
		{"/x/../admin/", "/admin/"},
		{"//admin/", "/admin/"},
		{"/a//b///c", "/a/b/c"},
		{"/%61dmin/", "/admin/"},
		{"/x/%2e%2E/admin/", "/admin/"},
		{"/./admin", "/admin"},
		{"/../../admin", "/admin"},
		{"/a/.", "/a/"},
		{"/a/..", "/"},
		{"/..", "/"},
		{"/.well-known/x", "/.well-known/x"},
		{"/a/...", "/a/..."},
		{"/a?b=//c/../d", "/a?b=//c/../d"},
		{"//?x", "/?x"},
		{"/a%2Fb", "/a%2Fb"},
	} {
		if got := Clean(c.in); got != c.want {
			t.Errorf("Clean(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestReadings(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"/a/b?c=%2F//;", []string{"/a/b?c=%2F//;"}},
		{"/%61", []string{"/a"}},
		{"/x/../a", []string{"/x/../a", "/a"}},
		{"/a%2fb", []string{"/a%2Fb", "/a/b"}},
		{"/a\\b", []string{"/a%5Cb", "/a/b"}},
		{"/x/..%2Fa", []string{"/x/..%2Fa", "/a"}},
		{"/x/..;/a", []string{"/x/..;/a", "/a"}},
		{"/a;jsessionid=1/b", []string{"/a;jsessionid=1/b", "/a/b"}},
		{"/a;x=%2F..%2Fb/c", []string{"/a;x=%2F..%2Fb/c", "/b/c", "/a/c"}},
		{"//a;x=%2F..%2Fb/c", []string{"//a;x=%2F..%2Fb/c", "/a;x=%2F..%2Fb/c", "/b/c", "/a/c"}},
		{"//x%2F..%2fa?q", []string{"//x%2F..%2Fa?q", "/x%2F..%2Fa?q", "/a?q"}},
	} {
		got, n := Readings(c.in)
		if !slices.Equal(got[:n], c.want) {
			t.Errorf("Readings(%q) = %q, want %q", c.in, got[:n], c.want)
		}
	}
	path := "/section/article.html?x=y"
	if n := testing.AllocsPerRun(100, func() { Readings(path) }); n != 0 {
		t.Errorf("%v allocations for a tidy path", n)
	}
}

// The short cut for plain paths changes nothing.
func TestReadingsOfPlainPaths(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	plain := 0
	for range 200_000 {
		path := randomText(r, "/aab.;?%2F\\", 9)
		if r.IntN(8) > 0 {
			path = "/" + path
		}
		if isPlain(path) {
			plain++
		}
		got, n := Readings(path)
		if want, m := readingsOf(path); got != want || n != m {
			t.Fatalf("Readings(%q) = %q, want %q", path, got[:n], want[:m])
		}
	}
	if plain == 0 {
		t.Error("no path was plain")
	}
}

func FuzzClean(f *testing.F) {
	f.Add("/a/../b//c/./d?x")
	f.Fuzz(func(t *testing.T, path string) {
		got := Clean(path)
		if got != Clean(got) {
			t.Fatalf("Clean(%q) = %q, which cleans to %q", path, got, Clean(got))
		}
		clean, _, _ := strings.Cut(got, "?")
		if clean == "" || clean[0] != '/' || strings.Contains(clean, "//") || strings.Contains(clean+"/", "/../") || strings.Contains(clean+"/", "/./") {
			t.Fatalf("Clean(%q) = %q", path, got)
		}
		// Where slashes are single, RFC 3986 as net/url has it must agree.
		plain, _, _ := strings.Cut(NormalizePath(path), "?")
		if strings.Contains(plain, "//") || strings.ContainsAny(plain, ":#[]@%") {
			return
		}
		if u := (&url.URL{Scheme: "http", Host: "h"}).ResolveReference(&url.URL{Path: plain}); u.Path != clean {
			t.Fatalf("Clean(%q) = %q, net/url says %q", path, clean, u.Path)
		}
	})
}
