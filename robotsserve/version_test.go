// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"net/http/httptest"
	"testing"
)

// A crawler that asks for gzip gets the same version as one that does not.
func TestVersion(t *testing.T) {
	s := NewServer(compile(t, manyStatements(100)), ServeOptions{})
	versions := map[string]string{}
	for _, coding := range []string{"", "gzip"} {
		r := httptest.NewRequest("GET", "http://www.example.com/robots.txt", nil)
		r.Header.Set("Accept-Encoding", coding)
		w := httptest.NewRecorder()
		s.Serve(w, r, Answer{})
		if got := w.Header().Get("Content-Encoding"); got != coding {
			t.Fatalf("coding %q, want %q", got, coding)
		}
		versions[coding] = Version(w.Header().Get("Etag"))
	}
	f, _ := Render(s.p, "www.example.com", Options{})
	if want := Version(f.ETag); len(want) != 16 || versions[""] != want || versions["gzip"] != want {
		t.Errorf("%q, want %q", versions, want)
	}
	for etag, want := range map[string]string{`W/"abc-br"`: "abc", `"abc-zstd"`: "abc", `"abc"`: "abc", `"WabcW"`: "WabcW", `W/"abcW-gz"`: "abcW", "": ""} {
		if got := Version(etag); got != want {
			t.Errorf("%s: %q, want %q", etag, got, want)
		}
	}
}
