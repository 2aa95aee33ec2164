// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"net/http/httptest"
	"testing"
)

// Pages in gzip and deflate can be edited in place, but pages in br and zstd cannot. Therefore Request changes
// Accept-Encoding so that br and zstd have the lowest rank for the handler. Close restores the client's
// Accept-Encoding.
func TestNarrowedCodings(t *testing.T) {
	const html = "text/html,application/xhtml+xml,*/*;q=0.8"
	for _, c := range []struct{ method, accept, codings, want string }{
		{"GET", html, "gzip, deflate, br, zstd", "gzip, deflate, br;q=0.002, zstd;q=0.001"},
		{"HEAD", html, "gzip, deflate, br", "gzip, deflate, br;q=0.002"},
		{"GET", html, "br", "br"},
		{"GET", html, "BR;q=1.0, gzip;q=0.8, *;q=0.1", "br;q=0.002, gzip;q=0.8, *;q=0.1"},
		{"GET", html, "zstd, identity;q=0.5", "zstd;q=0.001, identity;q=0.5"},
		{"GET", html, "br, identity;q=0", "br, identity;q=0"},
		{"GET", html, "gzip, br;q=0, zstd", "gzip, br;q=0, zstd;q=0.001"},
		{"GET", html, "gzip, deflate", "gzip, deflate"},
		{"GET", html, "*", "*"},
		{"GET", html, "", ""},
		{"GET", "*/*", "gzip, br", "gzip, br"},
		{"GET", "image/avif,*/*", "gzip, br", "gzip, br"},
		{"POST", html, "gzip, br", "gzip, br"},
	} {
		for range 2 {
			r := httptest.NewRequest(c.method, "/", nil)
			r.Header.Set("Accept", c.accept)
			r.Header.Set("Accept-Encoding", c.codings)
			rw := Wrap(newRecorder(), r, Options{Set: testSet(t, "robots=noindex"), ETagSuffix: testSuffix})
			if got := rw.Request().Header.Get("Accept-Encoding"); got != c.want {
				t.Errorf("%+v: the handler sees %q", c, got)
			}
			rw.Close(nil)
			rw.Release()
			if got := r.Header.Get("Accept-Encoding"); got != c.codings {
				t.Errorf("%+v: afterwards it is %q", c, got)
			}
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept", html)
	r.Header.Set("Accept-Encoding", "br")
	rw := Wrap(newRecorder(), r, Options{})
	defer rw.Release()
	if got := rw.Request().Header.Get("Accept-Encoding"); got != "br" {
		t.Errorf("without meta tags to add, the handler sees %q", got)
	}
}
